"""What calls say in their metadata."""

from __future__ import annotations

import sys
import uuid
from typing import Any, Literal, TypedDict

Metadata = tuple[tuple[str, str], ...]


class CallOptions(TypedDict, total=False):
    """What every call takes besides its own arguments.

    timeout      seconds for all tries of the call together; inf is unlimited. Default: the client's, 60. Of
                 score_stream and classify_stream: seconds without an answer.
    priority     how the call weighs against others of this client that wait
    request_id   names the call in the server's log: 1 to 128 letters, digits or any of "._:-". Default: a random one
    traceparent  W3C trace context. Default: that of the current span, if the program uses OpenTelemetry
    tracestate   what belongs to it
    """

    timeout: float
    priority: Literal["low", "normal", "high"]
    request_id: str
    traceparent: str
    tracestate: str


def request_id_of(options: CallOptions) -> str:
    return options.get("request_id") or uuid.uuid4().hex


def of_call(options: CallOptions, *, request_id: str, client_id: str, session_id: str, authorization: str) -> Metadata:
    """The metadata of one try. Raises ValueError for what cannot be sent."""
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
            raise ValueError(f"{key} is {value!r}; it must be of printable ASCII characters")
    return tuple((key, value) for key, value in pairs.items() if value)


def _trace_context(options: CallOptions) -> tuple[str, str]:
    if "traceparent" in options:
        return options["traceparent"], options.get("tracestate", "")
    # Not imported for this: who has a current span has imported it.
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return "", ""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return "", ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}", span.trace_state.to_header()
