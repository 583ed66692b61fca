"""The exceptions of failed calls, one class for each code that a server answers with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import grpc
from google.protobuf.message import DecodeError

from longshort._proto import error_details_pb2

# What gRPC says in the place of a status that it forgot.
_LOST_STATUS = "Internal error from Core"
# How a server names an item of a call.
_ITEM = re.compile(r"\b(inputs|second_inputs|images)\[(\d+)\]")
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


class LongshortError(Exception):
    """A call that failed.

    code         grpc.StatusCode
    message      what is wrong, for people: the field, its value and the limit
    retry_after  seconds after which trying again may help, if the server told
    queue_depth  how many requests wait at the server, if it told
    request_id   names the call in the server's log
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
        # False if the server said by its pushback that nobody should try again.
        self.may_retry = may_retry

    def __str__(self) -> str:
        named = f" [request {self.request_id}]" if self.request_id else ""
        later = f" (try again after {self.retry_after:g} s)" if self.retry_after is not None else ""
        return f"{self.code.name}: {self.message}{later}{named}"

    _by_code: ClassVar[dict[grpc.StatusCode, type[LongshortError]]] = {}

    def __init_subclass__(cls) -> None:
        if "code" in vars(cls):
            LongshortError._by_code[cls.code] = cls


class Cancelled(LongshortError):
    """The call was cancelled, on this side or by the server (a reader that took nothing for long)."""

    code = grpc.StatusCode.CANCELLED


class InvalidArgument(LongshortError):
    """The request breaks a limit. The same request will be refused again."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class DeadlineExceeded(LongshortError):
    """The timeout ran out, or the server could not do it in time."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class NotFound(LongshortError):
    """There is no such model, version or session."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(LongshortError):
    """There is a session of that id."""

    code = grpc.StatusCode.ALREADY_EXISTS


class PermissionDenied(LongshortError):
    """The token does not cover the call, or the model is not for its holder."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unauthenticated(LongshortError):
    """No token, or one that is unknown, malformed or expired."""

    code = grpc.StatusCode.UNAUTHENTICATED


class ResourceExhausted(LongshortError):
    """The server is full (then it tells `retry_after`), or the message is too large."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class FailedPrecondition(LongshortError):
    """The model does not do what was asked for, or the session holds other tokens than expected."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Aborted(LongshortError):
    """Another call uses the session."""

    code = grpc.StatusCode.ABORTED


class Unimplemented(LongshortError):
    """The server has no such call."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Internal(LongshortError):
    """The model kept failing on this request."""

    code = grpc.StatusCode.INTERNAL


class Unavailable(LongshortError):
    """Nobody answers, or the server is stopping."""

    code = grpc.StatusCode.UNAVAILABLE


class StatusLost(Unavailable):
    """The call ended, and why is not known: a message could not be sent any more, and then gRPC's asynchronous calls
    may forget what the server said."""


class DataLoss(LongshortError):
    """An exported session was cut short or changed."""

    code = grpc.StatusCode.DATA_LOSS


def of_code(code: grpc.StatusCode, message: str, **more: Any) -> LongshortError:
    """The exception of this code's class."""
    return LongshortError._by_code.get(code, LongshortError)(message, code=code, **more)


def renumbered(message: str, first: int) -> str:
    """What a server says of a call whose item 0 is the caller's item `first`, in the caller's numbers."""
    return _ITEM.sub(lambda found: f"{found[1]}[{first + int(found[2])}]", message)


@contextmanager
def numbered_from(first: int) -> Iterator[None]:
    """The same for what the call in it raises."""
    try:
        yield
    except LongshortError as error:
        error.message = renumbered(error.message, first)
        raise


def code_of(number: int) -> grpc.StatusCode:
    """Of the number of a google.rpc.Code."""
    return next((code for code in grpc.StatusCode if code.value[0] == number), grpc.StatusCode.UNKNOWN)


def of_rpc(error: Any, request_id: str) -> LongshortError:
    """What gRPC raised (a grpc.RpcError that is a call), with what the server's trailers tell."""
    if error.details() == _LOST_STATUS:
        return StatusLost("the call ended while messages were sent, and its status was lost", request_id=request_id)
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    pushback = _pushback_seconds(trailers.get("grpc-retry-pushback-ms"))
    told = _retry_info_seconds(trailers.get("grpc-status-details-bin"))
    waits = [wait for wait in (pushback, told) if wait is not None]
    depth = str(trailers.get("longshort-queue-depth", ""))
    return of_code(
        error.code(),
        error.details() or "",
        retry_after=max(waits) if waits and min(waits) >= 0 else None,
        queue_depth=int(depth) if depth.isdigit() else None,
        request_id=str(trailers.get("x-request-id", request_id)),
        may_retry=pushback is None or pushback >= 0,
    )


def _pushback_seconds(value: str | bytes | None) -> float | None:
    """Negative if nobody should try again, which is also what gRPC takes an unreadable value for."""
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
