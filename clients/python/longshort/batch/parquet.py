"""Reads rows of Parquet files, by row groups and in small batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import grpc
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from longshort.batch.arrow_values import NotUtf8, not_utf8, values
from longshort.batch.failures import InputDamaged, Refused
from longshort.batch.files import open_input
from longshort.batch.inputs import Input, Source
from longshort.batch.rows import Columns, Row, Rows, bad, checked_text, good
from longshort.batch.shards import Position, RawRow

# How many rows are decoded, and bytes read, at a time.
_BATCH_ROWS = 256
_BUFFER_BYTES = 1 << 20


# pyarrow's errors for damaged pages. Its codecs raise OSError.
_DAMAGE_ERRORS = (pa.ArrowException, EOFError, OSError)


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
    """Offsets are rows."""

    def __init__(self, source: Source, columns: Columns) -> None:
        """Raises Refused for a file that is not Parquet, or that lacks one of the columns."""
        self._file: Input = source.files[0]
        self._texts = [columns.text, *([columns.second] if columns.second else [])]
        self._row, self._all_rows = 0, 1
        try:
            with open_input(self._file.name) as stored:
                schema = pq.ParquetFile(stored).schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise Refused(f"{self._file.name} cannot be read as Parquet: {error}") from error
        carry = columns.carry
        if carry is None:
            carry = tuple(name for name in schema.names if name not in self._texts)
        for name in (*self._texts, *carry):
            if name not in schema.names:
                raise Refused(f'{self._file.name} has no column "{name}"; there are: {", ".join(schema.names)}')
        self.carried = tuple(carry)
        self._empty = pa.schema([schema.field(name) for name in self.carried]).empty_table()

    def rows(self, start: Position) -> Iterator[RawRow]:
        """Rows from `start` on. A damaged file ends with a row that is an InputDamaged. Raises OSError."""
        row = 0
        with open_input(self._file.name) as opened:
            stored = _FailureRecorder(opened)
            try:
                file = pq.ParquetFile(
                    stored, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
                )
                self._all_rows = max(1, file.metadata.num_rows)
                for group in range(file.metadata.num_row_groups):
                    count = file.metadata.row_group(group).num_rows
                    if row + count <= start.row:
                        row += count
                        continue
                    for batch in self._batches(file, group, stored):
                        for place, size in enumerate(self._sizes(batch)):
                            if row >= start.row:
                                yield RawRow(row, row, row + 1, size, (batch, place))
                            row += 1
                            self._row = row
            except _DAMAGE_ERRORS as error:
                if stored.failure is not None:
                    raise stored.failure from error
                if row >= start.row:
                    yield RawRow(row, row, row + 1, 0, InputDamaged(f"the file is damaged from here on: {error}"))

    def _batches(self, file: Any, group: int, stored: _FailureRecorder) -> Iterator[Any]:
        """The batches of a row group. Raises pyarrow's error for damage, after the last readable row."""
        columns = [*dict.fromkeys((*self._texts, *self.carried))]
        read = 0
        try:
            for batch in file.iter_batches(_BATCH_ROWS, [group], columns, use_threads=False):
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

    def _sizes(self, batch: Any) -> list[int]:
        """For each row, the bytes of its texts, or the number of its token ids."""
        total = None
        for name in self._texts:
            column = batch.column(name)
            is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
            try:
                length = pc.list_value_length(column) if is_list else pc.binary_length(column)
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                raise Refused(
                    f'{self._file.name}: the column "{name}" has type {column.type}; it must have strings, bytes or'
                    " lists of token ids"
                ) from None
            length = pc.cast(pc.fill_null(length, 0), pa.int64())
            total = length if total is None else pc.add(total, length)
        assert total is not None
        sizes: list[int] = total.to_pylist()
        return sizes

    def read_share(self) -> float:
        """The share of the rows that was read so far, 0 to 1."""
        return min(1.0, self._row / self._all_rows)

    def parse(self, raw: Sequence[RawRow]) -> Rows:
        rows: list[Row] = []
        pieces = []
        for batch, first, count in _runs(raw):
            if batch is None:
                rows.append(
                    bad(self._file.name, raw[len(rows)].row, str(raw[len(rows)].data), grpc.StatusCode.DATA_LOSS)
                )
                blank = [pa.nulls(1, field.type) for field in self._empty.schema]
                pieces.append(pa.Table.from_arrays(blank, names=self._empty.schema.names))
                continue
            piece = batch.slice(first, count)
            broken = not_utf8(piece, self.carried)
            texts = [values(piece.column(name)) for name in self._texts]
            for place, one in enumerate(zip(*texts, strict=True)):
                rows.append(self._row_of(raw[len(rows)].row, one, broken.get(place)))
            pieces.append(pa.Table.from_batches([piece]).select(list(self.carried)))
        return Rows(rows, pa.concat_tables([self._empty, *pieces], promote_options="permissive"))

    def _row_of(self, ordinal: int, texts: Sequence[Any], broken: tuple[str, NotUtf8] | None) -> Row:
        """`broken`: a carried column that is not UTF-8. In the output, it would break readers of the results."""
        try:
            checked = [checked_text(text, name) for text, name in zip(texts, self._texts, strict=True)]
            if broken is not None:
                checked_text(broken[1], broken[0])
        except ValueError as error:
            return bad(self._file.name, ordinal, str(error))
        return good(self._file.name, ordinal, checked[0] if len(checked) == 1 else (checked[0], checked[1]))


def _runs(raw: Sequence[RawRow]) -> Iterator[tuple[Any, int, int]]:
    """Consecutive rows of one batch: the batch, the index of the first, their number. (None, 0, 1) for damage."""
    begin = 0
    while begin < len(raw):
        if isinstance(raw[begin].data, InputDamaged):
            yield None, 0, 1
            begin += 1
            continue
        batch, first = raw[begin].data
        end = begin + 1
        while end < len(raw) and not isinstance(raw[end].data, InputDamaged) and raw[end].data[0] is batch:
            end += 1
        yield batch, first, end - begin
        begin = end
