"""Which rows make a shard, and which shards a part of a cluster works on.

A source's shards are cut by its rows alone, one after the other, so every run and every machine finds the same ones:
a shard ends with the row with which it has `rows` rows or `bytes` bytes. Nothing needs to know how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SHARD_ROWS = 10_000
SHARD_BYTES = 2 << 20


class RawRow(NamedTuple):
    """A row as it was found, before anything was made of it."""

    # Its place in the source, from 0.
    row: int
    # Where it stands: bytes of the (uncompressed) file, or rows of a Parquet file.
    begin: int
    end: int
    # Of its text, or of all of it: what shards are cut by.
    bytes: int
    # What its reader parses.
    data: Any


@dataclass(frozen=True, slots=True)
class Cut:
    """Where shards end."""

    # Rows in a shard at the most.
    rows: int = SHARD_ROWS
    # Bytes after which a shard takes no more rows. One row may be longer.
    bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        if self.rows < 1 or self.bytes < 1:
            raise ValueError(f"a shard of {self.rows} rows and {self.bytes} bytes: both must be at least 1")


@dataclass(frozen=True, slots=True)
class Part:
    """What one process of a cluster does: the shards whose numbers, of source and shard together, leave `index` when
    divided by `count`. So all parts have about as many, of one large file as well as of many small ones."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise ValueError(f"part {self.index} of {self.count}: it must be at least 0 and below the number of parts")

    def has(self, source: int, shard: int) -> bool:
        """Every shard is had by exactly one part."""
        return (source + shard) % self.count == self.index


class Position(NamedTuple):
    """Where a shard begins."""

    # Its number in the source.
    shard: int = 0
    # Its first row.
    row: int = 0
    # Where that row stands, as RawRow.begin.
    offset: int = 0


@dataclass(slots=True)
class Shard:
    """Rows that are written together."""

    source: int
    number: int
    rows: list[RawRow] = field(default_factory=list)

    @property
    def name(self) -> str:
        return shard_name(self.source, self.number)

    @property
    def next(self) -> Position:
        """Where the one behind it begins."""
        last = self.rows[-1]
        return Position(self.number + 1, last.row + 1, last.end)


def shard_name(source: int, number: int) -> str:
    """Sorted by it, shards stand in the order of their rows."""
    return f"{source:06d}-{number:08d}"


_BEGINNING = Position()


def cut(source: int, rows: Iterable[RawRow], limits: Cut, start: Position = _BEGINNING) -> Iterator[Shard]:
    """The shards of a source's rows, the first of which begins at `start`."""
    shard, size = Shard(source, start.shard), 0
    for row in rows:
        shard.rows.append(row)
        size += row.bytes
        if len(shard.rows) >= limits.rows or size >= limits.bytes:
            yield shard
            shard, size = Shard(source, shard.number + 1), 0
    if shard.rows:
        yield shard
