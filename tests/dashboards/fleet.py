"""Servers with two versions of a language model and two classifiers, and one more whose model computes nothing: TLS,
tokens, sessions that can move."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import longshort
from integration import tokens
from integration.certificates import DAY, Authority, write_at_once
from integration.server_process import BINARY, ROOT, Server

ZOO = ROOT / "models/zoo"
IDENTITY_SERVER = BINARY.with_name("longshort-identity-server")
# By identity. "batch" is refused more than it gets.
TOKENS = {name: f"{name}-{'x' * 32}" for name in ("app", "notebook", "batch", "prometheus")}
RIGHTS = {"batch": "scopes=infer calls-per-second=2", "prometheus": "scopes=observe"}


class Fleet:
    """Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = folder / "models"
        self._write_models()
        authority = Authority("servers")
        self.authority = authority.pem
        self._ca = write_at_once(folder / "ca.pem", authority.pem)
        certificate, key = authority.server(end=30 * DAY).write(folder, "server")
        session_key = write_at_once(folder / "session.key", os.urandom(32))
        self.token_file = self.write_tokens()
        self._options = [
            f"--tls-certificate={certificate}",
            f"--tls-key={key}",
            f"--token-file={self.token_file}",
            f"--session-key-file={session_key}",
            "--watch-repository=500ms",
            "--max-streams=8",
            "--drain-timeout=5s",
        ]
        self.servers: list[Server] = []
        self.identity: Server

    def _write_models(self) -> None:
        for name in ("flowers", "languages"):
            shutil.copytree(ZOO / name / "1", self.repository / name / "1")
        (self.repository / "enwiki").mkdir()
        (self.repository / "enwiki/serving.json").write_text(
            json.dumps({"version_policy": "all", "max_queued_requests": 4})
        )
        self.add_version(1)
        self.add_version(2, segment_length=64)
        (self.folder / "identity/echo/1").mkdir(parents=True)

    def add_version(self, version: int, **changed: Any) -> None:
        """Puts a version of the language model into the repository, in one move."""
        beside = self.folder / "version"
        shutil.copytree(ZOO / "enwiki/1", beside)
        config = json.loads((beside / "config.json").read_text())
        (beside / "config.json").write_text(json.dumps(config | changed))
        beside.rename(self.repository / f"enwiki/{version}")

    def write_tokens(self, *more: str) -> Path:
        lines = [tokens.line(name, token, RIGHTS.get(name, "scopes=infer,sessions")) for name, token in TOKENS.items()]
        return tokens.write(self.folder / "tokens", *lines, *more)

    def _start(self, repository: Path, *options: str, **more: Any) -> Server:
        folder = self.folder / f"server.{time.monotonic_ns()}"
        return self._stack.enter_context(
            Server(repository, folder, *self._options, *options, trusted=self.authority, **more)
        )

    def client(self, identity: str, *servers: Server, **more: Any) -> longshort.Client:
        """Of these servers, or of all, in turn."""
        addresses = [f"127.0.0.1:{server.grpc_port}" for server in servers or self.servers]
        token = TOKENS.get(identity, identity)
        return longshort.Client(addresses, tls_ca=self._ca, token=token, **more)

    def __enter__(self) -> Fleet:
        with contextlib.ExitStack() as self._stack:
            self.servers = [self._start(self.repository) for _ in range(2)]
            self.identity = self._start(self.folder / "identity", program=IDENTITY_SERVER)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
