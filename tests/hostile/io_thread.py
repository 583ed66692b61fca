"""Requests that keep the thread of all HTTP connections busy by themselves, as fast as they are answered."""

from __future__ import annotations

import asyncio

from hostile.messages import LANGUAGE_MODEL, TOKENIZE, some_json
from hostile.target import Client, Target, main


def flood(request: bytes) -> Client:
    async def client(target: Target) -> None:
        await target.ask_for_ever(request)

    return client


async def tokenize(target: Target) -> None:
    body = some_json(model={"name": LANGUAGE_MODEL}, input={"text": "a" * 15_000})
    await target.ask_for_ever(target.request(TOKENIZE, body))


async def pipelined(target: Target) -> None:
    """Never waits for an answer."""
    async with target.by_http() as connection:
        receiver = asyncio.create_task(connection.reader.read(-1))
        try:
            while not receiver.done():
                await connection.send((HEAD + b"\r\n") * 200)
        finally:
            receiver.cancel()


async def pipelined_in_turns(target: Target) -> None:
    async with target.by_http() as connection:
        while True:
            await connection.send((HEAD + b"\r\n") * 20)
            for _ in range(20):
                target.seen[f"status {await connection.answer()}"] += 1


async def after_the_end(target: Target) -> None:
    """The server has answered and reads on, so that the client gets the answer."""
    async with target.by_http() as connection:
        await connection.send(b"no request\r\n\r\n")
        while True:
            await connection.send(bytes(1 << 20))


HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"

CLIENTS = {
    "metrics": (16, flood(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")),
    "tokenize": (16, tokenize),
    "fields": (16, flood(HEAD + b"A:b\r\n" * 3_200 + b"\r\n")),
    "long paths": (16, flood(b"GET /v1/" + b"%61" * 5_300 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")),
    "pipelined": (32, pipelined),
    "after the end": (4, after_the_end),
    "pipelined in turns": (500, pipelined_in_turns),
    "openapi": (16, flood(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
