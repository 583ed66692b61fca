"""The metadata of calls."""

from __future__ import annotations

import sys
import uuid
from typing import Any, Literal, TypedDict

Metadata = tuple[tuple[str, str], ...]


class CallOptions(TypedDict, total=False):
    """Keyword arguments of every call.

    timeout      seconds for all attempts of the call together; inf means no limit. Default: the client's, 60. For
                 score_stream and classify_stream: seconds without an answer.
    priority     low, normal or high: share of the model among all waiting calls
    request_id   id of the call in the server's log: 1 to 128 letters, digits or any of "._:-". Default: a random one
    traceparent  W3C trace context. Default: that of the current span, if the program uses OpenTelemetry
    tracestate   W3C trace state
    """

    timeout: float
    priority: Literal["low", "normal", "high"]
    request_id: str
    traceparent: str
    tracestate: str


def request_id_of(options: CallOptions) -> str:
    return options.get("request_id") or uuid.uuid4().hex


def of_call(options: CallOptions, *, request_id: str, client_id: str, session_id: str, authorization: str) -> Metadata:
    """Returns the metadata of one attempt. Raises ValueError for values that cannot be sent."""
    traceparent, tracestate = _trace_context(options)
    pairs = {
        "x-request-id": request_id,
        "x-client-id": client_id,
        "x-session-id": session_id,
        "x-priority": options.get("priority", ""),
        "authorization": authorization,
        "traceparent": traceparent,
        "tracestate": tracestate,
    }
    for key, value in pairs.items():
        if not all(" " <= character <= "~" for character in value):
            raise ValueError(f"{key} is {value!r}; it must be printable ASCII characters")
    return tuple((key, value) for key, value in pairs.items() if value)


def _trace_context(options: CallOptions) -> tuple[str, str]:
    if "traceparent" in options:
        return options["traceparent"], options.get("tracestate", "")
    # Not imported here: a program with a current span has already imported it.
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return "", ""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return "", ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}", span.trace_state.to_header()
