"""Clients that export sessions and read nothing, and that announce large sessions and never send them.

The server has --session-key-file.
"""

from __future__ import annotations

import asyncio
import itertools
import json

from hostile.messages import LANGUAGE_MODEL, field, model, some_json, text
from hostile.target import Client, Target, main

SERVICE = "/longshort.v1.Sessions/"
GENERATE, GET_MODEL = "/longshort.v1.Inference/Generate", "/longshort.v1.Models/GetModel"
LANGUAGE = model(LANGUAGE_MODEL)
numbers = itertools.count()


def exports(calls: int) -> Client:
    """Makes a session, and exports it so many times at once."""

    async def client(target: Target) -> None:
        name = f"talk-{next(numbers)}"
        prompt = field(2, text("the same words " * 100)) + field(3, 1)
        async with target.by_grpc() as first:
            await first.begin(target.call_headers(GENERATE), LANGUAGE + prompt + field(11, field(1, name)))
            await first.until(lambda: first.open == 0)
        target.seen["sessions"] += 1
        async with target.by_grpc(reads=False) as connection:
            for _ in range(calls):
                await connection.begin(target.call_headers(f"{SERVICE}ExportSession"), LANGUAGE + field(2, name))
            while not connection.ended:
                await asyncio.sleep(1)

    return client


async def fingerprint(target: Target) -> str:
    """Returns the fingerprint of the language model."""
    async with target.by_http() as connection:
        await connection.send(target.request(GET_MODEL, some_json(model={"name": LANGUAGE_MODEL}), Connection="close"))
        answer = await connection.reader.read(-1)
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])["fingerprint"]


def imports(calls: int, announced: int) -> Client:
    """Announces so many bytes in each call, and sends 60,000 of them."""

    async def client(target: Target) -> None:
        header = field(1, announced) + field(2, await fingerprint(target)) + field(3, 1000)
        async with target.by_grpc() as connection:
            for _ in range(calls):
                beginning = field(1, LANGUAGE + field(2, f"talk-{next(numbers)}"))
                stream = await connection.begin(target.call_headers(f"{SERVICE}ImportSession"), beginning, ends=False)
                await connection.message(stream, field(2, field(1, header)))
                await connection.message(stream, field(2, field(2, bytes(60_000))))
            target.seen["imports"] += calls
            while not connection.ended:
                await asyncio.sleep(1)

    return client


CLIENTS = {
    "exports": (5, exports(200)),
    "imports": (5, imports(200, 1 << 20)),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
