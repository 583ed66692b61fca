"""The metadata of calls, recorded by a server that refuses all of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import longshort
import pytest
from opentelemetry import context, trace

from clients.python.drivers import Driver

SPAN = trace.SpanContext(
    trace_id=0x0AF7651916CD43DD8448EB211C80319C,
    span_id=0x00F067AA0BA902B7,
    is_remote=False,
    trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    trace_state=trace.TraceState([("vendor", "x")]),
)
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


class Listener:
    """A gRPC server that refuses every call, and keeps its metadata."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self._server = grpc.server(ThreadPoolExecutor(2), handlers=[self])  # type: ignore[list-item]
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def service(self, call: Any) -> grpc.RpcMethodHandler | None:
        if not call.method.startswith("/longshort"):
            return None
        self.calls.append(dict(call.invocation_metadata))
        return grpc.unary_unary_rpc_method_handler(self._refuse)

    def _refuse(self, request: bytes, context: grpc.ServicerContext) -> None:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not here")

    def stop(self) -> None:
        self._server.stop(None)


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.stop()


def metadata_of(driver: Driver, listener: Listener, client_options: dict[str, Any], **options: Any) -> dict[str, str]:
    """The metadata of a call with these options."""
    client = driver.client(listener.address, **client_options)
    with pytest.raises(longshort.InvalidArgument):
        driver.done(client.tokenize("x", **options))
    driver.done(client.close())
    return listener.calls[-1]


def test_a_call_says_little_by_itself(driver: Driver, listener: Listener) -> None:
    said = metadata_of(driver, listener, {})
    assert set(said) == {"x-request-id", "user-agent"}
    assert said["user-agent"].startswith(f"longshort-python/{longshort.__version__}")


def test_a_call_sends_its_own_metadata(driver: Driver, listener: Listener) -> None:
    options = {"request_id": "r1", "priority": "low", "traceparent": TRACEPARENT, "tracestate": "vendor=y"}
    said = metadata_of(driver, listener, {"client_id": "alice", "token": "secret"}, **options)
    assert said["x-request-id"] == "r1" and said["x-priority"] == "low"
    assert said["x-client-id"] == "alice" and said["authorization"] == "Bearer secret"
    assert (said["traceparent"], said["tracestate"]) == (TRACEPARENT, "vendor=y")


def test_the_current_span_is_passed_on(driver: Driver, listener: Listener) -> None:
    before = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(SPAN)))
    try:
        said = metadata_of(driver, listener, {})
        assert (said["traceparent"], said["tracestate"]) == (TRACEPARENT, "vendor=x")
        received = metadata_of(driver, listener, {}, traceparent="00-1-2-00")
        assert received["traceparent"] == "00-1-2-00" and "tracestate" not in received, "the argument counts"
    finally:
        context.detach(before)


def test_a_session_s_calls_name_it(driver: Driver, listener: Listener) -> None:
    client = driver.client(listener.address)
    session = client.session("talk")
    for call in (
        lambda: driver.done(session.score("xy")),
        lambda: driver.collect(session.generate("x")),
        lambda: driver.done(session.export("/dev/null")),
        lambda: driver.done(session.close()),
    ):
        with pytest.raises(longshort.LongshortError):
            call()
        assert listener.calls[-1]["x-session-id"] == "talk"
    driver.done(client.close())
