"""Reads rows of Parquet files, by row groups and in small batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import grpc
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from longshort.batch.inputs.arrow_values import converted, not_utf8, value_bytes, values, without_views
from longshort.batch.inputs.column_types import plain
from longshort.batch.inputs.files import open_input
from longshort.batch.inputs.footers import FooterProbe, read_footer
from longshort.batch.inputs.parquet_layout import GroupPlan, Layout, column_of
from longshort.batch.inputs.rows import Columns, Row, Rows, bad, checked_document, good, too_large
from longshort.batch.inputs.shards import Position, RawRow
from longshort.batch.inputs.sources import Input, Source
from longshort.batch.report.failures import InputDamaged, Refused

# How many bytes are decoded, and read, at a time.
_PIECE_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 20
_SHOWN = 200  # characters of an error

# pyarrow's errors for damaged pages. Its codecs raise OSError.
_DAMAGE_ERRORS = (pa.ArrowException, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class NotRead:
    """A row that is not decoded, and why."""

    message: str


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

    def __init__(self, source: Source, columns: Columns, probe: FooterProbe) -> None:
        """Raises Refused as Layout does. A file with a damaged footer has one row, an error."""
        self._file: Input = source.files[0]
        self._memory = columns.memory
        self._texts = columns.texts
        self._row, self._all_rows = 0, 1
        # The columns of the run (a file without one has nulls), and those that are too large for it.
        self.carried: pa.Schema
        self.too_large: dict[str, str]
        self._layout: Layout | InputDamaged
        try:
            self._layout = _layout(self._file.name, columns, probe)
            self.carried, self.too_large = self._layout.columns, self._layout.too_large
        except InputDamaged as damage:
            self._layout = damage
            self.carried, self.too_large = pa.schema([]), {}

    def rows(self, start: Position) -> Iterator[RawRow]:
        """Rows from `start` on. A damaged file ends with a row that is an InputDamaged. Raises OSError."""
        layout = self._layout
        if isinstance(layout, InputDamaged):
            if start.row == 0:
                yield RawRow(0, 0, 1, 0, layout)
            return
        if start.offset > start.row:  # behind damage
            return
        row = 0
        carried = (name for name in layout.columns.names if name in self.carried.names)
        columns = [*dict.fromkeys((*self._texts, *carried))]
        encoded = [path for path in layout.byte_arrays if column_of(path, columns) is not None]
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
                    plan = layout.plan(file.metadata, group)
                    for found in self._group(file, group, plan, columns, stored):
                        if isinstance(found, NotRead):
                            if row >= start.row:
                                yield RawRow(row, row, row + 1, 0, found)
                            row = self._row = row + 1
                            continue
                        skipped = min(found.num_rows, max(0, start.row - row))
                        row += skipped
                        for raw in self._pieces(found.slice(skipped), row):
                            row = self._row = raw.end
                            yield raw
            except (InputDamaged, *_DAMAGE_ERRORS) as error:
                if stored.failure is not None:
                    raise stored.failure from error
                if row >= start.row:
                    reason = f"the file is damaged from here on: {str(error)[:_SHOWN]}"
                    damage = error if isinstance(error, InputDamaged) else InputDamaged(reason)
                    yield RawRow(row, row, max(row + 1, self._all_rows), 0, damage)

    def _group(
        self, file: Any, group: int, plan: GroupPlan, columns: list[str], stored: _FailureRecorder
    ) -> Iterator[Any]:
        """The batches and the unread rows of a row group.

        pyarrow reads a column of a group from its first row on, and not beyond a row that memory has no room for. So
        the rows behind that are unread, too.
        """
        if not plan.large:
            yield from _batches(file, group, plan.batch_rows, columns, stored)
            return
        first = min(plan.large)
        if first > 0:
            rows = next(rows for rows in range(min(plan.batch_rows, first), 0, -1) if first % rows == 0)
            read = 0
            for batch in _batches(file, group, rows, columns, stored):
                yield batch
                read += batch.num_rows
                if read == first:
                    break
        behind = f"it cannot be read, since it is behind a row of which {plan.large[first]}"
        for row in range(first, file.metadata.row_group(group).num_rows):
            yield NotRead(plan.large.get(row, behind))

    def _pieces(self, batch: Any, row: int) -> Iterator[RawRow]:
        """The rows of a batch, decoded in pieces."""
        batch = pa.RecordBatch.from_arrays([without_views(one) for one in batch.columns], names=batch.schema.names)
        sizes = value_bytes(batch.to_struct_array()).to_pylist()
        begin = 0
        while begin < len(sizes):
            if sizes[begin] > self._memory.row_bytes:
                unread = NotRead(too_large("row", sizes[begin], self._memory))
                yield RawRow(row + begin, row + begin, row + begin + 1, 0, unread)
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
        if isinstance(self._layout, Layout):
            yield self._layout.columns.names

    def read_share(self) -> float:
        """The share of the rows that was read so far, 0 to 1."""
        return min(1.0, self._row / self._all_rows)

    def parse(self, raw: Sequence[RawRow]) -> Rows:
        rows: list[Row] = []
        pieces = [self.carried.empty_table()]
        lost: Counter[str] = Counter()
        for batch, first, count in _runs(raw):
            if batch is None:
                rows.append(self._unread(raw[len(rows)]))
                blank = [pa.nulls(1, field.type) for field in self.carried]
                pieces.append(pa.Table.from_arrays(blank, schema=self.carried))
                continue
            piece = batch.slice(first, count)
            table, broken = self._carried_of(piece, lost)
            texts = [values(piece.column(name)) for name in self._texts]
            for place, one in enumerate(zip(*texts, strict=True)):
                rows.append(self._row_of(raw[len(rows)].row, one, broken.get(place)))
            pieces.append(table)
        return Rows(rows, pa.concat_tables(pieces), lost=dict(lost))

    def _unread(self, raw: RawRow) -> Row:
        if isinstance(raw.data, NotRead):
            return bad(self._file.name, raw.row, raw.data.message)
        return bad(self._file.name, raw.row, str(raw.data), grpc.StatusCode.DATA_LOSS)

    def _carried_of(self, piece: Any, lost: Counter[str]) -> tuple[Any, dict[int, str]]:
        """The carried columns with the types of the run; and by the index of a row, what is wrong with one of them.

        lost  counts the values that the type of the run does not have, by the column's name
        """
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
            columns.append(converted(column, field.type))
            if (count := columns[-1].null_count - column.null_count) > 0:
                lost[field.name] += count
        table = pa.Table.from_arrays(columns, schema=self.carried)
        return table, broken

    def _row_of(self, ordinal: int, texts: Sequence[Any], broken: str | None) -> Row:
        """`broken`: what is wrong with a carried column."""
        try:
            document = checked_document(texts, self._texts)
        except ValueError as error:
            return bad(self._file.name, ordinal, str(error))
        return good(self._file.name, ordinal, document) if broken is None else bad(self._file.name, ordinal, broken)


def _layout(name: str, columns: Columns, probe: FooterProbe) -> Layout:
    """Raises InputDamaged for a damaged footer; Refused as Layout does."""
    try:
        with open_input(name) as stored:
            footer = read_footer(name, stored, columns.memory)
    except (InputDamaged, Refused):
        raise
    except Exception as error:  # stores have errors of their own
        raise Refused(f"{name} cannot be read: {error}") from error
    probe.check(footer)
    try:
        return Layout(name, footer, columns)
    except Refused:
        raise
    except Exception as error:  # damaged footers make pyarrow raise anything
        raise InputDamaged(f"the file's footer is damaged: {str(error)[:_SHOWN]}") from error


def _batches(file: Any, group: int, rows: int, columns: list[str], stored: _FailureRecorder) -> Iterator[Any]:
    """The batches of a row group, of so many rows. Raises pyarrow's error for damage, after the last readable row."""
    read = 0
    try:
        for batch in file.iter_batches(rows, [group], columns, use_threads=False):
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
