"""Parses times, numbers and names of options, and defines the exit codes that report the result to a script."""

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
# Only longshort-batch has this status.
TOO_FEW = 6

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
    """The exit code for the error of a call."""
    if error.code in _REFUSALS:
        return REFUSED
    if error.code == grpc.StatusCode.RESOURCE_EXHAUSTED:
        # gRPC's error for a message over the server's --max-message-bytes has the code of a full queue.
        return REFUSED if "larger than max" in error.message else UNAVAILABLE
    if error.code == grpc.StatusCode.UNAVAILABLE:
        return UNAVAILABLE
    return CANCELLED if error.code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED) else OTHER


def at_least(minimum: int) -> Callable[[str], int]:
    """A parser of numbers for argparse."""

    def number(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"is {value}; it must be at least {minimum}")
        return value

    number.__name__ = "number"
    return number


def percentage(text: str) -> float:
    """The share, 0 to 1, of a text such as "50" or "99.5%"."""
    value = float(text.removesuffix("%")) / 100
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"is {text}; it must be from 0 to 100")
    return value


def duration(text: str) -> float:
    """The seconds of a text such as "500ms", "30s", "1m30s", "2h" or "inf"."""
    if text == "inf":
        return float("inf")
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", text):
        raise argparse.ArgumentTypeError(f"is {text!r}; it must be a time with its unit, such as 500ms, 30s or 2m")
    seconds = sum(float(number) * units[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h)", text))
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"is {text}; it must be longer than 0")
    return seconds


def size(text: str) -> int:
    """The bytes of a text such as "512MB" or "2GB"; units are powers of 1024."""
    found = re.fullmatch(r"(\d+)(KB|MB|GB)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"is {text!r}; it must be a size with its unit, such as 512MB or 2GB")
    return int(found[1]) << {"KB": 10, "MB": 20, "GB": 30}[found[2]]


def with_options(message: str) -> str:
    """A message of the client with the program's names of options: tls_ca becomes --tls-ca."""
    names = r"\b(tls_(?:ca|certificate|key|server_name)|token_file)\b"
    return re.sub(names, lambda found: "--" + found[1].replace("_", "-"), message)
