"""Calls of the HTTP port."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from email.message import Message
from typing import Any, NamedTuple

from integration.server_process import Server


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Message


def post(server: Server, path: str, body: object, content_type: str = "application/json", **headers: str) -> Answer:
    """Sends JSON, or bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return _call(server, path, data, {"content-type": content_type, **headers})


def get(server: Server, path: str, **headers: str) -> Answer:
    return _call(server, path, None, headers)


def _call(server: Server, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    url = f"http://127.0.0.1:{server.http_port}{path}"
    try:
        with opener.open(urllib.request.Request(url, data, headers), timeout=60) as answer:
            return Answer(answer.status, json.loads(answer.read()), answer.headers)
    except urllib.error.HTTPError as error:
        return Answer(error.code, json.loads(error.read()), error.headers)
