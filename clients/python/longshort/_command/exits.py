"""How the program tells a script what became of it."""

from __future__ import annotations

import grpc

from longshort.errors import LongshortError

OK = 0
USAGE = 1
REFUSED = 2
UNAVAILABLE = 3
CANCELLED = 4
OTHER = 5

HELP = """Exit codes:
  0  done
  1  an option or command is wrong, or a file cannot be read
  2  the server refused the request (INVALID_ARGUMENT, NOT_FOUND, too large, ...): the same will be refused again
  3  nobody answers, or the server is stopping or full (UNAVAILABLE, RESOURCE_EXHAUSTED): later may do
  4  --timeout ran out, or Ctrl-C (DEADLINE_EXCEEDED, CANCELLED)
  5  any other error
"""

_REFUSALS = (
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "DATA_LOSS",
    "OUT_OF_RANGE",
    "FAILED_PRECONDITION",
    "UNIMPLEMENTED",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
)


class UsageError(Exception):
    """The command line or a file is wrong."""


def of_code(code: str, message: str) -> int:
    """What a status, by its name, means to a script."""
    if code in _REFUSALS:
        return REFUSED
    if code == "RESOURCE_EXHAUSTED":
        # What gRPC says of a message over --max-message-bytes of the server; a full queue has the same code.
        return REFUSED if "larger than max" in message else UNAVAILABLE
    if code == "UNAVAILABLE":
        return UNAVAILABLE
    return CANCELLED if code in ("DEADLINE_EXCEEDED", "CANCELLED") else OTHER


def of_error(error: LongshortError) -> int:
    return of_code(error.code.name, error.message)


def code_number(code: str) -> int:
    """The google.rpc.Code of a status."""
    number: int = grpc.StatusCode[code].value[0]
    return number
