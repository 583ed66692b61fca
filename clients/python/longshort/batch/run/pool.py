"""Scores lists of documents by one server or several, for programs that read rows themselves (Ray, datatrove).

    with Pool("score", server=["a:8500", "b:8500"], model="enwiki") as pool:
        for found in pool.results(["some text", "another"]):
            print(found)

As `longshort-batch`, it keeps the servers busy, retries refused documents, and gives those of a lost server to others.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, TypeVar, Unpack

import grpc

from longshort._proto import models_pb2
from longshort.batch.inputs.rows import RowError, document_bytes
from longshort.batch.run import answers
from longshort.batch.run.models import check_model
from longshort.batch.run.options import ServerOptions, texts_to_classify, texts_to_score
from longshort.batch.run.scorer import Scorer
from longshort.batch.run.work import AnyAnswer, Job
from longshort.inputs import Document
from longshort.requests import check_options

T = TypeVar("T")


class Pool:
    """Connects in its constructor, and owns a thread with an event loop. Use it in a `with`, or call `close()`.

    Thread: any, with any number of calls at once. After fork(), each process needs a Pool of its own.
    """

    def __init__(
        self,
        command: Literal["score", "classify"],
        *,
        documents: int = 1,
        region_tokens: int = 0,
        top_k: int = 5,
        truncate: bool = False,
        **options: Unpack[ServerOptions],
    ) -> None:
        """`documents`: in each row. The other keywords are those of longshort.batch.score and classify.

        Errors: LongshortError if no server answers within a minute (or `patience`); Refused if the model does not
        support the command; ValueError for wrong options.
        """
        check_options(options, ServerOptions)
        texts = texts_to_score(region_tokens) if command == "score" else texts_to_classify(top_k, truncate)
        self._region_tokens = region_tokens
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="longshort-pool", daemon=True)
        self._thread.start()
        self._scorer: Scorer | None = None
        try:

            async def start() -> models_pb2.Model:
                self._scorer = Scorer(options, texts, region_tokens)
                return await self._scorer.start()

            found = self._await(start())
            check_model(found, command, documents)
            self._model = found
        except BaseException:
            self.close()
            raise

    @property
    def model(self) -> models_pb2.Model:
        """The model of the servers. It never changes: a server with another model ends the pool."""
        return self._model

    def results(self, documents: Sequence[Document]) -> list[dict[str, Any] | RowError]:
        """For each document, in order: the columns of longshort-batch's output (see result_columns.py), or its error.

        Errors: LongshortError if no server was available for `patience` seconds; ModelChanged.
        """
        if not documents:
            return []
        return self._await(self._results(documents))

    def close(self) -> None:
        """Closes all connections. Further calls have no effect."""
        if not self._thread.is_alive():
            return
        self._await(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _end(self) -> None:
        if self._scorer is not None:
            await self._scorer.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _results(self, documents: Sequence[Document]) -> list[dict[str, Any] | RowError]:
        assert self._scorer is not None
        found: list[dict[str, Any] | RowError] = [RowError(grpc.StatusCode.UNKNOWN, "")] * len(documents)
        left = len(documents)
        done = asyncio.Event()

        def taker(place: int) -> Any:
            def take(answer: AnyAnswer) -> None:
                nonlocal left
                found[place] = answers.result(answer, self._region_tokens)
                left -= 1
                if left == 0:
                    done.set()

            return take

        jobs = [Job(one, document_bytes(one), taker(place)) for place, one in enumerate(documents)]
        self._scorer.put(sorted(jobs, key=lambda job: -job.bytes))
        waiting = asyncio.ensure_future(done.wait())
        failure = asyncio.ensure_future(_wait_for(self._scorer.failure))
        try:
            await asyncio.wait([waiting, failure], return_when=asyncio.FIRST_COMPLETED)
            if not done.is_set():
                await failure
        finally:
            waiting.cancel()
            failure.cancel()
        return found


async def _wait_for(failure: asyncio.Future[None]) -> bool:
    await asyncio.shield(failure)
    return True
