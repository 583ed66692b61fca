"""What a kill can lose: the work on shards that are begun and not written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from longshort._proto import inference_pb2
from longshort.batch.inputs.reading import ReadShard
from longshort.batch.inputs.rows import Rows, good
from longshort.batch.output.records import Entry
from longshort.batch.output.shard_writer import ShardWriter
from longshort.batch.report.progress import Progress
from longshort.batch.run import pipeline
from longshort.batch.run.error_limits import ErrorLimits
from longshort.batch.run.work import Job

SHARD_BYTES = 1 << 20
ANSWER = inference_pb2.ScoreTextsResponse(score={"token_count": 1})


class Servers:
    """Take all documents that they get, and answer the one that came last: the worst order for a kill."""

    def __init__(self, count: int) -> None:
        self.servers = count
        self.window, self.waiting = 64 * count, 0
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.jobs: list[Job] = []
        # Set once the run waits for answers: it has sent all that it may.
        self.is_waited_for = asyncio.Event()
        # The most bytes of documents that were sent and are in no written shard.
        self.most_lost = self.sent = self.written = 0

    def put(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self.jobs.append(job)
            self.sent += job.bytes
        self.most_lost = max(self.most_lost, self.sent - self.written)

    async def answer(self) -> None:
        await self.is_waited_for.wait()
        while True:
            await asyncio.sleep(0)
            if self.jobs:
                self.jobs.pop().finish(ANSWER)

    def server_errors(self) -> dict[str, str]:
        """For the progress, which a run shows while it waits."""
        self.is_waited_for.set()
        return {}


class Disk:
    """Counts the documents of written shards."""

    def __init__(self, servers: Servers, bytes_of: list[int]) -> None:
        self._servers = servers
        self._bytes_of = bytes_of
        self.shards: list[int] = []

    def write(self, *_: Any) -> tuple[()]:
        return ()

    def add(self, entry: Entry) -> None:
        self.shards.append(entry.shard)
        self._servers.written += self._bytes_of[entry.shard]


def shards(documents: list[list[int]]) -> Iterator[ReadShard]:
    """Shards with documents of these sizes."""
    first = 0
    for number, sizes in enumerate(documents):
        rows = [good("a", first + place, b"x" * size) for place, size in enumerate(sizes)]
        yield ReadShard(0, number, Rows(rows, pa.table({})), first, first, first + len(rows), 0.0, sum(sizes))
        first += len(rows)


async def most_lost(documents: list[list[int]], servers: int) -> int:
    scorer = Servers(servers)
    disk: Any = Disk(scorer, [sum(sizes) for sizes in documents])
    running: Any = scorer
    one = pipeline.Run(
        *(shards(documents), running, ShardWriter(disk, disk)),
        ErrorLimits(max_errors=None, errors_before=0, check_first=False),
        *(Progress("quiet", 1), threading.Event()),
        region_tokens=0,
        shard_bytes=SHARD_BYTES,
        ahead_bytes=64 << 20,
    )
    answering = asyncio.ensure_future(scorer.answer())
    await one.run()
    answering.cancel()
    assert sorted(disk.shards) == list(range(len(documents)))
    scorer.failure.cancel()
    return scorer.most_lost


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("size", [SHARD_BYTES, SHARD_BYTES // 2, SHARD_BYTES // 8])
def test_a_kill_loses_at_most_four_shards_for_each_server(size: int, servers: int) -> None:
    documents = [[size] * (SHARD_BYTES // size) for _ in range(24)]
    assert SHARD_BYTES < asyncio.run(most_lost(documents, servers)) <= 4 * SHARD_BYTES * servers


def test_a_document_that_is_longer_than_four_shards_runs_alone() -> None:
    documents = [[5 * SHARD_BYTES], [SHARD_BYTES], [9 * SHARD_BYTES], [10] * 100]
    assert asyncio.run(most_lost(documents, 1)) == 9 * SHARD_BYTES


def test_many_short_documents_keep_servers_busy() -> None:
    """Of short documents, there are always more than a server takes."""
    documents = [[100] * 100 for _ in range(50)]
    assert 64 * 100 < asyncio.run(most_lost(documents, 1)) < 4 * SHARD_BYTES
