"""Cuts rows into shards, and assigns shards to the parts of a cluster.

Only a source's rows, in order, determine its shards, so every run and every machine cuts the same ones. A shard ends
with the row with which it has `rows` rows or `bytes` bytes. The number of shards need not be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

SHARD_ROWS = 10_000
SHARD_BYTES = 2 << 20


class RawRow(NamedTuple):
    """A row before it is parsed."""

    # Index in the source, from 0.
    row: int
    # Its offsets: bytes of the (uncompressed) file, or rows of a Parquet file.
    begin: int
    end: int
    # Size of its text, or of the whole row. ShardLimits.bytes limits the sum.
    bytes: int
    # The reader's own data, which it parses.
    data: Any


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """When a shard ends."""

    # Maximum rows in a shard.
    rows: int = SHARD_ROWS
    # Bytes after which a shard ends. One row may be longer.
    bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        if self.rows < 1 or self.bytes < 1:
            raise ValueError(f"a shard's limits are {self.rows} rows and {self.bytes} bytes; both must be at least 1")


@dataclass(frozen=True, slots=True)
class Part:
    """The work of one process of a cluster: the shards with (source + shard) % `count` = `index`. All parts have about
    equally many shards, for one large file as well as for many small ones."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise ValueError(f"part {self.index} of {self.count}: it must be at least 0 and below the number of parts")

    def has(self, source: int, shard: int) -> bool:
        """Whether the shard belongs to this part. Every shard belongs to exactly one part."""
        return (source + shard) % self.count == self.index


class Extent(NamedTuple):
    """How many shards and rows a source has in all parts."""

    shards: int
    rows: int


class DoneShard(Protocol):
    """A shard that an earlier run has done: its rows in the source, and the offset behind them."""

    @property
    def first_row(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def end(self) -> int: ...


class Position(NamedTuple):
    """The beginning of a shard."""

    # The shard's number in the source.
    shard: int = 0
    # The shard's first row.
    row: int = 0
    # The offset of that row, as RawRow.begin.
    offset: int = 0


@dataclass(slots=True)
class Shard:
    """The rows that are written to one file."""

    source: int
    number: int
    rows: list[RawRow] = field(default_factory=list)

    @property
    def name(self) -> str:
        return shard_name(self.source, self.number)

    @property
    def next(self) -> Position:
        """The beginning of the next shard."""
        last = self.rows[-1]
        return Position(self.number + 1, last.row + 1, last.end)


def shard_name(source: int, number: int) -> str:
    """The names of shards sort in the order of their rows."""
    return f"{source:06d}-{number:08d}"


_BEGINNING = Position()


def cut(source: int, rows: Iterable[RawRow], limits: ShardLimits, start: Position = _BEGINNING) -> Iterator[Shard]:
    """Cuts a source's rows into shards. The first row, and shard, is that of `start`."""
    shard, size = Shard(source, start.shard), 0
    for row in rows:
        shard.rows.append(row)
        size += row.bytes
        if len(shard.rows) >= limits.rows or size >= limits.bytes:
            yield shard
            shard, size = Shard(source, shard.number + 1), 0
    if shard.rows:
        yield shard
