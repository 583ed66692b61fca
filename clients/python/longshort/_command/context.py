"""What a command works with."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longshort import methods
from longshort._proto import models_pb2, types_pb2
from longshort._sync.calls import Calls
from longshort._sync.client import Client
from longshort.metadata import CallOptions

CALL = CallOptions()


@dataclass
class Context:
    """The client, the model that was named, and the command's options."""

    client: Client
    calls: Calls
    model: types_pb2.ModelSelector
    options: argparse.Namespace

    def describe_model(self) -> models_pb2.Model:
        """What the server tells of the model."""
        return self.calls.unary(methods.GET_MODEL, models_pb2.GetModelRequest(model=self.model), CALL)


@dataclass(frozen=True)
class Command:
    """A subcommand of the program. `run` returns the exit code; it raises UsageError and LongshortError."""

    name: str
    # One line.
    summary: str
    # For --help: how to call it, what it does, examples.
    description: str
    add_options: Callable[[Any], None]
    run: Callable[[Context], int]


def at_least(least: int) -> Callable[[str], int]:
    """A number for argparse."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"is {value}; it must be at least {least}")
        return value

    number.__name__ = "number"
    return number
