"""Rows that are scored and written: a key, a document or an error, and the carried columns."""

from __future__ import annotations

import array
import hashlib
import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import pyarrow as pa  # type: ignore[import-untyped]

from longshort.batch.inputs.arrow_values import NotUtf8
from longshort.batch.inputs.memory import Memory
from longshort.inputs import Document, Text

_MAX_PRINTED_DIGITS = 40
# What an error shows of the names of fields.
_SHOWN_FIELDS = 20
_SHOWN_CHARACTERS = 60


class LongNumber(str):
    """The digits of a JSON number that Python's types cannot represent. It is copied to the output as a string."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RowError:
    """Why a row has no result."""

    # The code as of a call. Tables have its name.
    code: grpc.StatusCode
    message: str


@dataclass(slots=True)
class Row:
    """One row of an input. Its key is (`input`, `ordinal`)."""

    input: str
    # Index in the input file, from 0.
    ordinal: int
    # The document to score; None after it was sent, or if the row has an error.
    document: Document | None
    # 64 bits of BLAKE2b of the document, in hex; empty without a document.
    text_hash: str = ""
    error: RowError | None = None


@dataclass(slots=True)
class Rows:
    """The rows of a shard with their carried columns: one table, or a dict for each row."""

    rows: list[Row]
    carried: pa.Table | list[dict[str, Any]]
    # How many rows lack a field that is named to be carried, by its name.
    lacking: dict[str, int] = field(default_factory=dict)
    # How many carried values are null, since the type of their column in the run does not have them, by its name.
    lost: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns, or fields of JSON objects, that are read."""

    # The documents: strings, bytes, or lists of token ids.
    text: str = "text"
    # The second documents, for models that compare or join two; empty: none.
    second: str = ""
    # The columns that are copied to the output. None: all others. The others of JSON lines become one column `fields`
    # of JSON text.
    carry: tuple[str, ...] | None = None
    memory: Memory = Memory()

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of a document."""
        return (self.text, self.second) if self.second else (self.text,)


def text_schema(names: Iterable[str]) -> pa.Schema:
    """The schema of carried columns that have JSON values: strings."""
    return pa.schema([(name, pa.string()) for name in names])


def too_large(what: str, size: int, memory: Memory) -> str:
    """The error of a row that is not read."""
    return f"the {what} has {size} bytes; at most {memory.row_bytes} are read: give more --memory"


def shown_name(name: str) -> str:
    return name[:_SHOWN_CHARACTERS]


def shown_names(names: Collection[str]) -> str:
    """The first names, and how many more there are."""
    named = ", ".join(map(shown_name, itertools.islice(names, _SHOWN_FIELDS)))
    more = f" and {len(names) - _SHOWN_FIELDS} more" if len(names) > _SHOWN_FIELDS else ""
    return f"{named or 'none'}{more}"


def bad(input: str, ordinal: int, message: str, code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT) -> Row:
    return Row(_key(input), ordinal, None, "", RowError(code, message))


def good(input: str, ordinal: int, document: Document) -> Row:
    return Row(_key(input), ordinal, document, text_hash(document))


def _key(input: str) -> str:
    """A file's name in the results: a byte that is not UTF-8 is written as \\xff."""
    return input if input.isascii() else input.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def text_hash(document: Document) -> str:
    """The hash that identifies the text of a result."""
    hashed = hashlib.blake2b(digest_size=8)
    for part in _parts(document):
        content = part.encode() if isinstance(part, str) else part
        if not isinstance(content, (bytes, bytearray, memoryview)):
            content = array.array("q", content).tobytes()
        hashed.update(len(content).to_bytes(8, "little"))
        hashed.update(content)
    return hashed.hexdigest()


def document_bytes(document: Document) -> int:
    """The bytes of a document in a message; an estimate for token ids."""
    return sum(_bytes(part) for part in _parts(document))


def _bytes(part: Text) -> int:
    if isinstance(part, str):
        return len(part) if part.isascii() else len(part.encode(errors="surrogatepass"))
    return len(part) if isinstance(part, bytes) else 3 * len(part)


def _parts(document: Document) -> Sequence[Text]:
    if isinstance(document, tuple) and len(document) == 2 and not isinstance(document[0], int):
        return document
    return (document,)


def checked_document(values: Sequence[Any], names: Sequence[str]) -> Document:
    """The values of the columns of a document. Raises ValueError, which says what is wrong with one of them."""
    return document_of([checked_text(value, name) for value, name in zip(values, names, strict=True)])


def document_of(texts: Sequence[Text]) -> Document:
    """A document of one or two texts."""
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


def checked_text(value: Any, name: str) -> Text:
    """A column's value as a text. Raises ValueError, which says what is wrong with it."""
    if isinstance(value, str) and not isinstance(value, LongNumber):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f'"{name}" has an unpaired surrogate at character {error.start}') from None
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
            f'"{name}" is a list with {kind(value[place])} at index {place}; token ids are 32-bit integers'
        )
    raise ValueError(f'"{name}" is {kind(value)}; it must be a string or a list of token ids')


def _number(digits: str) -> str:
    return f"the number {digits}" if len(digits) <= _MAX_PRINTED_DIGITS else f"a number of {len(digits)} characters"


def is_id(value: Any) -> bool:
    return type(value) is int and -(2**31) <= value < 2**31


def kind(value: Any) -> str:
    """The JSON name of a value's type."""
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        float: "a number",
        type(None): "null",
    }
    if isinstance(value, LongNumber):
        return _number(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and not isinstance(value, bool):
        return "a number" if is_id(value) else _number(str(value))
    return names.get(type(value), f"a {type(value).__name__}")
