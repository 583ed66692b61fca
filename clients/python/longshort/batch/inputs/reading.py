"""Reads the shards of all inputs that are not done yet, in order."""

from __future__ import annotations

import functools
import itertools
import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from longshort.batch.inputs.footers import FooterProbe
from longshort.batch.inputs.json_lines import JsonLines
from longshort.batch.inputs.parquet import Parquet
from longshort.batch.inputs.rows import Columns, Rows, document_bytes, shown_names
from longshort.batch.inputs.shards import DoneShard, Extent, Part, Position, RawRow, Shard, ShardLimits, cut
from longshort.batch.inputs.sources import Source, check_unchanged
from longshort.batch.inputs.text_files import TextFiles
from longshort.batch.inputs.warc import Warc
from longshort.batch.report.counts import FIELDS
from longshort.batch.report.failures import BatchError, Refused

# The memory of Python's objects for a byte of JSON, and for a row.
_OBJECT_FACTOR = 16
_ROW_BYTES = 1 << 10


class Reader(Protocol):
    """Reads one source."""

    # The columns that are copied to the output. A run sets those of all its inputs.
    carried: pa.Schema

    def rows(self, start: Position) -> Iterator[RawRow]: ...

    def fields_of_first_rows(self) -> Iterator[Collection[str]]: ...

    def read_share(self) -> float: ...

    def parse(self, raw: Sequence[RawRow]) -> Rows: ...


@dataclass(frozen=True, slots=True)
class ReadShard:
    """A shard to score."""

    source: int
    number: int
    rows: Rows
    first_row: int
    # Its offsets in the source, as RawRow.begin.
    begin: int
    end: int
    # How many stored bytes of the inputs were read for it.
    stored_bytes: float
    # About how many bytes of memory its documents and carried columns take.
    held_bytes: int


@dataclass(slots=True)
class Skipped:
    """Shards that are done, or that belong to another part."""

    stored_bytes: float


@dataclass(slots=True)
class SourceEnd:
    """A source was read to its end. Each source yields one, in order."""

    extent: Extent
    # Its stored bytes that no shard has counted.
    stored_bytes: float


def open_readers(sources: Sequence[Source], columns: Columns) -> list[Reader]:
    """Raises Refused for a file that lacks one of the columns."""
    with FooterProbe() as probe:
        kinds: dict[str, Callable[[Source, Columns], Reader]] = {
            "jsonl": JsonLines,
            "parquet": functools.partial(Parquet, probe=probe),
            "warc": Warc,
            "text": TextFiles,
        }
        return [kinds[source.format](source, columns) for source in sources]


def check_carried_fields(readers: Iterable[Reader], names: Collection[str]) -> None:
    """Raises Refused if no input has one of these fields in its first rows: a likely mistake."""
    lacking = set(names)
    found: dict[str, None] = {}
    rows = 0
    try:
        for fields in itertools.chain.from_iterable(reader.fields_of_first_rows() for reader in readers):
            lacking.difference_update(fields)
            if not lacking:
                return
            found |= dict.fromkeys(fields)
            rows += 1
    except OSError as error:
        raise Refused(f"an input cannot be read: {error}") from error
    if rows:
        raise Refused(
            f"no input has the field {', '.join(json.dumps(name) for name in sorted(lacking))}, which is to be carried,"
            f" in its first rows{FIELDS}{shown_names(found)}. Correct --carry (carry=); with --min-success=0"
            " (min_success=0) the run begins, and writes null"
        )


def read_shards(
    sources: Sequence[Source],
    readers: Sequence[Reader],
    limits: ShardLimits,
    part: Part,
    done: Mapping[tuple[int, int], DoneShard],
    stop: threading.Event,
) -> Iterator[ReadShard | Skipped | SourceEnd]:
    """The shards of this part that are not done. Ends early once `stop` is set.

    Raises Refused for an input that has changed, or can no longer be read.
    """
    for source, reader in zip(sources, readers, strict=True):
        start = end = _first_undone(source.index, done)
        before = 0.0
        try:
            raw = reader.rows(start)
            if start.shard > 0 and (first := next(raw, None)) is not None:
                before = reader.read_share()
                yield Skipped(before * source.bytes)
                raw = itertools.chain((first,), raw)
            for shard in cut(source.index, raw, limits, start):
                if stop.is_set():
                    return
                end = shard.next
                share = reader.read_share()
                read, before = max(0.0, share - before) * source.bytes, max(share, before)
                if _is_done(shard, done) or not part.has(source.index, shard.number):
                    yield Skipped(read)
                    continue
                if source.format != "text":
                    check_unchanged(source.files[0])
                rows = reader.parse(shard.rows)
                begin = shard.rows[0]
                held = _held_bytes(shard, rows)
                shard.rows = []
                yield ReadShard(source.index, shard.number, rows, begin.row, begin.begin, end.offset, read, held)
        except OSError as error:
            raise BatchError(
                f"the input {source.files[0].name} cannot be read: {error.strerror or error}. The results so far"
                " stay valid: once it can be read, run the same command again"
            ) from error
        yield SourceEnd(Extent(end.shard, end.row), (1.0 - before) * source.bytes)


def _held_bytes(shard: Shard, rows: Rows) -> int:
    read = sum(raw.bytes for raw in shard.rows)
    documents = sum(document_bytes(row.document) for row in rows.rows if row.document is not None)
    factor = 1 if isinstance(rows.carried, pa.Table) else _OBJECT_FACTOR
    return documents + factor * max(0, read - documents) + _ROW_BYTES * len(rows.rows)


def _is_done(shard: Shard, done: Mapping[tuple[int, int], DoneShard]) -> bool:
    """Whether the shard has an entry with the same rows."""
    entry = done.get((shard.source, shard.number))
    return entry is not None and (entry.first_row, entry.rows) == (shard.rows[0].row, len(shard.rows))


def _first_undone(source: int, done: Mapping[tuple[int, int], DoneShard]) -> Position:
    """The position after the first shards of the source that are all done."""
    position = Position()
    while (entry := done.get((source, position.shard))) is not None and entry.first_row == position.row:
        position = Position(position.shard + 1, entry.first_row + entry.rows, entry.end)
    return position
