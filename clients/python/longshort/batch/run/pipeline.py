"""A run reads shards, scores their documents and writes the results, all at the same time.

Reading stays just far enough ahead to keep all servers busy. A separate thread writes a shard as soon as its last
document is answered. Memory therefore does not grow with the input.

Servers get the documents of the oldest shards only, so a kill loses a bounded amount of work.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from longshort.batch.inputs.reading import ReadShard, Skipped, SourceEnd
from longshort.batch.inputs.rows import Row, RowError, document_bytes
from longshort.batch.inputs.shards import Extent
from longshort.batch.output.shard_writer import OpenShard, ShardWriter
from longshort.batch.report.progress import Progress
from longshort.batch.run import answers
from longshort.batch.run.error_limits import ErrorLimits
from longshort.batch.run.scorer import Scorer
from longshort.batch.run.work import AnyAnswer, Job

# For each server, the bytes of documents in shards that are begun but not written: as many shards, and at least as many
# bytes.
_BEGUN_SHARDS = 4
_MIN_BEGUN_BYTES = 1 << 20
# How many times the servers' windows of documents are read ahead, so that no server runs out.
_AHEAD_WINDOWS = 4
_WAITING_WRITES = 8
_SHOW_SECONDS = 0.2


class Run:
    """Thread: that of the event loop."""

    def __init__(
        self,
        shards: Iterator[ReadShard | Skipped | SourceEnd],
        scorer: Scorer,
        writer: ShardWriter,
        limits: ErrorLimits,
        progress: Progress,
        stop: threading.Event,
        *,
        region_tokens: int,
        shard_bytes: int,
        ahead_bytes: int,
    ) -> None:
        """
        stop         ends the reading of `shards`
        shard_bytes  ShardLimits.bytes
        ahead_bytes  maximum bytes of shards that are read but not written, besides one shard
        """
        self._shards = shards
        self._scorer = scorer
        self._writer = writer
        self._limits = limits
        self._progress = progress
        self._stop = stop
        self._region_tokens = region_tokens
        self._begun_rows = 0
        # The extents of all sources, once the run is done.
        self.extents: list[Extent] = []
        self._min_begun_bytes = max(_MIN_BEGUN_BYTES, _BEGUN_SHARDS * shard_bytes)
        self._ahead_bytes = ahead_bytes
        # Bytes of the shards that are not written; and of the documents of those that were begun.
        self._held_bytes = self._begun_bytes = 0
        # Shards with their documents, none of which a server gets yet.
        self._pending: deque[tuple[OpenShard, list[Job]]] = deque()
        self._open = 0
        self._writing: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        scorer.failure.add_done_callback(lambda _: self._changed.set())

    async def run(self) -> None:
        """Raises BatchError, LongshortError, and CancelledError if it is cancelled. In every case, it first finishes
        the shards that are being written."""
        try:
            await self._feed()
            while self._open > 0 or self._writing:
                await self._wait()
        finally:
            self._stop.set()
            if self._writing:
                await asyncio.shield(asyncio.gather(*self._writing, return_exceptions=True))
        self._raise_failure()

    async def _feed(self) -> None:
        while True:
            while not self._has_room():
                await self._wait()
            read = await asyncio.to_thread(next, self._shards, None)
            if read is None:
                return
            if isinstance(read, ReadShard):
                self._begin(read)
            else:
                self._progress.skip(read.stored_bytes)
            if isinstance(read, SourceEnd):
                self.extents.append(read.extent)
            self._raise_failure()

    def _has_room(self) -> bool:
        """Whether to read another shard."""
        if self._pending:
            return False
        if len(self._writing) >= _WAITING_WRITES or self._held_bytes >= self._ahead_bytes:
            return self._open == 0 and not self._writing
        return self._scorer.waiting < _AHEAD_WINDOWS * max(16, self._scorer.window)

    async def _wait(self) -> None:
        """Waits for an answer, a written shard, or the next time to show progress."""
        self._changed.clear()
        self._raise_failure()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHOW_SECONDS):
                await self._changed.wait()
        self._progress.show(self._scorer.server_errors())
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._scorer.failure.done():
            self._scorer.failure.result()

    def _begin(self, read: ReadShard) -> None:
        shard = OpenShard(read)
        jobs = []
        first = self._begun_rows
        self._begun_rows += len(read.rows.rows)
        for place, row in enumerate(read.rows.rows):
            if row.document is None:
                self._count_error(row, first + place)
                self._progress.advance(False, 0, 0.0)
                continue
            size = document_bytes(row.document)
            jobs.append(Job(row.document, size, self._answer_callback(shard, place, size, first + place)))
            row.document = None
        shard.unanswered = len(jobs)
        shard.document_bytes = sum(job.bytes for job in jobs)
        shard.stored_bytes_by_byte = read.stored_bytes / max(1, shard.document_bytes)
        if self._failure is not None:
            return
        self._open += 1
        self._held_bytes += read.held_bytes
        # Longest first, so that no server still runs a long one when all others are done.
        jobs.sort(key=lambda job: -job.bytes)
        self._pending.append((shard, jobs))
        self._begin_pending()

    def _begin_pending(self) -> None:
        """Gives servers the documents of the next shards, as long as a kill does not lose too many."""
        while self._pending:
            shard, jobs = self._pending[0]
            most = self._min_begun_bytes * max(1, self._scorer.servers)
            if self._begun_bytes > 0 and self._begun_bytes + shard.document_bytes > most:
                return
            self._pending.popleft()
            self._begun_bytes += shard.document_bytes
            if jobs:
                self._scorer.put(jobs)
            else:
                self._end(shard)

    def _answer_callback(self, shard: OpenShard, place: int, size: int, index: int) -> Any:
        def take(answer: AnyAnswer) -> None:
            found = answers.result(answer, self._region_tokens)
            tokens = 0
            if isinstance(found, RowError):
                row = shard.read.rows.rows[place]
                row.error = found
                self._count_error(row, index)
            else:
                self._limits.add_result()
                shard.found[place] = found
                tokens = answers.tokens_of(found)
                shard.tokens += tokens
            self._progress.advance(isinstance(found, dict), tokens, size * shard.stored_bytes_by_byte)
            shard.unanswered -= 1
            if shard.unanswered == 0:
                self._end(shard)
            if self._has_room():
                self._changed.set()

        return take

    def _count_error(self, row: Row, index: int) -> None:
        self._limits.add_error(row, index)
        if self._failure is None and self._limits.failure is not None:
            self._failure = self._limits.failure
            self._changed.set()

    def _end(self, shard: OpenShard) -> None:
        """Writes the shard, whose documents are all answered."""
        self._open -= 1
        task = asyncio.ensure_future(self._write(shard))
        self._writing.add(task)
        task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and self._failure is None:
            self._failure = error
        self._changed.set()

    async def _write(self, shard: OpenShard) -> None:
        await self._writer.write(shard)
        self._held_bytes -= shard.read.held_bytes
        self._begun_bytes -= shard.document_bytes
        self._begin_pending()
