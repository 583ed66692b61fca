"""Clients of gRPC that ask for large answers and give the server no credit to send them."""

from __future__ import annotations

import asyncio

from hostile.messages import (
    EMBED,
    GENERATE_STREAM,
    LANGUAGE_MODEL,
    MODEL_INFER,
    MOST_TOKENS,
    SCORE_TEXT,
    SCORE_TEXTS,
    TEXTS,
    TOKENIZE,
    field,
    model,
    noise,
    packed,
    text,
)
from hostile.target import Client, Target, main

WORDS = model(LANGUAGE_MODEL) + field(2, text("a" * MOST_TOKENS))
SCORED = model(LANGUAGE_MODEL) + field(2, text("the same words " * 500)) + field(3, 1) + field(4, 20)
EMBEDDED = model(TEXTS) + field(2, text("Guten Tag")) * 64
DOCUMENTS = field(5, field(8, b"a" * 20_000) * 64)
INFERRED = field(1, TEXTS) + field(5, field(1, "document") + field(2, "BYTES") + field(3, 64) + DOCUMENTS)
OPTIONS = field(4, model(LANGUAGE_MODEL) + field(2, 1) + field(3, 20))
DOCUMENT = field(2, text("the same words " * 500))
LONG_DOCUMENT = field(4, model(LANGUAGE_MODEL)) + field(2, text(noise(7_000_000)))
STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer"
ECHOED = model(LANGUAGE_MODEL) + field(2, text("the same words " * 500)) + field(3, 1)
ECHOED += field(7, 1) + field(8, 20) + field(9, 1)


def unread(method: str, *messages: bytes, calls: int = 1000, slowly: bool = False) -> Client:
    """`slowly`: gives credit for some bytes every second."""

    async def client(target: Target) -> None:
        headers = target.call_headers(method, grpc_encoding="gzip")
        async with target.by_grpc(reads=False) as connection:
            streams = []
            for _ in range(calls):
                stream = await connection.begin(headers, packed("gzip", messages[0]), True, len(messages) == 1)
                for message in messages[1:]:
                    await connection.message(stream, packed("gzip", message), True)
                streams.append(stream)
            while not connection.ended:
                await asyncio.sleep(1)
                for stream in streams if slowly else ():
                    await connection.give(stream, 1_000)
                    await connection.give(0, 1_000)

    return client


def small(method: str, calls: int, messages: int = 1) -> Client:
    """Calls with empty messages and short answers, none of which the server may send."""

    async def client(target: Target) -> None:
        async with target.by_grpc(reads=False, window=0) as connection:
            for _ in range(calls):
                stream = await connection.begin(target.call_headers(method), ends=messages == 1)
                for _ in range(messages - 1):
                    await connection.message(stream, b"")
            while not connection.ended:
                await asyncio.sleep(1)

    return client


CLIENTS = {
    "small answers": (6, small("/longshort.v1.Models/ListModels", 900)),
    "probes": (4, small("/grpc.health.v1.Health/Check", 1000)),
    "tokens": (3, unread(TOKENIZE, WORDS)),
    "more connections": (1, unread(TOKENIZE, WORDS, calls=60)),
    "tokens, read slowly": (1, unread(TOKENIZE, WORDS, slowly=True)),
    "log-probabilities": (2, unread(SCORE_TEXT, SCORED)),
    "embeddings": (1, unread(EMBED, EMBEDDED)),
    "OIP": (1, unread(MODEL_INFER, INFERRED)),
    "streams of documents": (1, unread(SCORE_TEXTS, field(1, 1) + DOCUMENT + OPTIONS, *[field(1, 2) + DOCUMENT] * 10)),
    "long documents": (1, unread(SCORE_TEXTS, field(1, 1) + LONG_DOCUMENT, b"", calls=28)),
    "OIP streams": (1, unread(STREAM_INFER, *[INFERRED] * 10, calls=100)),
    "OIP streams of errors": (2, small(STREAM_INFER, 1000, messages=64)),
    "streams that echo": (1, unread(GENERATE_STREAM, ECHOED)),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
