"""Clients that begin large bodies and messages, and send just enough of them to stay."""

from __future__ import annotations

import asyncio
import struct

from hostile.messages import MESSAGE_BYTES, TOKENIZE
from hostile.target import Target, main

BODY_BYTES = 11_000_000


async def hog(target: Target) -> None:
    async with target.by_http() as connection:
        await connection.send(target.request(TOKENIZE, b"", Content_Length=BODY_BYTES) + b" " * (1 << 20))
        for _ in range((BODY_BYTES - (1 << 20)) // (64 << 10)):
            await asyncio.wait({asyncio.create_task(connection.reader.read(1))}, timeout=8)
            if connection.reader.at_eof():
                return
            await connection.send(b" " * (64 << 10))


async def hog_grpc(target: Target) -> None:
    """Messages of 8 MB of which 1 MB comes."""
    headers = target.call_headers(TOKENIZE)
    async with target.by_grpc() as connection:
        streams = [await connection.begin(headers, None) for _ in range(20)]
        for stream in streams:
            await connection.data(stream, struct.pack(">BI", 0, MESSAGE_BYTES) + bytes(1 << 20))
        await connection.until(lambda: connection.open == 0)


CLIENTS = {"bodies": (131, hog), "messages": (7, hog_grpc)}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
