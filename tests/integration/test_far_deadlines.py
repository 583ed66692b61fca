"""Deadlines that nanoseconds since 1970 have no room for. gRPC's own clients in C++ and Python send none beyond three
years; others do, so these calls are written by hand.
"""

from __future__ import annotations

import socket
import struct
from types import SimpleNamespace

import pytest

from integration.server_process import Server, wait_until

DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2 (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name: str, value: str) -> bytes:
    """A header field that no table knows (RFC 7541, 6.2.2)."""
    return bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def call(method: str, message: bytes, timeout: str) -> bytes:
    """A connection's first bytes: one call."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
        "grpc-timeout": timeout,
    }
    headers = b"".join(header(name, value) for name, value in fields.items())
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(SETTINGS, 0, 0, b"")
        + frame(HEADERS, END_HEADERS, 1, headers)
        + frame(DATA, END_STREAM, 1, struct.pack(">BI", 0, len(message)) + message)
    )


@pytest.mark.parametrize("hours", [1, 2_000_000, 2_700_000, 10_000_000, 99_999_999])
def test_a_deadline_may_be_millennia_away(api: SimpleNamespace, server: Server, hours: int) -> None:
    def ended() -> dict[str, float]:
        codes = ["OK", "DEADLINE_EXCEEDED"]
        return {code: server.metric("longshort_requests_total", rpc="Generate", code=code) for code in codes}

    before = ended()
    message = api.inference.GenerateRequest(prompt={"text": "p"}, max_tokens=2).SerializeToString()
    with socket.create_connection(("127.0.0.1", server.grpc_port)) as connection:
        connection.sendall(call("/longshort.v1.Inference/Generate", message, f"{hours}H"))
        wait_until(lambda: ended() != before)
    assert ended() == {**before, "OK": before["OK"] + 1}
