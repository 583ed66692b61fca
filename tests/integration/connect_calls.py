"""Calls by HTTP and JSON, made with nothing but Python's own library."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

from integration.server_process import Server

TOKENIZE, SCORE_TEXT = "/longshort.v1.Inference/Tokenize", "/longshort.v1.Inference/ScoreText"
GENERATE_STREAM = "/longshort.v1.Inference/GenerateStream"
JSON_TYPE = {"Content-Type": "application/json"}
STREAM_TYPE = {"Content_Type": "application/connect+json"}
LONG = {"prompt": {"text": "x"}, "maxTokens": 60000}
# Its answer of 6 MB does not fit into the buffers of a connection whose client reads nothing.
LARGE = LONG | {"maxTokens": 6000, "tokenLogProbabilities": True, "topAlternatives": 20}
SECONDS = 60


def post(
    server: Server,
    path: str,
    body: Any,
    headers: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    method: str = "POST",
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case, and body. A body that is not bytes is sent as JSON."""
    address = ("127.0.0.1", server.http_port)
    connection = (
        http.client.HTTPConnection(*address, timeout=SECONDS)
        if tls is None
        else http.client.HTTPSConnection(*address, timeout=SECONDS, context=tls)
    )
    with contextlib.closing(connection):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, {**JSON_TYPE, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def envelope(message: Any, flags: int = 0) -> bytes:
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    return bytes([flags]) + len(content).to_bytes(4, "big") + content


def envelopes(stream: bytes) -> Iterator[tuple[int, Any]]:
    """Flags and JSON of each envelope."""
    while stream:
        length = int.from_bytes(stream[1:5], "big")
        yield stream[0], json.loads(stream[5 : 5 + length])
        stream = stream[5 + length :]


def connect(server: Server, source: str = "127.0.0.1") -> socket.socket:
    """A connection from this address."""
    return socket.create_connection(("127.0.0.1", server.http_port), timeout=SECONDS, source_address=(source, 0))


def head(path: str, **fields: object) -> bytes:
    """The head of a POST, with these fields: `_` stands for `-`."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def receive_all(connection: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            received += part
    return received


def lives(server: Server) -> bool:
    """Whether a probe is answered soon."""
    assert server.process.poll() is None, server.log()
    begin = time.monotonic()
    return server.http("/livez")[0] == 200 and time.monotonic() - begin < 20


def begin_stream(server: Server, message: object = LONG, source: str = "127.0.0.1", **fields: object) -> socket.socket:
    """The connection of a stream whose first bytes have come. It receives little more unless more of it is read."""
    body = envelope(message)
    connection = connect(server, source)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(head(GENERATE_STREAM, Content_Length=len(body), **STREAM_TYPE, **fields) + body)
    assert connection.recv(1 << 12).startswith(b"HTTP/1.1 200 ")
    return connection
