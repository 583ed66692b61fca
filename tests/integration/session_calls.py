"""Calls that go on with sessions, and what tests of moving them share."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from integration import tokens
from integration.server_process import BINARY, Server


def write_key(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return path


def say(
    api: SimpleNamespace,
    server: Server,
    session: str,
    prompt: str,
    metadata: tokens.Metadata | None = None,
    session_options: dict[str, Any] | None = None,
    **sampling: Any,
) -> Any:
    """Goes on with 40 tokens."""
    request = api.inference.GenerateRequest(
        prompt={"text": prompt},
        max_tokens=40,
        sampling=sampling,
        session={"id": session, **(session_options or {})},
        return_raw=True,
        token_log_probabilities=True,
    )
    stub = api.inference_grpc.InferenceStub(server.channel)
    return stub.Generate(request, timeout=30, metadata=metadata or [])


def expect_same(one: Any, other: Any) -> None:
    """The same tokens; log-probabilities up to rounding, because how a prompt is cut into steps follows the time."""
    assert one.raw == other.raw
    for mine, yours in zip(one.tokens, other.tokens, strict=True):
        assert mine.id == yours.id
        assert abs(mine.log_probability - yours.log_probability) < 1e-5


def list_sessions(
    api: SimpleNamespace, server: Server, all_owners: bool = False, metadata: tokens.Metadata | None = None
) -> list[Any]:
    """Those of the first page, which are all here."""
    request = api.sessions.ListSessionsRequest(all_owners=all_owners)
    stub = api.sessions_grpc.SessionsStub(server.channel)
    return list(stub.ListSessions(request, timeout=30, metadata=metadata or []).sessions)


def drain_command(server: Server, to: str, *options: str) -> list[str]:
    """Of the client program."""
    at = f"--server=127.0.0.1:{server.grpc_port}"
    return [str(BINARY.with_name("longshort")), at, "session", "drain", f"--to={to}", "--json", *options]
