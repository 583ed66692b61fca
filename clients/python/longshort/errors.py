"""The exceptions of failed calls, one class for each status code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import grpc
from google.protobuf.message import DecodeError

from longshort._proto import error_details_pb2

# gRPC's message in place of a lost status.
_LOST_STATUS = "Internal error from Core"
# The server's name for an item of a call.
_ITEM = re.compile(r"\b(inputs|second_inputs|images)\[(\d+)\]")
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


class LongshortError(Exception):
    """A call that failed.

    code         grpc.StatusCode
    message      human-readable: the field, its value and the limit
    retry_after  seconds to wait before a retry, if the server sent it
    queue_depth  number of requests in the server's queue, if the server sent it
    request_id   the id of the call in the server's log
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode | None = None,
        retry_after: float | None = None,
        queue_depth: int | None = None,
        request_id: str | None = None,
        may_retry: bool = True,
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.message = message
        self.retry_after = retry_after
        self.queue_depth = queue_depth
        self.request_id = request_id
        # False if the server's pushback forbids a retry.
        self.may_retry = may_retry

    def __str__(self) -> str:
        named = f" [request {self.request_id}]" if self.request_id else ""
        later = f" (retry after {self.retry_after:g} s)" if self.retry_after is not None else ""
        return f"{self.code.name}: {self.message}{later}{named}"

    _by_code: ClassVar[dict[grpc.StatusCode, type[LongshortError]]] = {}

    def __init_subclass__(cls) -> None:
        if "code" in vars(cls):
            LongshortError._by_code[cls.code] = cls


class Cancelled(LongshortError):
    """The client or the server cancelled the call; the server does so if the client does not read."""

    code = grpc.StatusCode.CANCELLED


class InvalidArgument(LongshortError):
    """The request is invalid or exceeds a limit. Do not retry it unchanged."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class DeadlineExceeded(LongshortError):
    """The timeout has passed, or the server cannot meet the deadline."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class NotFound(LongshortError):
    """The model, version or session does not exist."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(LongshortError):
    """A session with this id exists."""

    code = grpc.StatusCode.ALREADY_EXISTS


class PermissionDenied(LongshortError):
    """The token does not allow this call or this model."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unauthenticated(LongshortError):
    """The token is missing, unknown, malformed or expired."""

    code = grpc.StatusCode.UNAUTHENTICATED


class ResourceExhausted(LongshortError):
    """The server is full (then `retry_after` is set), or the message is too large."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class FailedPrecondition(LongshortError):
    """The model does not support the call, or the session does not hold the expected tokens."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Aborted(LongshortError):
    """Another call uses the session."""

    code = grpc.StatusCode.ABORTED


class Unimplemented(LongshortError):
    """The server does not implement this call."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Internal(LongshortError):
    """The model failed repeatedly on this request."""

    code = grpc.StatusCode.INTERNAL


class Unavailable(LongshortError):
    """The server is unreachable or stopping, or the connection was lost."""

    code = grpc.StatusCode.UNAVAILABLE


class StatusLost(Unavailable):
    """The call ended for an unknown reason: if a write fails, gRPC's asynchronous calls may lose the server's
    status."""


class DataLoss(LongshortError):
    """An exported session is truncated or was changed."""

    code = grpc.StatusCode.DATA_LOSS


def of_code(code: grpc.StatusCode, message: str, **more: Any) -> LongshortError:
    """Returns an exception of the code's class."""
    return LongshortError._by_code.get(code, LongshortError)(message, code=code, **more)


def renumbered(message: str, first: int) -> str:
    """Adds `first` to the item indices in a server's message, for a call whose item 0 is the caller's item `first`."""
    return _ITEM.sub(lambda found: f"{found[1]}[{first + int(found[2])}]", message)


@contextmanager
def numbered_from(first: int) -> Iterator[None]:
    """Applies `renumbered` to exceptions raised inside."""
    try:
        yield
    except LongshortError as error:
        error.message = renumbered(error.message, first)
        raise


def code_of(number: int) -> grpc.StatusCode:
    """Converts the number of a google.rpc.Code."""
    return next((code for code in grpc.StatusCode if code.value[0] == number), grpc.StatusCode.UNKNOWN)


def of_rpc(error: Any, request_id: str) -> LongshortError:
    """Converts a grpc.RpcError that is a call, with the details in the server's trailers."""
    if error.details() == _LOST_STATUS:
        return StatusLost(
            "the call ended while messages were being sent, and gRPC lost its status", request_id=request_id
        )
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    pushback = _pushback_seconds(trailers.get("grpc-retry-pushback-ms"))
    retry_info = _retry_info_seconds(trailers.get("grpc-status-details-bin"))
    waits = [wait for wait in (pushback, retry_info) if wait is not None]
    depth = str(trailers.get("longshort-queue-depth", ""))
    code, message = error.code(), error.details() or ""
    if "x-request-id" not in trailers and _is_of_transport(code, message):
        code, message = grpc.StatusCode.UNAVAILABLE, f"the connection to the server was lost: {message}"
    return of_code(
        code,
        message,
        retry_after=max(waits) if waits and min(waits) >= 0 else None,
        queue_depth=int(depth) if depth.isdigit() else None,
        request_id=str(trailers.get("x-request-id", request_id)),
        may_retry=pushback is None or pushback >= 0,
    )


def _is_of_transport(code: grpc.StatusCode, message: str) -> bool:
    """Whether a status without the server's trailers means a lost connection: a proxy whose server died ends a stream
    that has begun by RST_STREAM, for which gRPC reports INTERNAL, CANCELLED or UNKNOWN."""
    if code is grpc.StatusCode.INTERNAL:
        return "serializing" not in message  # this client's own errors about messages
    return code in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN) and "RST_STREAM" in message


def _pushback_seconds(value: str | bytes | None) -> float | None:
    """Negative if a retry is forbidden; gRPC treats an unreadable value the same way."""
    if value is None:
        return None
    try:
        return int(value) / 1000
    except ValueError:
        return -1.0


def _retry_info_seconds(value: str | bytes | None) -> float | None:
    if not isinstance(value, bytes):
        return None
    try:
        for detail in error_details_pb2.ErrorStatus.FromString(value).details:
            if detail.type_url == RETRY_INFO:
                delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
                return delay.seconds + delay.nanos / 1e9
    except DecodeError:  # details of another kind
        pass
    return None
