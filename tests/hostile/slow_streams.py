"""Readers that take a few bytes a second of streams that never end by themselves."""

from __future__ import annotations

import asyncio

from hostile.messages import GENERATE_STREAM, LANGUAGE_MODEL, field, model, some_json, text
from hostile.target import Client, Target, main

LONG = model(LANGUAGE_MODEL) + field(2, text("the ")) + field(3, 60_000) + field(7, 1) + field(8, 20)


def slow_grpc(method: str, message: bytes, calls: int) -> Client:
    async def client(target: Target) -> None:
        async with target.by_grpc(reads=False) as connection:
            streams = [await connection.begin(target.call_headers(method), message) for _ in range(calls)]
            while connection.open:
                for stream in streams:
                    await connection.give(stream, 1)
                await connection.give(0, len(streams))
                await asyncio.sleep(1)

    return client


async def slow_http(target: Target) -> None:
    body = some_json(model=LANGUAGE_MODEL, prompt="the ", max_tokens=60_000, stream=True, logprobs=20)
    async with target.by_http() as connection:
        await connection.send(target.request("/v1/completions", body))
        while await connection.reader.read(16):
            await asyncio.sleep(1)


async def watches_that_are_reset(target: Target) -> None:
    """Fewer at a time than the guard of connections allows."""
    headers = target.call_headers("/grpc.health.v1.Health/Watch")
    async with target.by_grpc() as connection:
        while True:
            for _ in range(100):
                await connection.reset(await connection.begin(headers))
            await asyncio.sleep(0.1)


CLIENTS = {
    "streams by gRPC": (4, slow_grpc(GENERATE_STREAM, LONG, 50)),
    "watches": (10, slow_grpc("/grpc.health.v1.Health/Watch", b"", 1_000)),
    "watches that are reset": (4, watches_that_are_reset),
    "streams by HTTP": (100, slow_http),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
