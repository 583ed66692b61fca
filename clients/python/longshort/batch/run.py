"""A run reads shards, scores their documents and writes the results, all at the same time.

Reading stays just far enough ahead to keep all servers busy. A separate thread writes a shard as soon as its last
document is answered. Memory therefore does not grow with the input.

Servers get the documents of the oldest shards only, so a kill loses a bounded amount of work.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from longshort.batch import results
from longshort.batch.causes import Causes, cause
from longshort.batch.completion import Extent
from longshort.batch.failures import TooFewResults, TooManyErrors
from longshort.batch.manifest import Entry, Manifest, Written
from longshort.batch.output import Output, rows_hash
from longshort.batch.progress import Progress
from longshort.batch.reading import ReadShard, Skipped, SourceEnd
from longshort.batch.rows import Row, RowError, document_bytes
from longshort.batch.scorer import Scorer
from longshort.batch.shards import shard_name
from longshort.batch.work import AnyAnswer, Job

# For each server, the bytes of documents in shards that are begun but not written: as many shards, and at least as many
# bytes.
_BEGUN_SHARDS = 4
_MIN_BEGUN_BYTES = 1 << 20
# How many times the servers' windows of documents are read ahead, so that no server runs out.
_AHEAD_WINDOWS = 4
_WRITERS = 2
_WAITING_WRITES = 8
_SHOW_SECONDS = 0.2
# If so many first rows all have the same error, the run ends.
_FIRST_ROWS = 100


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


class Run:
    """Thread: that of the event loop."""

    def __init__(
        self,
        shards: Iterator[ReadShard | Skipped | SourceEnd],
        scorer: Scorer,
        output: Output,
        manifest: Manifest,
        progress: Progress,
        stop: threading.Event,
        *,
        region_tokens: int,
        max_errors: int | None,
        errors_before: int,
        check_first: bool,
        shard_bytes: int,
        ahead_bytes: int,
    ) -> None:
        """
        stop         ends the reading of `shards`
        max_errors   includes `errors_before`, the errors of earlier runs
        check_first  end if the first rows all have the same error
        shard_bytes  ShardLimits.bytes
        ahead_bytes  maximum bytes of shards that are read but not written, besides one shard
        """
        self._shards = shards
        self._scorer = scorer
        self._output = output
        self._manifest = manifest
        self._progress = progress
        self._stop = stop
        self._region_tokens = region_tokens
        self._max_errors = max_errors
        self._errors = errors_before
        # The causes of the first rows' errors, while there is no other result.
        self._first_causes: list[str] | None = [] if check_first else None
        self._begun_rows = 0
        self.causes = Causes()
        self.lacking: Counter[str] = Counter()
        self.totals = Totals()
        # The extents of all sources, once the run is done; and the files that it has written.
        self.extents: list[Extent] = []
        self.files: set[str] = set()
        self._min_begun_bytes = max(_MIN_BEGUN_BYTES, _BEGUN_SHARDS * shard_bytes)
        self._ahead_bytes = ahead_bytes
        # Bytes of the shards that are not written; and of the documents of those that were begun.
        self._held_bytes = self._begun_bytes = 0
        # Shards with their documents, none of which a server gets yet.
        self._pending: deque[tuple[OpenShard, list[Job]]] = deque()
        self._open = 0
        self._writing: set[asyncio.Task[None]] = set()
        self._writers = asyncio.Semaphore(_WRITERS)
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
            is_first = first + place < _FIRST_ROWS
            if row.document is None:
                self._count_error(row, is_first)
                self._progress.advance(False, 0, 0.0)
                continue
            size = document_bytes(row.document)
            jobs.append(Job(row.document, size, self._answer_callback(shard, place, size, is_first)))
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

    def _answer_callback(self, shard: OpenShard, place: int, size: int, is_first: bool) -> Any:
        def take(answer: AnyAnswer) -> None:
            found = results.result(answer, self._region_tokens)
            tokens = 0
            if isinstance(found, RowError):
                row = shard.read.rows.rows[place]
                row.error = found
                self._count_error(row, is_first)
            else:
                self._first_causes = None
                shard.found[place] = found
                tokens = results.tokens_of(found)
                shard.tokens += tokens
            self._progress.advance(isinstance(found, dict), tokens, size * shard.stored_bytes_by_byte)
            shard.unanswered -= 1
            if shard.unanswered == 0:
                self._end(shard)
            if self._has_room():
                self._changed.set()

        return take

    def _count_error(self, row: Row, is_first: bool) -> None:
        self._errors += 1
        message = row.error.message if row.error else ""
        if is_first and self._first_causes is not None:
            self._first_causes.append(cause(message))
            if len(set(self._first_causes)) > 1:
                self._first_causes = None
            elif len(self._first_causes) == _FIRST_ROWS and self._failure is None:
                self._failure = TooFewResults(_first_rows_message(row, message))
                self._changed.set()
        if self._max_errors is not None and self._errors > self._max_errors and self._failure is None:
            self._failure = TooManyErrors(
                f"{self._errors} rows have errors; max_errors is {self._max_errors}. The last is row {row.ordinal} of"
                f" {row.input}: {message}. The folder errors of the output has those of"
                " finished shards. To resume, run the same command with a larger max_errors"
            )
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
        async with self._writers:
            causes = Causes()
            for row in shard.read.rows.rows:
                if row.error is not None:
                    causes.add(row.error.message)
            files = await asyncio.to_thread(self._write_now, shard, causes.most_frequent())
        self._held_bytes -= shard.read.held_bytes
        self._begun_bytes -= shard.document_bytes
        self._begin_pending()
        self.files.update(file.name for file in files)
        errors = shard.errors
        self.causes.merge(causes.most_frequent())
        self.lacking.update(shard.read.rows.lacking)
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
            )
        )
        return files


def _first_rows_message(row: Row, message: str) -> str:
    advice = "Correct the inputs or the options"
    if message.startswith('there is no "'):
        advice = "Give the field or column with the documents by --text (text=)"
    return (
        f"the first {_FIRST_ROWS} rows all have the same error, so the run has ended. Row {row.ordinal} of {row.input}:"
        f" {message}. {advice}; with --min-success=0 (min_success=0) a run goes on after such a beginning"
    )
