"""Pages of a Parquet file, which pyarrow reads whole, from their headers in Thrift's compact protocol."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple

# Thrift's types.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
# Fields of a PageHeader, and of its headers of data pages.
_UNCOMPRESSED_BYTES, _COMPRESSED_BYTES, _DATA, _DICTIONARY, _DATA_V2 = 2, 3, 5, 7, 8
_VALUES, _ROWS_V2, _LEVEL_ENCODING, _LEVEL_BYTES_V2 = 1, 3, 4, 6
_RLE = 3
_MAX_DEPTH = 8
# Headers mostly have less than 1 KiB, but their statistics may be long values.
_HEADER_BYTES = 4 << 10
_MAX_HEADER_BYTES = 16 << 20
# What is read at a time where pages are small: a request to an object store takes as long as reading a few of these.
_BLOCK_BYTES = 1 << 20
_CHUNKS_AT_ONCE = 32

# Reads these ranges of a file: the beginning and end of each.
ReadRanges = Callable[[Sequence[tuple[int, int]]], Sequence[bytes]]


class Page(NamedTuple):
    # 0 for a dictionary.
    rows: int
    # Uncompressed.
    bytes: int
    # How many values it has, lists without any and nulls included; of a dictionary, its own.
    values: int = 0
    # Where its content is in the file: begin and end.
    content: tuple[int, int] = (0, 0)
    # The bytes of the repetition levels of a page of version 2, which are not compressed. Those of version 1 are; then
    # None, and UNKNOWN in an encoding that is not read.
    level_bytes: int | None = None


UNKNOWN = -1


def read_pages(chunks: Sequence[Any], nested: Sequence[bool], read: ReadRanges) -> list[list[Page]]:
    """The pages of each column chunk. The list ends early where the chunk is damaged, which reading its rows reports.

    nested  whether the column of a chunk has lists. Older pages of those do not say how many rows they have: 1 at least

    Raises OSError.
    """
    walks = [_Walk(chunk, one) for chunk, one in zip(chunks, nested, strict=True)]
    for begin in range(0, len(walks), _CHUNKS_AT_ONCE):
        while active := [walk for walk in walks[begin : begin + _CHUNKS_AT_ONCE] if walk.place < walk.end]:
            for walk, content in zip(active, read([walk.next_range() for walk in active]), strict=True):
                walk.take(content)
    return [walk.pages for walk in walks]


def read_first_pages(chunks: Sequence[Any], read: ReadRanges) -> list[Page | None]:
    """The first page of each column chunk: the dictionary, if it has one. None if its header is damaged or long. Raises
    OSError."""
    walks = [_Walk(chunk, False) for chunk in chunks]
    for begin in range(0, len(walks), _CHUNKS_AT_ONCE):
        some = walks[begin : begin + _CHUNKS_AT_ONCE]
        for walk, content in zip(some, read([walk.next_range() for walk in some]), strict=True):
            walk.take(content)
    return [walk.pages[0] if walk.pages else None for walk in walks]


def largest_rows(pages: Sequence[Page], rows: int) -> int:
    """The largest bytes of the data pages that so many consecutive rows may be in: an upper bound of their values."""
    data = [page for page in pages if page.rows > 0]
    largest = total = end = 0
    # A page's last row, and the rows after it. `total` and `covered` are sums over the pages from `place` to `end`.
    covered = 0
    for page in data:
        while end < len(data) and (covered == 0 or covered - page.rows + 1 < rows):
            covered += data[end].rows
            total += data[end].bytes
            end += 1
        largest = max(largest, total)
        covered -= page.rows
        total -= page.bytes
    return largest


class _Walk:
    """Finds the pages of a chunk, header by header."""

    def __init__(self, chunk: Any, nested: bool) -> None:
        begin = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset:
            begin = min(begin, chunk.dictionary_page_offset)
        self.pages: list[Page] = []
        # Where the next header begins, and where the chunk ends.
        self.place, self.end = begin, begin + chunk.total_compressed_size
        self._nested = nested
        self._window = _HEADER_BYTES

    def next_range(self) -> tuple[int, int]:
        return self.place, min(self.end, self.place + self._window)

    def take(self, content: bytes) -> None:
        """Reads the headers in these bytes from `place` on."""
        begin, stored = self.place, 0
        while self.place - begin < len(content):
            file = io.BytesIO(content)
            file.seek(self.place - begin)
            try:
                fields = _struct(file, 0)
                stored, size = fields[_COMPRESSED_BYTES], fields[_UNCOMPRESSED_BYTES]
                if min(stored, size) < 0:
                    raise ValueError("a size is negative")
                begun = begin + file.tell()
                self.pages.append(
                    Page(self._rows(fields), 0 + size, _values(fields), (begun, begun + stored), _level_bytes(fields))
                )
            except EOFError:
                break
            except (KeyError, OverflowError, TypeError, ValueError):
                self.end = self.place
                return
            self.place = begin + file.tell() + stored
        if self.place > begin:
            self._window = _HEADER_BYTES if stored >= _BLOCK_BYTES // 4 else _BLOCK_BYTES
        elif len(content) < self._window or self._window >= _MAX_HEADER_BYTES:
            self.end = self.place
        else:
            self._window *= 16

    def _rows(self, fields: dict[int, Any]) -> int:
        if _DATA_V2 in fields:
            return max(1, int(fields[_DATA_V2][_ROWS_V2]))
        if _DATA in fields:
            return 1 if self._nested else max(1, int(fields[_DATA][_VALUES]))
        return 0


def _values(fields: dict[int, Any]) -> int:
    header: dict[int, Any] = next((fields[kind] for kind in (_DATA_V2, _DATA, _DICTIONARY) if kind in fields), {})
    return max(0, int(header.get(_VALUES, 0)))


def _level_bytes(fields: dict[int, Any]) -> int | None:
    if _DATA_V2 in fields:
        return max(0, int(fields[_DATA_V2].get(_LEVEL_BYTES_V2, 0)))
    return None if fields.get(_DATA, {}).get(_LEVEL_ENCODING, _RLE) == _RLE else UNKNOWN


def _struct(file: BinaryIO, depth: int) -> dict[int, Any]:
    """Reads a struct, and returns its 32-bit integers and structs. Raises EOFError at the end of the file, and
    ValueError for what is no struct."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    fields: dict[int, Any] = {}
    id = 0
    while (head := _byte(file)) & 15 != _STOP:
        type, delta = head & 15, head >> 4
        id = id + delta if delta else _zigzag(_varint(file))
        if type == _I32:
            fields[id] = _zigzag(_varint(file))
        elif type == _STRUCT:
            fields[id] = _struct(file, depth + 1)
        elif type not in (_TRUE, _FALSE):
            _skip(file, type)
    return fields


def _skip(file: BinaryIO, type: int) -> None:
    if type == _BYTE:
        _byte(file)
    elif type in (_I16, _I64):
        _varint(file)
    elif type == _DOUBLE:
        file.seek(8, os.SEEK_CUR)
    elif type == _BINARY:
        file.seek(_varint(file), os.SEEK_CUR)
    else:
        raise ValueError(f"page headers have no type {type}")


def _byte(file: BinaryIO) -> int:
    read = file.read(1)
    if not read:
        raise EOFError("the header is truncated")
    return read[0]


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise ValueError("the number is too long")


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
