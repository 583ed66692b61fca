"""What a Parquet file has: its columns, and how many of its rows fit in memory at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from longshort.batch.inputs.column_types import duplicate, is_text, plain
from longshort.batch.inputs.files import read_ranges
from longshort.batch.inputs.list_rows import LongRows, long_rows
from longshort.batch.inputs.memory import Memory
from longshort.batch.inputs.pages import Page, ReadRanges, largest_rows, read_first_pages, read_pages
from longshort.batch.inputs.rows import Columns
from longshort.batch.report.failures import InputDamaged, Refused

# How many rows are read at a time: fewer where few rows may have many bytes.
MAX_BATCH_ROWS = 256
_MIN_BATCH_ROWS = 4
# What a value of a physical type takes; of strings and bytes, an index into a dictionary.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
# Columns with more bytes a value, on the average, are carried only if they are named.
_LARGE_VALUE_BYTES = 1 << 10


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """How to read a row group."""

    # How many rows may be read at a time.
    batch_rows: int
    # What is wrong with the rows that memory has no room for, by their index in the group.
    large: dict[int, str]


class Layout:
    """The columns that a run may read, and what must be known of them before the first row."""

    def __init__(self, name: str, footer: bytes, columns: Columns) -> None:
        """Raises Refused for a file that cannot be read, that lacks one of the columns, that has one twice, with an
        unsuitable type, or with pages that memory has no room for; for damage, pyarrow's and Python's errors.

        footer  see read_footer
        """
        self._name = name
        self._memory = columns.memory
        self._may_leave_out = columns.carry is None
        self._texts = columns.texts
        file = pq.ParquetFile(pa.BufferReader(footer))
        schema, metadata = file.schema_arrow, file.metadata
        # Columns that are carried only if they are named, and why.
        self.too_large: dict[str, str] = {}
        own = columns.carry
        if own is None:
            own = tuple(name for name in dict.fromkeys(schema.names) if name not in self._texts)
            self.too_large = _large_binary(metadata, own, self._read_or_refuse)
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

    def plan(self, metadata: Any, place: int) -> GroupPlan:
        """How to read a row group. Raises InputDamaged if its pages have more bytes than its footer says, and than
        memory has room for, or if levels of lists that may be too large cannot be read; OSError."""
        group = _Group(metadata, place, self._read - self.too_large.keys(), self._memory)
        said = sum(chunk.bytes for chunk in group.chunks)
        pages = _pages(group.chunks, partial(read_ranges, self._name))
        size = sum(page.bytes for found in pages for page in found)
        if size > max(said, self._memory.page_bytes):
            raise InputDamaged(
                f"the file is damaged from here on: row group {place} has pages of {size} bytes; its footer says {said}"
            )
        lists, large = self._large_lists(group.chunks, pages)
        return GroupPlan(min(self.batch_rows[place], max(1, self._memory.ahead_bytes // max(1, lists))), large)

    def _large_lists(self, chunks: Sequence[_Chunk], pages: Sequence[Sequence[Page]]) -> tuple[int, dict[int, str]]:
        """An upper bound of the bytes that the lists of one row take unpacked: a page may have one value millions of
        times. And the rows with more than memory has room for, as in GroupPlan. Levels are read only of those lists
        that are large together."""
        sizes = {
            chunk: sum(page.values for page in found if page.rows > 0) * chunk.value_bytes
            for chunk, found in zip(chunks, pages, strict=True)
            if chunk.list_levels > 0
        }
        most = self._memory.page_bytes
        found_of = dict(zip(chunks, pages, strict=True))
        walked: list[_Chunk] = []
        for chunk in sorted(sizes, key=lambda one: -sizes[one]):
            if sum(sizes.values()) <= most // 2:
                break
            walked.append(chunk)
            sizes[chunk] = self._long_rows(chunk, found_of[chunk], sys.maxsize).longest * chunk.value_bytes
        large: dict[int, str] = {}
        for chunk in sorted(walked, key=lambda one: -sizes[one]):
            if (total := sum(sizes.values())) <= most:
                break
            room = max(most // len(walked), most - total + sizes[chunk])
            rows = self._long_rows(chunk, found_of[chunk], room // chunk.value_bytes)
            if rows.longer is None:
                raise InputDamaged(
                    f"the file is not read from here on: a row has lists that may take {sizes[chunk]} bytes unpacked,"
                    f" in an encoding that is not read; at most {room} are read with this --memory"
                )
            why = (
                f'the lists of "{chunk.column}" take up to {sizes[chunk]} bytes unpacked; at most {room} are read with'
                f" this --memory. Give at least --memory={self._memory.for_page(total)}, or do not carry the lists"
            )
            large.update(dict.fromkeys(rows.longer, why))
            sizes[chunk] = rows.longest * chunk.value_bytes
        return sum(sizes.values()), large

    def _long_rows(self, chunk: _Chunk, pages: Sequence[Page], most: int) -> LongRows:
        read = partial(read_ranges, self._name)
        return long_rows(pages, read, str(chunk.metadata.compression), chunk.list_levels, most)

    def _read_or_refuse(self, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        try:
            return read_ranges(self._name, ranges)
        except Exception as error:  # stores have errors of their own
            raise Refused(f"{self._name} cannot be read: {error}") from error

    def _batch_rows(self, metadata: Any, columns: Collection[str]) -> list[int]:
        """Raises Refused if memory has no room for a page. Carried columns with such pages are left out if they are not
        named."""
        groups = [_Group(metadata, place, columns, self._memory) for place in range(metadata.num_row_groups)]
        chunks = [chunk for group in groups for chunk in group.walked]
        for chunk, pages in zip(chunks, _pages(chunks, self._read_or_refuse), strict=True):
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

    def __init__(self, metadata: Any, leaf: Any, column: str) -> None:
        """`leaf`: the column in the file's schema. `column`: that of the table that it is part of."""
        self.metadata = metadata
        self.column = column
        # How deep its lists are nested; and what a value of them takes unpacked, with its two levels of 16 bits.
        self.list_levels = int(leaf.max_repetition_level)
        self.value_bytes = _WIDTHS.get(leaf.physical_type, leaf.length) + 4
        self.bytes = int(metadata.total_uncompressed_size)
        self.pages: list[Page] = []


def _pages(chunks: Sequence[_Chunk], read: ReadRanges) -> list[list[Page]]:
    return read_pages([chunk.metadata for chunk in chunks], [chunk.list_levels > 0 for chunk in chunks], read)


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
                self.chunks.append(_Chunk(group.column(index), leaf, name))
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


def _large_binary(metadata: Any, columns: Sequence[str], read: ReadRanges) -> dict[str, str]:
    """The columns with bytes that have more than `_LARGE_VALUE_BYTES` a value, and how many those are. They may be
    nested, such as images with their paths. Raises OSError."""
    found: dict[str, str] = {}
    for place in range(metadata.num_columns):
        leaf = metadata.schema.column(place)
        name = column_of(leaf.path, columns)
        is_bytes = leaf.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") and leaf.logical_type.type == "NONE"
        if name is None or not is_bytes:
            continue
        chunks = [metadata.row_group(group).column(place) for group in range(metadata.num_row_groups)]
        count = sum(chunk.num_values for chunk in chunks)
        first = read_first_pages(chunks, read)
        each = sum(_unpacked_bytes(chunk, page) for chunk, page in zip(chunks, first, strict=True)) // max(1, count)
        if each > _LARGE_VALUE_BYTES:
            found[name] = f"{each} bytes a value"
    return found


def _unpacked_bytes(chunk: Any, first: Page | None) -> int:
    """About how many bytes the values of a chunk have. Each may be a value of the dictionary, its first page."""
    stored = int(chunk.total_uncompressed_size)
    if first is None or first.rows > 0:
        return stored
    return max(stored, int(chunk.num_values) * first.bytes // max(1, first.values))
