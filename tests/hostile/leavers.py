"""Clients that ask for a long generation, send more behind it, and leave at once."""

from __future__ import annotations

import asyncio

from hostile.messages import GENERATE_STREAM, LANGUAGE_MODEL, field, model, some_json, text
from hostile.target import Client, Target, main

LONG = {"prompt": "the ", "max_tokens": 60_000, "model": LANGUAGE_MODEL}


def leaving(streams: bool, behind: bytes) -> Client:
    async def client(target: Target) -> None:
        async with target.by_http() as connection:
            await connection.send(target.request("/v1/completions", some_json(stream=streams, **LONG)) + behind)
            await asyncio.sleep(0.5)

    return client


async def leaving_grpc(target: Target) -> None:
    message = model(LANGUAGE_MODEL) + field(2, text("the ")) + field(3, 60_000)
    async with target.by_grpc() as connection:
        for _ in range(100):
            await connection.begin(target.call_headers(GENERATE_STREAM), message)
        await asyncio.sleep(0.5)


CLIENTS = {
    "answers": (16, leaving(False, b"x" * 70_000)),
    "streams": (16, leaving(True, b"x" * 70_000)),
    "requests": (16, leaving(True, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 2_200)),
    "gRPC": (2, leaving_grpc),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
