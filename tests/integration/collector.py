"""A collector of traces on OpenTelemetry's published messages, with what collectors can do wrong."""

from __future__ import annotations

import gzip
import select
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from google.rpc import status_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2

from integration.server_process import wait_until

# Of the server, so that spans come at once.
PROMPT = {"OTEL_BSP_SCHEDULE_DELAY": "10"}


@dataclass
class Span:
    """A span as it was sent."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: int
    flags: int
    state: str
    start: int
    end: int
    attributes: dict[str, Any]
    status: int
    message: str
    children: list[Span] = field(default_factory=list)

    def child(self, name: str) -> Span:
        """The only child of this name."""
        (found,) = [span for span in self.children if span.name == name]
        return found


def value_of(value: common_pb2.AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    return getattr(value, kind)


def attributes_of(pairs: Sequence[common_pb2.KeyValue]) -> dict[str, Any]:
    found = {pair.key: value_of(pair.value) for pair in pairs}
    assert len(found) == len(pairs), "a key comes twice"
    return found


class Collector:
    """Listens on loopback, on `port` or one of the system's choice. Use as a context manager."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler_of(self))
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self.requests: list[trace_service_pb2.ExportTraceServiceRequest] = []
        # These are of all requests, refused ones included.
        self.paths: list[str] = []
        self.fields: list[dict[str, str]] = []
        # Status and header fields of the next answers, in place of taking the request.
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.refused = 0
        # So many spans of each request are rejected.
        self.rejects = 0
        # Cleared: requests are not answered.
        self.answers = threading.Event()
        self.answers.set()
        self.waiting = 0
        # Whether to close each connection behind its answer, without saying so.
        self.closes = False

    def __enter__(self) -> Collector:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def resource(self) -> dict[str, Any]:
        return attributes_of(self.requests[0].resource_spans[0].resource.attributes)

    def spans(self) -> list[Span]:
        """All that came, each with its children in the order of their begin."""
        all_spans = [
            Span(
                name=span.name,
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                kind=span.kind,
                flags=span.flags,
                state=span.trace_state,
                start=span.start_time_unix_nano,
                end=span.end_time_unix_nano,
                attributes=attributes_of(span.attributes),
                status=span.status.code,
                message=span.status.message,
            )
            for request in list(self.requests)
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]
        by_id = {span.span_id: span for span in all_spans}
        assert len(by_id) == len(all_spans), "two spans have one id"
        for span in sorted(all_spans, key=lambda one: one.start):
            if span.parent in by_id:
                by_id[span.parent].children.append(span)
        return all_spans

    def calls(self, request_id: str) -> list[Span]:
        return [span for span in self.spans() if span.attributes.get("longshort.request.id") == request_id]

    def call(self, request_id: str) -> Span:
        """The span of this call, once it is there."""
        wait_until(lambda: self.calls(request_id) != [])
        (found,) = self.calls(request_id)
        return found


def handler_of(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.paths.append(self.path)
            collector.fields.append({name.lower(): value for name, value in self.headers.items()})
            if collector.refusals:
                collector.refused += 1
                status, fields = collector.refusals.pop(0)
                self.answer(status, fields, status_pb2.Status(message="not now"))
                return
            collector.waiting += 1
            collector.answers.wait()
            collector.waiting -= 1
            if select.select([self.connection], [], [], 0)[0]:  # the client has closed it
                self.close_connection = True
                return
            assert self.headers["Content-Type"] == "application/x-protobuf"
            collector.requests.append(trace_service_pb2.ExportTraceServiceRequest.FromString(body))
            response = trace_service_pb2.ExportTraceServiceResponse()
            if collector.rejects > 0:
                response.partial_success.rejected_spans = collector.rejects
                response.partial_success.error_message = "too many"
            self.answer(200, {}, response)

        def answer(self, status: int, fields: dict[str, str], message: Message) -> None:
            body = message.SerializeToString()
            self.send_response(status)
            own = {"Content-Type": "application/x-protobuf", "Content-Length": str(len(body))}
            for name, value in (own | fields).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection |= collector.closes

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def secure(certificate: Path, key: Path, clients: bytes | None = None) -> ssl.SSLContext:
    """`clients`: the authorities of the certificates that clients must present, as PEM; None: they need none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.decode())
    return context
