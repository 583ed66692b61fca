"""Messages of attacks: small on the wire, large for the server."""

from __future__ import annotations

import gzip
import json
import random
import string
import zlib
from functools import cache

import zstandard

TOKENIZE, SCORE_TEXT, EMBED = (f"/longshort.v1.Inference/{name}" for name in ("Tokenize", "ScoreText", "Embed"))
SCORE_TEXTS, GENERATE_STREAM = (f"/longshort.v1.Inference/{name}" for name in ("ScoreTexts", "GenerateStream"))
MODEL_INFER = "/inference.GRPCInferenceService/ModelInfer"
LANGUAGE_MODEL, TEXTS, IMAGES = "enwiki", "languages", "flowers"  # of models/zoo
MESSAGE_BYTES = 8 << 20  # the server's default limit
MOST_TOKENS = 131_072  # that Tokenize takes
CODINGS = {"zstd": zstandard.ZstdCompressor().compress, "gzip": gzip.compress, "deflate": zlib.compress}


def varint(value: int) -> bytes:
    small = value & 0x7F
    return bytes([small]) if value < 0x80 else bytes([small | 0x80]) + varint(value >> 7)


def field(number: int, value: bytes | str | int) -> bytes:
    """A field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def model(name: str) -> bytes:
    return field(1, field(1, name))


def text(content: str) -> bytes:
    """An Input."""
    return field(1, content)


def ids(count: int) -> bytes:
    """An Input of zeros."""
    return field(3, field(1, bytes(count)))


def noise(size: int) -> str:
    """Letters that compress to about three quarters of their number."""
    return "".join(random.Random(size).choices(string.ascii_letters + string.digits, k=size))


@cache
def packed(coding: str, content: bytes) -> bytes:
    return CODINGS[coding](content)


def filled(begin: str, element: str, end: str, size: int = MESSAGE_BYTES) -> bytes:
    """JSON with as many equal elements, or parts of a string, as fit in this many bytes."""
    room = size - len(begin) - len(element) - len(end)
    return (begin + element * (room // len(element)) + end).encode()


def some_json(**fields: object) -> bytes:
    return json.dumps(fields).encode()
