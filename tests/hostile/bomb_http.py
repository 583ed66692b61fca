"""Bodies of some hundred bytes by HTTP that hold 8 MB, in each coding and for each protocol."""

from __future__ import annotations

from hostile.messages import (
    GENERATE_STREAM,
    LANGUAGE_MODEL,
    MESSAGE_BYTES,
    MOST_TOKENS,
    TOKENIZE,
    filled,
    noise,
    packed,
    some_json,
)
from hostile.target import Client, Target, main

INFER, COMPLETIONS = f"/v2/models/{LANGUAGE_MODEL}/infer", "/v1/completions"
ZEROS = filled('{"inputs":[{"data":[0', ",0", '],"name":"document","shape":[1],"datatype":"INT32"}]}')
ONES = filled(f'{{"model":"{LANGUAGE_MODEL}","max_tokens":1,"prompt":[1', ",1", "]}")
ESCAPES = filled(f'{{"model":"{LANGUAGE_MODEL}","prompt":"', "\\u0061", '"}')
IDS = filled('{"input":{"ids":{"ids":[0', ",0", "]}}}")
# The server may refuse what unpacks to more than 100 times its bytes. This has 84 KB of noise, and so a little less.
LETTERS = noise(116_000)
DENSE_ZEROS = filled(f'{{"id":"{LETTERS}","inputs":[{{"data":[0', ",0", '],"name":"document","shape":[1]}]}')
DENSE_ONES = filled(f'{{"user":"{LETTERS}","model":"{LANGUAGE_MODEL}","prompt":[1', ",1", "]}")
DENSE_IDS = filled(f'{{"model":{{"name":"{LETTERS}"}},"input":{{"ids":{{"ids":[0', ",0", "]}}}")
DENSE_WORD = filled(f'{{"user":"{LETTERS}","model":"{LANGUAGE_MODEL}","prompt":"', "\\u0061", '"}')
# And this has less than 1 MiB.
SMALL_ONES = filled(f'{{"model":"{LANGUAGE_MODEL}","prompt":[1', ",1", "]}", 1 << 20)


# Its answer is as large as can be, and is compressed as well.
WORDS = some_json(model={"name": LANGUAGE_MODEL}, input={"text": "a" * MOST_TOKENS})


def bomb(path: str, content: bytes, coding: str = "zstd", **fields: str) -> Client:
    async def client(target: Target) -> None:
        request = target.request(path, packed(coding, content), Content_Encoding=coding, **fields)
        await target.ask_for_ever(request)

    return client


def stream_bomb(content: bytes) -> Client:
    """In the envelope of a stream by Connect."""

    async def client(target: Target) -> None:
        body = packed("zstd", content)
        envelope = b"\x01" + len(body).to_bytes(4, "big") + body
        kind = "application/connect+json"
        async with target.by_http() as connection:
            while True:
                await connection.send(target.request(GENERATE_STREAM, envelope, kind, Connect_Content_Encoding="zstd"))
                target.seen[f"status {await connection.answer()}"] += 1

    return client


CLIENTS = {
    "OIP zeros": (32, bomb(INFER, ZEROS)),
    "completions of ids": (8, bomb(COMPLETIONS, ONES)),
    "escapes": (4, bomb(COMPLETIONS, ESCAPES)),
    "Connect ids": (8, bomb(TOKENIZE, IDS)),
    "gzip": (8, bomb(COMPLETIONS, ONES, "gzip")),
    "deflate": (8, bomb(TOKENIZE, IDS, "deflate")),
    "streams": (8, stream_bomb(filled('{"prompt":{"ids":{"ids":[0', ",0", "]}}}"))),
    "spaces": (8, bomb(TOKENIZE, b" " * MESSAGE_BYTES)),
    "answers": (32, bomb(TOKENIZE, WORDS, Accept_Encoding="gzip")),
    "dense OIP zeros": (8, bomb(INFER, DENSE_ZEROS)),
    "dense completions of ids": (8, bomb(COMPLETIONS, DENSE_ONES)),
    "dense Connect ids": (8, bomb(TOKENIZE, DENSE_IDS)),
    "dense escapes": (4, bomb(COMPLETIONS, DENSE_WORD, "gzip")),
    "1 MB of ids": (32, bomb(COMPLETIONS, SMALL_ONES)),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
