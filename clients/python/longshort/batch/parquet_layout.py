"""What a Parquet file has: its columns, and how many of its rows fit in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from longshort.batch.column_types import duplicate, is_text, plain
from longshort.batch.failures import Refused
from longshort.batch.files import read_ranges
from longshort.batch.memory import Memory
from longshort.batch.pages import Page, largest_rows, read_pages
from longshort.batch.rows import Columns

# How many rows are read at a time: fewer where few rows may have many bytes.
MAX_BATCH_ROWS = 256
_MIN_BATCH_ROWS = 4
# Columns with more bytes a value, on the average, are carried only if they are named.
_LARGE_VALUE_BYTES = 1 << 10
# A footer may have this share of memory. Behind it stand its size and PAR1.
_FOOTER_SHARE = 64
_FOOTER_END_BYTES = 8


class Layout:
    """The columns that a run may read, and what must be known of them before the first row."""

    def __init__(self, name: str, stored: BinaryIO, columns: Columns) -> None:
        """Raises Refused for a file that lacks one of the columns, that has one twice, with an unsuitable type, or with
        pages that memory has no room for; pyarrow's errors, and OSError."""
        self._name = name
        self._memory = columns.memory
        self._may_leave_out = columns.carry is None
        self._texts = [columns.text, *([columns.second] if columns.second else [])]
        self._check_footer(stored)
        file = pq.ParquetFile(stored)
        schema, metadata = file.schema_arrow, file.metadata
        # Columns that are carried only if they are named, and why.
        self.too_large: dict[str, str] = {}
        own = columns.carry
        if own is None:
            own = tuple(name for name in dict.fromkeys(schema.names) if name not in self._texts)
            self.too_large = _large_binary(metadata, own)
        for name in (*self._texts, *own):
            self._check_column(schema, name)
        # The columns that may be carried, in plain types.
        self.columns = pa.schema([(name, plain(schema.field(name).type)) for name in own])
        # Paths only: a column of the schema keeps the whole footer in memory.
        leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
        # The columns of strings and bytes, by their paths.
        self.byte_arrays = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        self._read = {*self._texts, *own} - self.too_large.keys()
        # For each row group, how many rows may be read at a time.
        self.batch_rows = self._batch_rows(metadata, self._read)

    def check_sizes(self, metadata: Any, place: int) -> None:
        """Raises ArrowInvalid if the pages of a row group have more bytes than its footer says, and than memory has
        room for; OSError."""
        group = _Group(metadata, place, self._read - self.too_large.keys(), self._memory)
        said = sum(chunk.bytes for chunk in group.chunks)
        pages = self._pages(metadata, group.chunks)
        size = sum(page.bytes for found in pages for page in found)
        if size > max(said, self._memory.page_bytes):
            raise pa.ArrowInvalid(f"row group {place} has pages of {size} bytes; its footer says {said}")

    def _check_footer(self, stored: BinaryIO) -> None:
        """pyarrow parses a footer whole."""
        most = self._memory.bytes // _FOOTER_SHARE
        stored.seek(-_FOOTER_END_BYTES, os.SEEK_END)
        end = stored.read(_FOOTER_END_BYTES)
        size = int.from_bytes(end[:4], "little")
        if size > most and end.endswith(b"PAR1"):
            raise Refused(
                f"{self._name} has a footer of {size} bytes; at most {most} are read with this --memory. Give at least"
                f" --memory={-(-_FOOTER_SHARE * size >> 20)}MB, or write the file with fewer row groups"
            )
        stored.seek(0)

    def _pages(self, metadata: Any, chunks: Sequence[_Chunk]) -> list[list[Page]]:
        nested = [metadata.schema.column(chunk.place).max_repetition_level > 0 for chunk in chunks]
        return read_pages([chunk.metadata for chunk in chunks], nested, partial(read_ranges, self._name))

    def _batch_rows(self, metadata: Any, columns: Collection[str]) -> list[int]:
        """Raises Refused if memory has no room for a page. Carried columns with such pages are left out if they are not
        named."""
        groups = [_Group(metadata, place, columns, self._memory) for place in range(metadata.num_row_groups)]
        chunks = [chunk for group in groups for chunk in group.walked]
        for chunk, pages in zip(chunks, self._pages(metadata, chunks), strict=True):
            chunk.pages = pages
            self._check_pages(chunk)
        return [rows_at_once(group.largest_rows, self._memory.ahead_bytes) for group in groups]

    def _check_pages(self, chunk: _Chunk) -> None:
        size = min(max((page.bytes for page in chunk.pages), default=0), chunk.bytes)
        if size <= self._memory.page_bytes:
            return
        if self._may_leave_out and chunk.column not in self._texts:
            self.too_large[chunk.column] = f"a page of {size} bytes"
            chunk.pages = []
            return
        raise Refused(
            f'{self._name}: the column "{chunk.column}" has a page of {size} bytes; at most {self._memory.page_bytes}'
            f" are read with this --memory. Give at least --memory={self._memory.for_page(size)}, or do not carry the"
            " column, or write the file with smaller pages"
        )

    def _check_column(self, schema: Any, name: str) -> None:
        names, file = schema.names, self._name
        if name not in names:
            raise Refused(f'{file} has no column "{name}"; there are: {", ".join(names)}')
        hint = "rename one" if name in self._texts else "rename one, or name the columns to carry"
        if names.count(name) > 1:
            raise Refused(f'{file} has {names.count(name)} columns of the name "{name}": {hint}')
        type = schema.field(name).type
        if (twice := duplicate(type)) is not None:
            raise Refused(f'{file}: the column "{name}" of type {type} has two fields of the name "{twice}": {hint}')
        if name in self._texts and not is_text(type):
            raise Refused(
                f'{file}: the column "{name}" has type {type}; it must have strings, bytes or lists of token ids'
            )


class _Chunk:
    """A column of a row group."""

    def __init__(self, metadata: Any, place: int, column: str) -> None:
        self.metadata = metadata
        # The index of the column in the file's schema, and the column of the table that it is part of.
        self.place = place
        self.column = column
        self.bytes = int(metadata.total_uncompressed_size)
        self.pages: list[Page] = []


class _Group:
    """The columns of a row group that are read."""

    def __init__(self, metadata: Any, place: int, columns: Collection[str], memory: Memory) -> None:
        group = metadata.row_group(place)
        self.chunks: list[_Chunk] = []
        # Values of fixed size may be decoded from a small dictionary.
        self._fixed_bytes: int = 0
        for index in range(group.num_columns):
            leaf = metadata.schema.column(index)
            if (name := column_of(leaf.path, columns)) is not None:
                self.chunks.append(_Chunk(group.column(index), index, name))
                self._fixed_bytes += leaf.length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        # The chunks whose pages matter. The others are small, also together: other values of dictionaries are not
        # decoded.
        self.walked: list[_Chunk] = []
        self._others_bytes = sum(chunk.bytes for chunk in self.chunks)
        if self._others_bytes > memory.page_bytes:
            for chunk in sorted(self.chunks, key=lambda chunk: -chunk.bytes):
                if self._others_bytes <= memory.ahead_bytes // 2:
                    break
                self.walked.append(chunk)
                self._others_bytes -= chunk.bytes

    def largest_rows(self, rows: int) -> int:
        """An upper bound of the bytes of so many consecutive rows."""
        walked = sum(min(largest_rows(chunk.pages, rows), chunk.bytes) for chunk in self.walked)
        return walked + self._others_bytes + rows * self._fixed_bytes


def rows_at_once(largest_rows: Callable[[int], int], room: int) -> int:
    """How many rows may be read at a time: at most `room` bytes. If even few rows may have more, since pages have many
    rows, as many as have the same bound.

    largest_rows  an upper bound of the bytes of so many rows
    """
    room = max(room, largest_rows(_MIN_BATCH_ROWS))
    rows = MAX_BATCH_ROWS
    while rows > _MIN_BATCH_ROWS and largest_rows(rows) > room:
        rows //= 2
    return rows


def column_of(path: str, columns: Collection[str]) -> str | None:
    """The column of a table that the column of Parquet with this path is part of."""
    return next((name for name in columns if path == name or path.startswith(f"{name}.")), None)


def _large_binary(metadata: Any, columns: Sequence[str]) -> dict[str, str]:
    """The columns with bytes that have more than `_LARGE_VALUE_BYTES` a value, and how many those are. They may be
    nested, such as images with their paths."""
    found: dict[str, str] = {}
    for place in range(metadata.num_columns):
        leaf = metadata.schema.column(place)
        name = column_of(leaf.path, columns)
        is_bytes = leaf.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") and leaf.logical_type.type == "NONE"
        if name is None or not is_bytes:
            continue
        chunks = [metadata.row_group(group).column(place) for group in range(metadata.num_row_groups)]
        count = sum(chunk.num_values for chunk in chunks)
        each = sum(chunk.total_uncompressed_size for chunk in chunks) // max(1, count)
        if each > _LARGE_VALUE_BYTES:
            found[name] = f"{each} bytes a value"
    return found
