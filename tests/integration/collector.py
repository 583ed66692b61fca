"""A collector of traces on OpenTelemetry's published messages, with what collectors can do wrong."""

from __future__ import annotations

import gzip
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
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


def refusal(code: grpc.StatusCode, retry_seconds: float | None = None) -> Callable[[grpc.ServicerContext], None]:
    """Ends a call with this code, and with a RetryInfo if there is a time."""

    def refuse(context: grpc.ServicerContext) -> None:
        status = status_pb2.Status(code=code.value[0], message="not now")
        if retry_seconds is not None:
            delay = duration_pb2.Duration(nanos=int(1e9 * retry_seconds))
            status.details.append(any_pb2.Any())
            status.details[0].Pack(error_details_pb2.RetryInfo(retry_delay=delay))
        context.abort_with_status(rpc_status.to_status(status))

    return refuse


class Received:
    """What came, as spans."""

    port: int
    requests: list[trace_service_pb2.ExportTraceServiceRequest]

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


class Collector(Received, trace_service_pb2_grpc.TraceServiceServicer):
    """Listens on loopback, on `port` or one of the system's choice. Use as a context manager."""

    def __init__(self, port: int = 0, tls: grpc.ServerCredentials | None = None) -> None:
        self._server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        address = f"127.0.0.1:{port}"
        self.port = (
            self._server.add_insecure_port(address) if tls is None else self._server.add_secure_port(address, tls)
        )
        self.requests: list[trace_service_pb2.ExportTraceServiceRequest] = []
        self.metadata: list[dict[str, str]] = []
        # What is to be done with the next calls, in place of taking what they bring.
        self.refusals: list[Callable[[grpc.ServicerContext], None]] = []
        self.refused = 0
        # Of each request, spans that are not wanted.
        self.rejects = 0
        # Cleared: calls are not answered.
        self.answers = threading.Event()
        self.answers.set()
        self.waiting = 0

    def Export(  # noqa: N802
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        if self.refusals:
            self.refused += 1
            self.refusals.pop(0)(context)
        self.waiting += 1
        self.answers.wait()
        self.waiting -= 1
        if not context.is_active():
            return trace_service_pb2.ExportTraceServiceResponse()
        self.metadata.append(dict(context.invocation_metadata()))
        self.requests.append(request)
        answer = trace_service_pb2.ExportTraceServiceResponse()
        if self.rejects > 0:
            answer.partial_success.rejected_spans = self.rejects
            answer.partial_success.error_message = "too many"
        return answer

    def __enter__(self) -> Collector:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.stop(None).wait()


def secure(certificate: Path, key: Path) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])


class HttpCollector(Received):
    """As Collector, for OTLP over HTTP."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                status, fields = collector.refusals.pop(0) if collector.refusals else (200, {})
                if status == 200:
                    assert self.headers["Content-Type"] == "application/x-protobuf"
                    collector.requests.append(trace_service_pb2.ExportTraceServiceRequest.FromString(body))
                collector.paths.append(self.path)
                collector.fields.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(status)
                for name, value in ({"Content-Length": "0"} | fields).items():
                    self.send_header(name, value)
                self.end_headers()
                self.close_connection |= collector.closes

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.requests = []
        self.paths: list[str] = []
        self.fields: list[dict[str, str]] = []
        # Status and header fields of the next answers.
        self.refusals: list[tuple[int, dict[str, str]]] = []
        # Whether to close each connection behind its answer, without saying so.
        self.closes = False

    def __enter__(self) -> HttpCollector:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
