"""What a command line means: times, numbers, names of options; and how a program tells a script what became of it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import NoReturn

import grpc

from longshort.errors import LongshortError

# Exit codes, as those of the program `longshort`.
OK = 0
USAGE = 1
REFUSED = 2
UNAVAILABLE = 3
CANCELLED = 4
OTHER = 5

_REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.DATA_LOSS,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
)


class UsageError(Exception):
    """The command line or a file is wrong."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f'{message}\n"{self.prog} --help" lists the options.')


def exit_code(error: LongshortError) -> int:
    """What a call's error means to a script."""
    if error.code in _REFUSALS:
        return REFUSED
    if error.code == grpc.StatusCode.RESOURCE_EXHAUSTED:
        # What gRPC says of a message over --max-message-bytes of the server; a full queue has the same code.
        return REFUSED if "larger than max" in error.message else UNAVAILABLE
    if error.code == grpc.StatusCode.UNAVAILABLE:
        return UNAVAILABLE
    return CANCELLED if error.code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED) else OTHER


def at_least(least: int) -> Callable[[str], int]:
    """A number for argparse."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"is {value}; it must be at least {least}")
        return value

    number.__name__ = "number"
    return number


def duration(text: str) -> float:
    """Seconds, of "500ms", "30s", "1m30s", "2h" or "inf"."""
    if text == "inf":
        return float("inf")
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", text):
        raise argparse.ArgumentTypeError(f"is {text!r}; it must be a time with its unit, such as 500ms, 30s or 2m")
    seconds = sum(float(number) * units[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h)", text))
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"is {text}; it must be longer than 0")
    return seconds


def with_options(message: str) -> str:
    """The client's words, with the program's: tls_ca is --tls-ca here."""
    names = r"\b(tls_(?:ca|certificate|key|server_name)|token_file)\b"
    return re.sub(names, lambda found: "--" + found[1].replace("_", "-"), message)
