"""Calls of clients that say who they are."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc

from integration import tokens
from integration.server_process import Server, wait_until

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


class Calls:
    """Calls of one connection, each with its own metadata."""

    def __init__(self, api: SimpleNamespace, server: Server, channel: grpc.Channel | None = None) -> None:
        channel = channel or server.channel
        self.api = api
        self.inference = api.inference_grpc.InferenceStub(channel)
        self.models = api.models_grpc.ModelsStub(channel)
        self.sessions = api.sessions_grpc.SessionsStub(channel)

    def generate(
        self,
        metadata: tokens.Metadata,
        session: str | None = None,
        model: str = "tiny",
        prompt: str = "abc",
        **more: Any,
    ) -> Any:
        request = self.api.inference.GenerateRequest(max_tokens=4, model={"name": model}, **more)
        if prompt:
            request.prompt.text = prompt
        if session is not None:
            request.session.id = session
        return self.inference.Generate(request, timeout=60, metadata=metadata)

    def go_on(self, metadata: tokens.Metadata, session: str) -> Any:
        """Goes on with a session that must be there."""
        request = self.api.inference.GenerateRequest(
            max_tokens=1, model={"name": "tiny"}, session={"id": session, "must_exist": True}, prompt={"text": "d"}
        )
        return self.inference.Generate(request, timeout=60, metadata=metadata)

    def tokenize(self, metadata: tokens.Metadata, model: str = "tiny") -> Any:
        request = self.api.inference.TokenizeRequest(model={"name": model}, input={"text": "abc"})
        return self.inference.Tokenize(request, timeout=60, metadata=metadata)

    def close(self, metadata: tokens.Metadata, session: str) -> None:
        request = self.api.sessions.CloseSessionRequest(model={"name": "tiny"}, session_id=session)
        self.sessions.CloseSession(request, timeout=60, metadata=metadata)

    def export(self, metadata: tokens.Metadata, session: str) -> list[Any]:
        request = self.api.sessions.ExportSessionRequest(model={"name": "tiny"}, session_id=session)
        return list(self.sessions.ExportSession(request, timeout=60, metadata=metadata))

    def bring(self, metadata: tokens.Metadata, session: str, parts: list[Any]) -> Any:
        """Imports what was exported."""
        message = self.api.sessions.ImportSessionRequest
        beginning = {"model": {"name": "tiny"}, "session_id": session}
        requests = [message(beginning=beginning), *(message(part=part) for part in parts)]
        return self.sessions.ImportSession(iter(requests), timeout=60, metadata=metadata)

    def list(self, metadata: tokens.Metadata) -> list[str]:
        request = self.api.models.ListModelsRequest()
        return [model.name for model in self.models.ListModels(request, timeout=60, metadata=metadata).models]


def get(server: Server, path: str, *authorization: str) -> tuple[int, str, str]:
    """Status, body and WWW-Authenticate of a GET."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.http_port}{path}")
    for value in authorization:
        request.add_header("Authorization", value)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return answer.status, answer.read().decode(), ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers.get("WWW-Authenticate", "")


def metrics(server: Server, token: str = "observe") -> str:
    status, body, _ = get(server, "/metrics", f"Bearer {token}")
    assert status == 200
    return body


def wait_until_taken(call: Callable[[], object]) -> None:
    """Returns when the server has seen the changed file: the call ends well."""

    def ends_well() -> bool:
        try:
            call()
        except grpc.RpcError as error:
            assert error.code() == UNAUTHENTICATED, error
            return False
        return True

    wait_until(ends_well)
