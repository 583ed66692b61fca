"""The Open Inference Protocol by REST, by hand."""

from __future__ import annotations

import http.client
import json
from typing import Any

from integration.server_process import Server

SECONDS = 60
JSON = {"content-type": "application/json"}


def send(
    server: Server, method: str, path: str, body: bytes | str = b"", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, header and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=SECONDS)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    content = answer.read()
    connection.close()
    return answer.status, found, content


def infer(server: Server, model: str, request: Any, **headers: str) -> tuple[int, Any]:
    """Status and JSON of an inference by JSON."""
    text = request if isinstance(request, str | bytes) else json.dumps(request)
    status, _, content = send(server, "POST", f"/v2/models/{model}/infer", text, {**JSON, **headers})
    return status, json.loads(content)


def error(answer: tuple[int, Any]) -> tuple[int, str]:
    status, content = answer
    assert set(content) == {"error"}
    return status, content["error"]


def document(*texts: str, **more: Any) -> dict[str, Any]:
    return {"name": "document", "shape": [len(texts)], "datatype": "BYTES", "data": list(texts), **more}
