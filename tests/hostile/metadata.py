"""Calls by gRPC whose header fields are as large as they may be, and connections that only begin calls."""

from __future__ import annotations

from hostile.messages import LANGUAGE_MODEL, TOKENIZE, field, model, text
from hostile.target import Client, Target, main

MESSAGE = model(LANGUAGE_MODEL) + field(2, text("a"))


def flood(**fields: str) -> Client:
    async def client(target: Target) -> None:
        headers = target.call_headers(TOKENIZE, **fields)
        async with target.by_grpc() as connection:
            while True:
                await connection.begin(headers, MESSAGE)
                await connection.until(lambda: connection.open < 100)

    return client


async def connect_again(target: Target) -> None:
    async with target.by_grpc() as connection:
        await connection.begin(target.call_headers(TOKENIZE), MESSAGE)
        await connection.until(lambda: connection.open == 0)


CLIENTS = {
    "header fields": (4, flood(**{f"x-{number}": "v" * 100 for number in range(100)})),
    "beyond the limit": (4, flood(**{f"x-{number}": "v" * 100 for number in range(400)})),
    "connections": (8, connect_again),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
