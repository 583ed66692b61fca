"""Reads rows of JSON lines, uncompressed or compressed by gzip or zstd."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NoReturn, cast

import grpc
import zstandard

from longshort.batch.failures import InputDamaged
from longshort.batch.files import open_input
from longshort.batch.inputs import Input, Source
from longshort.batch.rows import MAX_ROW_BYTES, Columns, Row, Rows, bad, checked_text, good, kind
from longshort.batch.shards import Position, RawRow

_BUFFER_BYTES = 1 << 20
# Some programs write it at the beginning of a file.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Compressed bytes that are read, and decompressed, at a time. The limit is small because they may expand a lot.
_STORED_BYTES = 4 << 10


class JsonLines:
    """Offsets are bytes of the uncompressed text. A resumed run reads a compressed file from its beginning."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self._file: Input = source.files[0]
        self._columns = columns
        self.carried = ("fields",) if columns.carry is None else columns.carry
        self._stored: BinaryIO | None = None
        self._offset = 0

    def rows(self, start: Position) -> Iterator[RawRow]:
        """Lines from `start` on, as bytes. A damaged file ends with a row that is an InputDamaged. Raises OSError."""
        row, offset = (0, 0) if self._file.compression else (start.row, start.offset)
        with open_input(self._file.name) as stored:
            self._stored = stored
            stored.seek(offset)
            lines = _lines(_uncompressed(stored, self._file.compression))
            while (line := _next(lines)) is not None:
                length = line[1] if isinstance(line, tuple) else len(line) if isinstance(line, bytes) else 0
                begin, offset = offset, offset + length
                self._offset = offset
                if row >= start.row:
                    yield RawRow(row, begin, offset, length, line)
                row += 1

    def read_share(self) -> float:
        """The share of the stored file that was read so far, 0 to 1."""
        if not self._file.compression:
            return min(1.0, self._offset / max(1, self._file.bytes))
        if self._stored is None or self._stored.closed:
            return 1.0
        return min(1.0, self._stored.tell() / max(1, self._file.bytes))

    def parse(self, raw: Sequence[RawRow]) -> Rows:
        rows, carried = [], []
        for one in raw:
            row, fields = self._parse(one.row, one.data)
            rows.append(row)
            carried.append(fields)
        return Rows(rows, carried)

    def _parse(self, ordinal: int, line: Any) -> tuple[Row, dict[str, Any]]:
        name, columns = self._file.name, self._columns
        if isinstance(line, InputDamaged):
            return bad(name, ordinal, str(line), grpc.StatusCode.DATA_LOSS), self._carry({})
        if isinstance(line, tuple):
            message = f"the line has {line[1]} bytes; at most {MAX_ROW_BYTES} are read"
            return bad(name, ordinal, message), self._carry({})
        try:
            fields = _object(line.removeprefix(_BYTE_ORDER_MARK) if ordinal == 0 else line)
        except ValueError as error:
            return bad(name, ordinal, str(error)), self._carry({})
        carried = self._carry(fields)
        try:
            text = checked_text(fields.get(columns.text), columns.text)
            if not columns.second:
                return good(name, ordinal, text), carried
            second = checked_text(fields.get(columns.second), columns.second)
            return good(name, ordinal, (text, second)), carried
        except ValueError as error:
            return bad(name, ordinal, str(error)), carried

    def _carry(self, fields: dict[str, Any]) -> dict[str, Any]:
        columns = self._columns
        if columns.carry is not None:
            return {name: fields.get(name) for name in columns.carry}
        return {"fields": {name: value for name, value in fields.items() if name not in (columns.text, columns.second)}}


def _uncompressed(stored: BinaryIO, compression: str) -> BinaryIO:
    if compression == "gz":
        return cast(BinaryIO, io.BufferedReader(_Frames(stored, _gzip_member, padding=b"\0"), _BUFFER_BYTES))
    if compression == "zst":
        return cast(BinaryIO, io.BufferedReader(_Frames(stored, _zstd_frame), _BUFFER_BYTES))
    return cast(BinaryIO, io.BufferedReader(stored, _BUFFER_BYTES))


def _gzip_member() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


def _zstd_frame() -> Any:
    return zstandard.ZstdDecompressor().decompressobj()


class _Frames(io.RawIOBase):
    """Reads consecutive frames of zstd, or members of gzip. From a truncated file, it reads every byte up to the cut.
    gzip's own reader below a buffer loses up to a buffer there, and zstandard's does not report the truncation."""

    def __init__(self, stored: BinaryIO, begin: Callable[[], Any], padding: bytes = b"") -> None:
        """`begin`: makes a decompressor for one frame. `padding`: bytes that may follow a frame."""
        self._stored = stored
        self._begin = begin
        self._padding = padding
        self._compressed = b""
        self._text = memoryview(b"")
        self._frame: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Returns 0 at the end. Raises EOFError if the end is within a frame, and errors of the decompressor."""
        while not self._text:
            if not self._compressed:
                self._compressed = self._stored.read(_STORED_BYTES)
                if not self._compressed:
                    if self._frame is not None:
                        raise EOFError("it is truncated")
                    return 0
            if self._frame is None:
                self._compressed = self._compressed.lstrip(self._padding) if self._padding else self._compressed
                if not self._compressed:
                    continue
                self._frame = self._begin()
            self._text = memoryview(self._frame.decompress(self._compressed))
            self._compressed = b""
            if self._frame.eof:
                self._compressed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._text))
        buffer[:count], self._text = self._text[:count], self._text[count:]
        return count


def _lines(file: BinaryIO) -> Iterator[bytes | tuple[None, int]]:
    """Each line with its line end. A line that is too long is (None, its length in bytes)."""
    while line := file.readline(MAX_ROW_BYTES + 1):
        if len(line) <= MAX_ROW_BYTES:
            yield line
            continue
        length = len(line)
        while not line.endswith(b"\n") and (line := file.readline(_BUFFER_BYTES)):
            length += len(line)
        yield None, length


def _next(lines: Iterator[bytes | tuple[None, int]]) -> bytes | tuple[None, int] | InputDamaged | None:
    """The next line; None at the end. A damaged file has no lines after the damage."""
    try:
        return next(lines, None)
    except (EOFError, zlib.error, zstandard.ZstdError) as error:
        return InputDamaged(f"the compressed file is damaged from here on: {error}")


def _object(line: bytes) -> dict[str, Any]:
    """Parses a line. Raises ValueError, which says what is wrong with it."""
    try:
        found = json.loads(line.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is not UTF-8: byte {error.start} is {line[error.start]:#04x}") from None
    except RecursionError:
        raise ValueError("the line is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"the line is not JSON: {error}" if line.strip() else "the line is empty") from None
    if not isinstance(found, dict):
        raise ValueError(f"the line is {kind(found)}; it must be an object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")
