"""Messages of gRPC that take much to unpack and to read: compressed, large, or many on one stream."""

from __future__ import annotations

import asyncio

from hostile.messages import (
    GENERATE_STREAM,
    LANGUAGE_MODEL,
    MESSAGE_BYTES,
    MODEL_INFER,
    MOST_TOKENS,
    SCORE_TEXTS,
    TOKENIZE,
    field,
    ids,
    model,
    noise,
    packed,
    text,
)
from hostile.target import Client, Target, main

IDS = field(2, ids(MESSAGE_BYTES - 100))
# A ratio a little below 100, as in bomb_http.
DENSE_IDS = model(noise(116_000)) + field(2, ids(MESSAGE_BYTES - 116_200))
WORDS = model(LANGUAGE_MODEL) + field(2, text("a" * MOST_TOKENS))
ZEROS = field(1, LANGUAGE_MODEL) + field(5, field(1, "document") + field(5, field(2, bytes(MESSAGE_BYTES - 100))))


def bomb(method: str, message: bytes, coding: str = "", calls: int = 600) -> Client:
    """One connection with this many calls, and then another one."""

    async def client(target: Target) -> None:
        headers = target.call_headers(method, **({"grpc_encoding": coding} if coding else {}))
        content = packed(coding, message) if coding else message
        async with target.by_grpc() as connection:
            for _ in range(calls):
                await connection.until(lambda: connection.open < 1000)
                await connection.begin(headers, content, coding != "")
            await connection.until(lambda: connection.open == 0)

    return client


def stream_bomb(message: bytes) -> Client:
    """Message after message on one stream."""

    async def client(target: Target) -> None:
        headers = target.call_headers(SCORE_TEXTS, grpc_encoding="gzip")
        async with target.by_grpc() as connection:
            stream = await connection.begin(headers, packed("gzip", message), True, ends=False)
            while connection.open:
                await connection.message(stream, packed("gzip", message), True)
                await asyncio.sleep(0)

    return client


CLIENTS = {
    "gzip": (4, bomb(TOKENIZE, IDS, "gzip")),
    "deflate": (1, bomb(TOKENIZE, IDS, "deflate")),
    "gzip for OIP": (1, bomb(MODEL_INFER, ZEROS, "gzip")),
    "gzip for a stream": (1, bomb(GENERATE_STREAM, IDS, "gzip")),
    "dense gzip": (4, bomb(TOKENIZE, DENSE_IDS, "gzip")),
    "answers": (4, bomb(TOKENIZE, WORDS, "gzip")),
    "plain": (4, bomb(TOKENIZE, IDS, calls=10)),
    "plain for OIP": (2, bomb(MODEL_INFER, ZEROS, calls=10)),
    "documents of a stream": (4, stream_bomb(field(1, 7) + field(2, ids(1_000_000)))),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
