"""Token files and what clients show."""

from __future__ import annotations

import hashlib
from pathlib import Path

import grpc
from google.protobuf.duration_pb2 import Duration

Metadata = list[tuple[str, str]]


def line(name: str, token: str, rest: str = "scopes=infer,sessions") -> str:
    """The line of a token."""
    return f"{name} token-sha256={hashlib.sha256(token.encode()).hexdigest()} {rest}\n"


def write(path: Path, *lines: str) -> Path:
    """Puts a token file in the place of what was there, in one step."""
    new = path.with_suffix(".new")
    new.write_text("".join(lines))
    new.chmod(0o600)
    new.rename(path)
    return path


def bearer(token: str, client: str | None = None) -> Metadata:
    """The metadata of a call that shows this token, and calls itself so."""
    named = [] if client is None else [("x-client-id", client)]
    return [("authorization", f"Bearer {token}"), *named]


def retry_delay(error: grpc.RpcError) -> float:
    """Seconds that the error's RetryInfo says to wait."""
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    name = b"type.googleapis.com/google.rpc.RetryInfo"
    value = details[details.index(name) + len(name) :]
    # Fields 2 of Any and 1 of RetryInfo, each with a length of one byte.
    assert value[0] == 0x12 and value[2] == 0x0A
    return Duration.FromString(value[4 : 4 + value[3]]).ToTimedelta().total_seconds()
