"""Reads rows of JSON lines, uncompressed or compressed."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO, cast

import grpc

from longshort.batch.inputs.compression import uncompressed
from longshort.batch.inputs.files import open_input
from longshort.batch.inputs.memory import Memory
from longshort.batch.inputs.rows import (
    Columns,
    LongNumber,
    Row,
    Rows,
    bad,
    checked_text,
    document_of,
    good,
    kind,
    shown_name,
    shown_names,
    text_schema,
    too_large,
)
from longshort.batch.inputs.shards import Position, RawRow
from longshort.batch.inputs.sources import Input, Source
from longshort.batch.report.counts import FIELDS
from longshort.batch.report.failures import InputDamaged
from longshort.inputs import Text

_BUFFER_BYTES = 1 << 20
# Some programs write it at the beginning of a file.
_BYTE_ORDER_MARKS = re.compile(rb"(?:\xef\xbb\xbf)++")
_WIDE_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32LE"),
    (b"\0\0\xfe\xff", "UTF-32BE"),
    (b"\xff\xfe", "UTF-16LE"),
    (b"\xfe\xff", "UTF-16BE"),
)
# Without a mark: which of the first four bytes are zero.
_WIDE_ZEROS: dict[tuple[bool, ...], str] = {
    (False, True, True, True): "UTF-32LE",
    (True, True, True, False): "UTF-32BE",
    (False, True, False, True): "UTF-16LE",
    (True, False, True, False): "UTF-16BE",
}
# Python converts integers of up to 4300 digits.
_MAX_DIGITS = 4300
# json.loads and json.dumps allow about 1000, fewer in a deeper call.
_MAX_DEPTH = 256
# What is read of a file without finding a row's end.
_MAX_LINE_BYTES = 1 << 30
_MAX_BLANK_BYTES = 1 << 20
_ENDLESS = "the file is damaged from here on: a {} has more than {} bytes"
_TOO_DEEP = f"the line is nested too deeply: at most {_MAX_DEPTH} levels are read"
# Strings and brackets of a line, and its commas outside of strings; and the memory that the objects of each take.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{,]', re.DOTALL)
_OBJECT_BYTES, _ITEM_BYTES = 80, 44
# The first rows of a file, which show the fields that it has.
_FIRST_ROWS = 100
_FIRST_BYTES = 4 << 20


class _NotUtf8File(InputDamaged):
    """No line of the file can be read."""


_Line = bytes | tuple[None, int] | _NotUtf8File


class JsonLines:
    """Offsets are bytes of the uncompressed text. A resumed run reads a compressed file from its beginning. Blank lines
    are no rows."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self._file: Input = source.files[0]
        self._columns = columns
        self.carried = text_schema(("fields",) if columns.carry is None else columns.carry)
        self._stored: BinaryIO | None = None
        self._offset = 0

    def rows(self, start: Position) -> Iterator[RawRow]:
        """Lines from `start` on, as bytes. A damaged file ends with a row that is an InputDamaged. Raises OSError."""
        row, offset = (0, 0) if self._file.compression else (start.row, start.offset)
        with open_input(self._file.name) as stored:
            self._stored = stored
            stored.seek(offset)
            lines = _lines(uncompressed(stored, self._file.compression), offset == 0, self._columns.memory.row_bytes)
            while (line := _next(lines)) is not None:
                length = line[1] if isinstance(line, tuple) else len(line) if isinstance(line, bytes) else 0
                # The end of a damaged file is the file's, so that a resumed run finds no further row.
                end = max(offset, self._file.bytes) if isinstance(line, InputDamaged) else offset + length
                begin, offset = offset, end
                self._offset = offset
                if _is_blank(line):
                    continue
                if row >= start.row:
                    yield RawRow(row, begin, offset, length, line)
                row += 1

    def fields_of_first_rows(self) -> Iterator[Collection[str]]:
        """The names of the fields of each object in the first rows. Raises OSError."""
        for raw in itertools.islice(self.rows(Position()), _FIRST_ROWS):
            if isinstance(raw.data, bytes):
                with contextlib.suppress(ValueError):  # an error of the row, as parse() reports it
                    yield _object(raw.data, self._columns.memory).keys()
            if raw.end > _FIRST_BYTES:
                return

    def read_share(self) -> float:
        """The share of the stored file that was read so far, 0 to 1."""
        if not self._file.compression:
            return min(1.0, self._offset / max(1, self._file.bytes))
        if self._stored is None or self._stored.closed:
            return 1.0
        return min(1.0, self._stored.tell() / max(1, self._file.bytes))

    def parse(self, raw: Sequence[RawRow]) -> Rows:
        rows, carried = [], []
        lacking: Counter[str] = Counter()
        for one in raw:
            row, fields = self._parse(one.row, one.data, lacking)
            rows.append(row)
            carried.append(fields)
        return Rows(rows, carried, dict(lacking))

    def _parse(self, ordinal: int, line: Any, lacking: Counter[str]) -> tuple[Row, dict[str, Any]]:
        name, columns = self._file.name, self._columns
        if isinstance(line, InputDamaged):
            code = grpc.StatusCode.INVALID_ARGUMENT if isinstance(line, _NotUtf8File) else grpc.StatusCode.DATA_LOSS
            return bad(name, ordinal, str(line), code), self._carry({})
        if isinstance(line, tuple):
            return bad(name, ordinal, too_large("line", line[1], columns.memory)), self._carry({})
        try:
            fields = _object(line, columns.memory)
        except ValueError as error:
            return bad(name, ordinal, str(error)), self._carry({})
        carried = self._carry(fields)
        lacking.update(name for name in columns.carry or () if name not in fields)
        try:
            return good(name, ordinal, document_of([_text(fields, one) for one in columns.texts])), carried
        except ValueError as error:
            return bad(name, ordinal, str(error)), carried

    def _carry(self, fields: dict[str, Any]) -> dict[str, Any]:
        columns = self._columns
        if columns.carry is not None:
            return {name: fields.get(name) for name in columns.carry}
        return {"fields": {name: value for name, value in fields.items() if name not in columns.texts}}


def _text(fields: dict[str, Any], name: str) -> Text:
    """Raises ValueError. The message names the fields that a user may have meant."""
    if name in fields:
        return checked_text(fields[name], name)
    texts = [one for one, value in fields.items() if isinstance(value, str) and not isinstance(value, LongNumber)]
    longest = max(texts, key=lambda one: len(fields[one]), default=None)
    likely = f' (the longest text is in "{shown_name(longest)}")' if longest is not None else ""
    raise ValueError(f'there is no "{name}"{FIELDS}{shown_names(fields)}{likely}')


def _lines(file: BinaryIO, is_begin: bool, max_bytes: int) -> Iterator[_Line]:
    """Each line with its line end. A line that is too long is (None, its length in bytes)."""
    if is_begin and (encoding := _wide_encoding(_peek(file))):
        yield _NotUtf8File(f"the file is {encoding}; it must be UTF-8: convert it by `iconv -f {encoding} -t UTF-8`")
        return
    blank = 0
    while line := file.readline(max_bytes + 1):
        blank = blank + len(line) if _is_blank(line) else 0
        if blank > _MAX_BLANK_BYTES:
            raise InputDamaged(_ENDLESS.format("run of blank lines", _MAX_BLANK_BYTES))
        if len(line) <= max_bytes:
            yield line
            continue
        length = len(line)
        while not line.endswith(b"\n") and (line := file.readline(_BUFFER_BYTES)):
            length += len(line)
            if length > _MAX_LINE_BYTES:
                raise InputDamaged(_ENDLESS.format("line", _MAX_LINE_BYTES))
        yield None, length


def _peek(file: BinaryIO) -> bytes:
    """The first four bytes, or fewer."""
    return cast(io.BufferedReader, file).peek(4)[:4]


def _wide_encoding(head: bytes) -> str:
    """The encoding of a file of 16-bit or 32-bit units, by its byte order mark or the zeros of its first character."""
    for mark, encoding in _WIDE_MARKS:
        if head.startswith(mark):
            return encoding
    return _WIDE_ZEROS.get(tuple(byte == 0 for byte in head), "")


def _next(lines: Iterator[_Line]) -> _Line | InputDamaged | None:
    """The next line; None at the end. A damaged file has no lines after the damage."""
    try:
        return next(lines, None)
    except InputDamaged as error:
        return error


def _is_blank(line: _Line | InputDamaged) -> bool:
    if not isinstance(line, bytes):
        return False
    rest = _without_marks(line)
    return not rest or rest.isspace()


def _without_marks(line: bytes) -> bytes:
    """Files that were joined have byte order marks at the beginning of lines."""
    marks = _BYTE_ORDER_MARKS.match(line)
    return line[marks.end() :] if marks else line


def _object(line: bytes, memory: Memory) -> dict[str, Any]:
    """Parses a line. Raises ValueError, which says what is wrong with it."""
    if (size := _parsed_bytes(line, memory.parsed_bytes)) > memory.parsed_bytes:
        raise ValueError(
            f"the values of the line take some {size} bytes of memory; at most {memory.parsed_bytes} are allowed: give"
            " more --memory"
        )
    try:
        found = json.loads(_without_marks(line).decode(), parse_int=_integer, parse_float=_number)
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as error:
        if b"\r" in line.rstrip(b"\r\n"):
            raise ValueError(
                "its lines end with CR alone; they must end with LF: convert it by `tr '\\r' '\\n'`"
            ) from None
        raise ValueError(f"the line is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"the line is {kind(found)}; it must be an object")
    if line.count(b"[") + line.count(b"{") > _MAX_DEPTH and _is_deep(found):
        raise ValueError(_TOO_DEEP)
    return found


def _parsed_bytes(line: bytes, limit: int) -> int:
    """About how many bytes of memory the values of a line take, apart from the strings' own; 0 if they cannot exceed
    the limit."""
    if _OBJECT_BYTES * len(line) <= limit:
        return 0
    objects = line.count(b'"') // 2 + line.count(b"[") + line.count(b"{")
    if _OBJECT_BYTES * objects + _ITEM_BYTES * line.count(b",") <= limit:
        return 0
    return sum(_ITEM_BYTES if token[0] == b"," else _OBJECT_BYTES for token in _TOKEN.finditer(line))


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        nested = (one for one in level if isinstance(one, dict | list))
        level = [value for one in nested for value in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return True


def _integer(digits: str) -> int | LongNumber:
    return int(digits) if len(digits) <= _MAX_DIGITS else LongNumber(digits)


def _number(digits: str) -> float | LongNumber:
    value = float(digits)
    return value if math.isfinite(value) else LongNumber(digits)
