"""As much of HTTP/2 as a test needs that writes a connection's frames by hand."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

DATA, HEADERS, RESET, SETTINGS, PING, GO_AWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACKNOWLEDGED = 1, 4, 1
FRAME_HEADER_BYTES = 9


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """RFC 9113, 4.1."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


BEGINNING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"")
# The same, and takes gRPC's binary metadata as they are, without base64 (its own setting, 0xfe03).
BINARY_BEGINNING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 0xFE03, 1))


def header(name: str, value: str) -> bytes:
    """A header field that no table knows (RFC 7541, 6.2.2)."""
    return bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def binary_value(fields: bytes, name: str) -> bytes:
    """The value of a binary header field of less than 126 bytes, sent as above."""
    length_at = fields.index(name.encode()) + len(name)
    assert fields[length_at + 1] == 0, "what stands before bytes that are no base64"
    return fields[length_at + 2 : length_at + 1 + fields[length_at]]


def call_headers(method: str, **more: str) -> bytes:
    """The header fields of a call, with these ones more, `_` for `-`."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return b"".join(header(name, value) for name, value in fields.items())


def indexed_call_headers(method: str) -> tuple[bytes, bytes]:
    """The header fields of a connection's first call, which enter the server's table (RFC 7541, 6.2.1), and those of
    its later ones: 6 bytes."""
    fields = {":path": method, ":authority": "localhost", "te": "trailers", "content-type": "application/grpc"}
    post_by_http = b"\x83\x86"
    first = b"".join(b"\x40" + header(name, value)[1:] for name, value in fields.items())
    return post_by_http + first, post_by_http + bytes(0x80 | 62 + field for field in range(len(fields)))


def message_frame(stream: int, message: bytes) -> bytes:
    """A message that ends what its client has to say in a call."""
    return frame(DATA, END_STREAM, stream, struct.pack(">BI", 0, len(message)) + message)


def call(method: str, message: bytes, timeout: str) -> bytes:
    """The first call of a connection."""
    headers = call_headers(method, grpc_timeout=timeout)
    return frame(HEADERS, END_HEADERS, 1, headers) + message_frame(1, message)


def frames(connection: socket.socket) -> Iterator[tuple[int, int, bytes]]:
    """Kind, flags and payload of what the server sends, until it closes the connection."""
    with connection.makefile("rb") as stream:
        while len(head := stream.read(FRAME_HEADER_BYTES)) == FRAME_HEADER_BYTES:
            yield head[3], head[4], stream.read(int.from_bytes(head[:3], "big"))
