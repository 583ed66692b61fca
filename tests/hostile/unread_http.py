"""Clients of HTTP that ask for large answers and read none."""

from __future__ import annotations

import asyncio
import struct

from hostile.messages import GENERATE_STREAM, LANGUAGE_MODEL, MOST_TOKENS, TEXTS, TOKENIZE, packed, some_json
from hostile.target import Client, Target, main

WORDS = some_json(model={"name": LANGUAGE_MODEL}, input={"text": "a" * MOST_TOKENS})
ECHO = some_json(model=LANGUAGE_MODEL, prompt="the same words " * 500, max_tokens=0, echo=True, logprobs=20)
EMBEDDED = some_json(model=TEXTS, input=["Guten Tag"] * 64)


def unread(path: str, body: bytes, times: int = 1, slowly: bool = False, **fields: str) -> Client:
    """`slowly`: takes some bytes every second."""

    async def client(target: Target) -> None:
        async with target.by_http() as connection:
            await connection.send(target.request(path, body, **fields) * times)
            while slowly and await connection.reader.read(4_096):
                await asyncio.sleep(1)
            await connection.hold()

    return client


STREAMED = some_json(
    model={"name": LANGUAGE_MODEL},
    prompt={"text": "the same words " * 33},
    maxTokens=1000,
    echo=True,
    tokenLogProbabilities=True,
    topAlternatives=20,
)


def unread_pages(path: str) -> Client:
    async def client(target: Target) -> None:
        async with target.by_http() as connection:
            await connection.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 12)
            await connection.hold()

    return client


CLIENTS = {
    "streams that echo": (
        200,
        unread(GENERATE_STREAM, struct.pack(">BI", 0, len(STREAMED)) + STREAMED, kind="application/connect+json"),
    ),
    "metrics": (200, unread_pages("/metrics")),
    "openapi": (200, unread_pages("/openapi.json")),
    "tokens": (250, unread(TOKENIZE, WORDS)),
    "tokens by zstd": (250, unread(TOKENIZE, packed("zstd", WORDS), Content_Encoding="zstd")),
    "tokens, read slowly": (100, unread(TOKENIZE, WORDS, slowly=True)),
    "log-probabilities": (100, unread("/v1/completions", ECHO)),
    "embeddings, many on a connection": (50, unread("/v1/embeddings", EMBEDDED, 100)),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
