"""Rows as they are scored and written: a key, a document or an error, and what is carried through."""

from __future__ import annotations

import array
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import pyarrow as pa  # type: ignore[import-untyped]

from longshort.batch.arrow_values import NotUtf8
from longshort.inputs import Document, Text

# The longest row that is read at all: one gRPC message takes 2 GiB at the most, and a server by default 8 MiB.
MAX_ROW_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class RowError:
    """Why a row has no result."""

    # As a call's; tables have its name.
    code: grpc.StatusCode
    message: str


@dataclass(slots=True)
class Row:
    """One row of an input. Its key is (`input`, `ordinal`)."""

    input: str
    # Its place in the input file, from 0.
    ordinal: int
    # What is scored; None once it was, or if it cannot be.
    document: Document | None
    # 64 bits of BLAKE2b of the document, in hex; empty if there is none.
    text_hash: str = ""
    error: RowError | None = None


@dataclass(slots=True)
class Rows:
    """The rows of a shard, with what is carried through: a table, or a dict, for each row."""

    rows: list[Row]
    carried: pa.Table | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns, or fields of JSON objects, are read."""

    # What is scored: strings, bytes, or lists of token ids.
    text: str = "text"
    # The second document, of classifiers that compare two; empty: there is none.
    second: str = ""
    # Those that are carried through. None: all others of Parquet files; of JSON lines all others as one column
    # `fields` of JSON text.
    carry: tuple[str, ...] | None = None


def bad(input: str, ordinal: int, message: str, code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT) -> Row:
    return Row(_key(input), ordinal, None, "", RowError(code, message))


def good(input: str, ordinal: int, document: Document) -> Row:
    return Row(_key(input), ordinal, document, text_hash(document))


def _key(input: str) -> str:
    """A file's name as results have it: bytes that are not UTF-8 are written as \\xff."""
    return input if input.isascii() else input.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def text_hash(document: Document) -> str:
    """By which a result is known to be of this very text."""
    hashed = hashlib.blake2b(digest_size=8)
    for part in _parts(document):
        content = part.encode() if isinstance(part, str) else part
        if not isinstance(content, (bytes, bytearray, memoryview)):
            content = array.array("q", content).tobytes()
        hashed.update(len(content).to_bytes(8, "little"))
        hashed.update(content)
    return hashed.hexdigest()


def document_bytes(document: Document) -> int:
    """How long it is in a message; of token ids about."""
    return sum(_bytes(part) for part in _parts(document))


def _bytes(part: Text) -> int:
    if isinstance(part, str):
        return len(part) if part.isascii() else len(part.encode(errors="surrogatepass"))
    return len(part) if isinstance(part, bytes) else 3 * len(part)


def _parts(document: Document) -> Sequence[Text]:
    if isinstance(document, tuple) and len(document) == 2 and not isinstance(document[0], int):
        return document
    return (document,)


def checked_text(value: Any, name: str) -> Text:
    """A column's value as a text. Raises ValueError, saying what is wrong with it."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f'"{name}" has half a surrogate pair at character {error.start}') from None
        return value
    if isinstance(value, bytes):
        return value
    if isinstance(value, list) and all(is_id(one) for one in value):
        return value
    if isinstance(value, NotUtf8):
        raise ValueError(f'"{name}" is not UTF-8: {value}')
    if value is None:
        raise ValueError(f'there is no "{name}"')
    if isinstance(value, list):
        place = next(place for place, one in enumerate(value) if not is_id(one))
        raise ValueError(
            f'"{name}" is a list with {kind(value[place])} at place {place}; token ids are 32-bit integers'
        )
    raise ValueError(f'"{name}" is {kind(value)}; it must be a string or a list of token ids')


def is_id(value: Any) -> bool:
    return type(value) is int and -(2**31) <= value < 2**31


def kind(value: Any) -> str:
    """What JSON calls it."""
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        float: "a number",
        type(None): "null",
    }
    if isinstance(value, int) and not isinstance(value, bool):
        return "a number" if is_id(value) else f"the number {str(value)[:12]}"
    return names.get(type(value), f"a {type(value).__name__}")
