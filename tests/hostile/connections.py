"""Strangers that hold as many connections as the server has, each with as much as it takes in before any check."""

from __future__ import annotations

from integration import http2
from integration.http2 import frame

from hostile.messages import TOKENIZE
from hostile.target import Client, Target, main

# A chunk, and behind it the head of another one, whose extension does not end.
CHUNK_HEAD = b"ffdc\r\n" + b" " * 0xFFDC + b"\r\n1;" + b"x" * 65_500


def holding(fields: dict[str, object], content: bytes) -> Client:
    """Sends a request up to here, and no end of it."""

    async def client(target: Target) -> None:
        head = target.request(TOKENIZE, b"", **fields)
        async with target.by_http() as connection:
            await connection.send(head + content)
            await connection.reader.read()

    return client


async def unfinished_head(target: Target) -> None:
    async with target.by_http() as connection:
        await connection.send(b"POST / HTTP/1.1\r\n" + b"A: b\r\n" * 2_700)
        await connection.reader.read()


async def idle_grpc(target: Target) -> None:
    async with target.by_grpc() as connection:
        await connection.until(lambda: False)


async def burst(target: Target) -> None:
    """Frames that gRPC answers. It keeps the memory for as many answers until the connection ends."""
    async with target.by_grpc() as connection:
        await connection.send(frame(http2.SETTINGS, 0, 0, b"") * 13_000)
        await connection.until(lambda: False)


async def unfinished_handshake(target: Target) -> None:
    for port in (target.http_port, target.grpc_port):
        async with target.connect(port, tls=False) as connection:
            await connection.send(b"\x16\x03\x01\x40\x00" + b"\x01\x00\x3f\xfc\x03\x03" + bytes(8_000))
            await connection.reader.read()


async def long_hello(target: Target) -> None:
    """The head of a ClientHello, for all of which OpenSSL would take the memory at once."""
    async with target.connect(target.http_port, tls=False) as connection:
        await connection.send(b"\x16\x03\x01\x00\x08" + b"\x01\x01\xff\xb8\x03\x03" + bytes(2))
        if not await connection.reader.read():
            target.seen["long hellos refused"] += 1


async def asterisk(target: Target) -> None:
    """A target that is for OPTIONS alone."""
    async with target.by_http() as connection:
        await connection.send(f"GET * HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode())
        target.seen[f"status {await connection.answer()}"] += 1
        await connection.reader.read()


async def kept_open(target: Target) -> None:
    """A good request, and nothing more."""
    async with target.by_http() as connection:
        await connection.send(target.request(TOKENIZE, b'{"input":{"text":"' + b"a" * 126_000 + b'"}}'))
        await connection.answer()
        await connection.hold()


CLIENTS = {
    "chunk heads": (4_090, holding({"Content_Length": None, "Transfer_Encoding": "chunked"}, CHUNK_HEAD)),
    "bodies of 64 KB": (4_090, holding({"Content_Length": 65_536}, b" " * 65_500)),
    "unfinished heads": (4_090, unfinished_head),
    "long hellos": (2_000, long_hello),
    "asterisks": (4_090, asterisk),
    "idle gRPC": (2_000, idle_grpc),
    "bursts": (2_000, burst),
    "unfinished handshakes": (2_000, unfinished_handshake),
    "kept open": (1_000, kept_open),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
