"""Reads rows of Parquet files, by row groups and in small batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import grpc
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from longshort.batch.arrow_values import converted, not_utf8, value_bytes, values, without_views
from longshort.batch.column_types import duplicate, is_text, plain
from longshort.batch.failures import InputDamaged, Refused
from longshort.batch.files import open_input
from longshort.batch.inputs import Input, Source
from longshort.batch.pages import largest_page
from longshort.batch.rows import Columns, Row, Rows, bad, checked_text, good, too_large
from longshort.batch.shards import Position, RawRow

# How many rows are read at a time: fewer of a row group with many bytes, since each may be as long as a page.
_BATCH_ROWS = 256
_MIN_BATCH_ROWS = 4
# How many bytes are decoded, and read, at a time.
_PIECE_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 20
# Columns with more bytes a value, on the average, are carried only if they are named.
_LARGE_VALUE_BYTES = 1 << 10

# pyarrow's errors for damaged pages. Its codecs raise OSError.
_DAMAGE_ERRORS = (pa.ArrowException, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A row that is not decoded."""

    bytes: int


class _FailureRecorder:
    """A file that records an OSError of a read: pyarrow raises the same errors for damage."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failure: OSError | None = None

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            self.failure = error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Parquet:
    """Offsets are rows. Strings and bytes are read as dictionaries, so that a batch of repeated long values is small.
    Only pieces of `_PIECE_BYTES` are decoded."""

    def __init__(self, source: Source, columns: Columns) -> None:
        """Raises Refused for a file that is not Parquet, that lacks one of the columns, or that has one twice or with
        an unsuitable type."""
        self._file: Input = source.files[0]
        self._memory = columns.memory
        self._texts = [columns.text, *([columns.second] if columns.second else [])]
        self._row, self._all_rows = 0, 1
        try:
            with open_input(self._file.name) as stored:
                self._inspect(stored, columns)
        except (OSError, pa.ArrowException) as error:
            raise Refused(f"{self._file.name} cannot be read as Parquet: {error}") from error

    def _inspect(self, stored: BinaryIO, columns: Columns) -> None:
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
        # The columns of the file that are read, and those of the run, which Parquet files without them have as nulls.
        self._own = pa.schema([(name, plain(schema.field(name).type)) for name in own])
        self.carried = self._own
        # Paths only: a column of the schema keeps the whole footer in memory.
        leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
        self._encoded = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        read = {*self._texts, *own} - self.too_large.keys()
        groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
        self._batch_rows = [self._rows_at_once(stored, group, read, columns.carry is None) for group in groups]

    def _rows_at_once(self, stored: BinaryIO, group: Any, columns: Collection[str], may_leave: bool) -> int:
        """How many rows of a row group may be read at a time. Raises Refused if memory has no room for its pages. With
        `may_leave`, carried columns with such pages are left out."""
        chunks = [group.column(place) for place in range(group.num_columns)]
        chunks = [chunk for chunk in chunks if _column_of(chunk.path_in_schema, columns) is not None]
        room = self._memory.page_bytes
        # No values of a dictionary are decoded, so the rows of a small group are small.
        if sum(chunk.total_uncompressed_size for chunk in chunks) <= room:
            return _BATCH_ROWS
        together = 0
        for chunk in chunks:
            size = min(largest_page(stored, chunk), chunk.total_uncompressed_size)
            name = _column_of(chunk.path_in_schema, columns)
            if size <= room:
                together += size
            elif may_leave and name is not None and name not in self._texts:
                self.too_large[name] = f"a page of {size} bytes"
            else:
                raise Refused(
                    f'{self._file.name}: the column "{name}" has a page of {size} bytes; at most {room} are read with'
                    f" this --memory. Give at least --memory={self._memory.for_page(size)}, or do not carry the column,"
                    " or write the file with smaller pages"
                )
        return max(_MIN_BATCH_ROWS, min(_BATCH_ROWS, self._memory.ahead_bytes // max(1, together)))

    def _check_column(self, schema: Any, name: str) -> None:
        names, file = schema.names, self._file.name
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

    def rows(self, start: Position) -> Iterator[RawRow]:
        """Rows from `start` on. A damaged file ends with a row that is an InputDamaged. Raises OSError."""
        row = 0
        columns = [*dict.fromkeys((*self._texts, *(name for name in self._own.names if name in self.carried.names)))]
        encoded = [path for path in self._encoded if _column_of(path, columns) is not None]
        with open_input(self._file.name) as opened:
            stored = _FailureRecorder(opened)
            try:
                file = pq.ParquetFile(
                    stored,
                    buffer_size=_BUFFER_BYTES,
                    pre_buffer=False,
                    page_checksum_verification=True,
                    read_dictionary=encoded,
                )
                self._all_rows = max(1, file.metadata.num_rows)
                for group in range(file.metadata.num_row_groups):
                    count = file.metadata.row_group(group).num_rows
                    if row + count <= start.row:
                        row += count
                        continue
                    for batch in self._batches(file, group, columns, stored):
                        skipped = min(batch.num_rows, max(0, start.row - row))
                        row += skipped
                        for raw in self._pieces(batch.slice(skipped), row):
                            row = self._row = raw.end
                            yield raw
            except _DAMAGE_ERRORS as error:
                if stored.failure is not None:
                    raise stored.failure from error
                if row >= start.row:
                    yield RawRow(row, row, row + 1, 0, InputDamaged(f"the file is damaged from here on: {error}"))

    def _batches(self, file: Any, group: int, columns: list[str], stored: _FailureRecorder) -> Iterator[Any]:
        """The batches of a row group. Raises pyarrow's error for damage, after the last readable row."""
        read = 0
        try:
            for batch in file.iter_batches(self._batch_rows[group], [group], columns, use_threads=False):
                yield batch
                read += batch.num_rows
            return
        except _DAMAGE_ERRORS:
            if stored.failure is not None:
                raise
        # Reads the rows of the batch before the damage. pyarrow always begins with the first row of the group.
        for place, batch in enumerate(file.iter_batches(1, [group], columns, use_threads=False)):
            if place >= read:
                yield batch

    def _pieces(self, batch: Any, row: int) -> Iterator[RawRow]:
        """The rows of a batch, decoded in pieces."""
        batch = pa.RecordBatch.from_arrays([without_views(one) for one in batch.columns], names=batch.schema.names)
        sizes = value_bytes(batch.to_struct_array()).to_pylist()
        begin = 0
        while begin < len(sizes):
            if sizes[begin] > self._memory.row_bytes:
                yield RawRow(row + begin, row + begin, row + begin + 1, 0, TooLarge(sizes[begin]))
                begin += 1
                continue
            end, total = begin + 1, sizes[begin]
            while end < len(sizes) and total + sizes[end] <= _PIECE_BYTES:
                total, end = total + sizes[end], end + 1
            piece = self._decoded(batch, begin, end)
            for place in range(begin, end):
                yield RawRow(row + place, row + place, row + place + 1, sizes[place], (piece, place - begin))
            begin = end

    def _decoded(self, batch: Any, begin: int, end: int) -> Any:
        """These rows in plain types. `take` copies no other values, as a conversion of a slice may."""
        rows = pa.array(range(begin, end), pa.int64())
        columns = [column.take(rows) for column in batch.columns]
        return pa.RecordBatch.from_arrays([one.cast(plain(one.type)) for one in columns], names=batch.schema.names)

    def fields_of_first_rows(self) -> Iterator[Collection[str]]:
        yield self._own.names

    def read_share(self) -> float:
        """The share of the rows that was read so far, 0 to 1."""
        return min(1.0, self._row / self._all_rows)

    def parse(self, raw: Sequence[RawRow]) -> Rows:
        rows: list[Row] = []
        pieces = [self.carried.empty_table()]
        for batch, first, count in _runs(raw):
            if batch is None:
                rows.append(self._unread(raw[len(rows)]))
                blank = [pa.nulls(1, field.type) for field in self.carried]
                pieces.append(pa.Table.from_arrays(blank, schema=self.carried))
                continue
            piece = batch.slice(first, count)
            table, broken = self._carried_of(piece)
            texts = [values(piece.column(name)) for name in self._texts]
            for place, one in enumerate(zip(*texts, strict=True)):
                rows.append(self._row_of(raw[len(rows)].row, one, broken.get(place)))
            pieces.append(table)
        return Rows(rows, pa.concat_tables(pieces))

    def _unread(self, raw: RawRow) -> Row:
        code = grpc.StatusCode.DATA_LOSS if isinstance(raw.data, InputDamaged) else grpc.StatusCode.INVALID_ARGUMENT
        if isinstance(raw.data, TooLarge):
            message = too_large("row", raw.data.bytes, self._memory)
            return bad(self._file.name, raw.row, message, code)
        return bad(self._file.name, raw.row, str(raw.data), code)

    def _carried_of(self, piece: Any) -> tuple[Any, dict[int, str]]:
        """The carried columns with the types of the run; and by the index of a row, what is wrong with one of them."""
        columns = []
        broken: dict[int, str] = {}
        for field in self.carried:
            if field.name not in piece.schema.names:
                columns.append(pa.nulls(piece.num_rows, field.type))
                continue
            column = piece.column(field.name)
            # In the output, a string that is not UTF-8 would break readers of the results.
            for place, wrong in not_utf8(column).items():
                broken.setdefault(place, f'"{field.name}" is not UTF-8: {wrong}')
            column, lost = converted(column, field.type)
            for place, why in lost.items():
                broken.setdefault(place, f'"{field.name}": {why}')
            columns.append(column)
        table = pa.Table.from_arrays(columns, schema=self.carried)
        return table, broken

    def _row_of(self, ordinal: int, texts: Sequence[Any], broken: str | None) -> Row:
        """`broken`: what is wrong with a carried column."""
        try:
            checked = [checked_text(text, name) for text, name in zip(texts, self._texts, strict=True)]
        except ValueError as error:
            return bad(self._file.name, ordinal, str(error))
        if broken is not None:
            return bad(self._file.name, ordinal, broken)
        return good(self._file.name, ordinal, checked[0] if len(checked) == 1 else (checked[0], checked[1]))


def _column_of(path: str, columns: Collection[str]) -> str | None:
    """The column of a table that the column of Parquet with this path is part of."""
    return next((name for name in columns if path == name or path.startswith(f"{name}.")), None)


def _large_binary(metadata: Any, columns: Sequence[str]) -> dict[str, str]:
    """The columns with bytes that have more than `_LARGE_VALUE_BYTES` a value, and how many those are. They may be
    nested, such as images with their paths."""
    found: dict[str, str] = {}
    for place in range(metadata.num_columns):
        leaf = metadata.schema.column(place)
        name = _column_of(leaf.path, columns)
        is_bytes = leaf.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") and leaf.logical_type.type == "NONE"
        if name is None or not is_bytes:
            continue
        chunks = [metadata.row_group(group).column(place) for group in range(metadata.num_row_groups)]
        count = sum(chunk.num_values for chunk in chunks)
        each = sum(chunk.total_uncompressed_size for chunk in chunks) // max(1, count)
        if each > _LARGE_VALUE_BYTES:
            found[name] = f"{each} bytes a value"
    return found


def _runs(raw: Sequence[RawRow]) -> Iterator[tuple[Any, int, int]]:
    """Consecutive rows of a batch: the batch, the index of the first, their number. (None, 0, 1) for an unread row."""
    begin = 0
    while begin < len(raw):
        if not isinstance(raw[begin].data, tuple):
            yield None, 0, 1
            begin += 1
            continue
        batch, first = raw[begin].data
        end = begin + 1
        while end < len(raw) and isinstance(raw[end].data, tuple) and raw[end].data[0] is batch:
            end += 1
        yield batch, first, end - begin
        begin = end
