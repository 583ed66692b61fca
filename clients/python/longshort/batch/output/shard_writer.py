"""Shards with unanswered documents, and the writing of those whose documents are all answered."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from longshort.batch.inputs.reading import ReadShard
from longshort.batch.inputs.shards import shard_name
from longshort.batch.output.manifest import Manifest
from longshort.batch.output.records import Entry, Written
from longshort.batch.output.shard_files import Output, rows_hash
from longshort.batch.report.counts import Causes

_WRITERS = 2


@dataclass(slots=True)
class Totals:
    """The counts of this run's written shards."""

    rows: int = 0
    errors: int = 0
    tokens: int = 0
    shards: int = 0


class OpenShard:
    """A shard with unanswered documents."""

    def __init__(self, read: ReadShard) -> None:
        self.read = read
        # Bytes of its documents.
        self.document_bytes = 0
        self.found: list[dict[str, Any] | None] = [None] * len(read.rows.rows)
        self.unanswered = 0
        self.tokens = 0
        # Bytes of the stored input for each byte of a document.
        self.stored_bytes_by_byte = 0.0

    @property
    def errors(self) -> int:
        return sum(one is None for one in self.found)


class ShardWriter:
    """Thread: that of the event loop. Files are written in others."""

    def __init__(self, output: Output, manifest: Manifest) -> None:
        self._output = output
        self._manifest = manifest
        self._writers = asyncio.Semaphore(_WRITERS)
        self.totals = Totals()
        # What this run's shards and the added entries have: causes of errors, rows that lack a carried field, and
        # carried values that became null.
        self.causes = Causes()
        self.lacking: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        # The files that were written.
        self.files: set[str] = set()

    def add_before(self, entry: Entry) -> None:
        """Counts the causes of a shard that was done before."""
        self.causes.merge(entry.causes)
        self.lacking.update(entry.lacking)
        self.lost.update(entry.lost)

    async def write(self, shard: OpenShard) -> None:
        """Raises BatchError."""
        async with self._writers:
            causes = Causes()
            for row in shard.read.rows.rows:
                if row.error is not None:
                    causes.add(row.error.message)
            files = await asyncio.to_thread(self._write_now, shard, causes.most_frequent())
        self.files.update(file.name for file in files)
        errors = shard.errors
        self.causes.merge(causes.most_frequent())
        self.lacking.update(shard.read.rows.lacking)
        self.lost.update(shard.read.rows.lost)
        self.totals.rows += len(shard.found) - errors
        self.totals.errors += errors
        self.totals.tokens += shard.tokens
        self.totals.shards += 1

    def _write_now(self, shard: OpenShard, causes: dict[str, int]) -> tuple[Written, ...]:
        read = shard.read
        rows = read.rows.rows
        files = self._output.write(shard_name(read.source, read.number), read.rows, shard.found)
        self._manifest.add(
            Entry(
                source=read.source,
                shard=read.number,
                input=rows[0].input,
                first_row=read.first_row,
                rows=len(rows),
                begin=read.begin,
                end=read.end,
                scored=len(rows) - shard.errors,
                errors=shard.errors,
                tokens=shard.tokens,
                rows_hash=rows_hash(rows),
                files=files,
                causes=causes,
                lacking=read.rows.lacking,
                lost=read.rows.lost,
            )
        )
        return files
