"""One server of a run: a stream of documents to it, opened again whenever it is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from longshort import errors, methods
from longshort._async import transport
from longshort._async.calls import AsyncCalls
from longshort._proto import inference_pb2, models_pb2, types_pb2
from longshort.batch.failures import BatchError
from longshort.batch.long_documents import LongScore, score_long
from longshort.batch.pace import Pace
from longshort.batch.ways import Way, way_of
from longshort.batch.work import LOSSES, Answer, Job, Work
from longshort.connection import Connection
from longshort.errors import LongshortError
from longshort.metadata import CallOptions
from longshort.retries import PATIENT, Attempts, RetryPolicy, not_all_at_once

# Of what says where a model is.
_LOOK_SECONDS = 20.0
_ONCE = RetryPolicy(attempts=1)
_INVALID_ARGUMENT = 3
_RESOURCE_EXHAUSTED = 8
# CANCELLED, UNAVAILABLE: what a server says of documents that it did not come to.
_STOPPING = (1, 14)


class Server:
    """Takes documents of the common work, as many as do it good, and gives back what it could not answer.

    Thread: the event loop's.
    """

    def __init__(
        self,
        connection: Connection,
        work: Work,
        texts: inference_pb2.ScoreTextsOptions,
        check: Callable[[models_pb2.Model, str], None],
        *,
        client_id: str,
        options: CallOptions,
        timeout: float,
        region_tokens: int,
    ) -> None:
        """
        check          is told the model that the server has, and the server's name; raises what is wrong with it
        timeout        seconds that no answer may come while documents are unanswered
        region_tokens  the window of surprise by region; 0: it is not asked for
        """
        self.name = connection.servers[0]
        # When it last answered anything, by the loop's clock.
        self.answered_at: float | None = None
        # What was wrong last, while it is not in use.
        self.error: LongshortError | None = None
        self.pace = Pace()
        self._work = work
        self._texts = texts
        self._check = check
        self._options = options
        self._timeout = timeout
        self._region_tokens = region_tokens
        self._calls = AsyncCalls(connection, client_id=client_id, timeout=_LOOK_SECONDS, retry=_ONCE)
        # What the server said of it last.
        self._model = models_pb2.Model()
        # Of documents that take several calls.
        self._long: dict[int, asyncio.Task[None]] = {}
        self._exchange: transport.Exchange[inference_pb2.ScoreTextsRequest, Answer] | None = None
        self._unanswered: dict[int, Job] = {}
        self._next_id = 0
        # Whether the stream's first message was sent, which has its options.
        self._opened = False
        self._alone = False
        # Of streams that were lost, one after the other.
        self._attempts = Attempts(PATIENT, float("inf"))
        # Documents that were refused are not sent before that time.
        self._not_before = 0.0
        # Why this side has ended the stream.
        self._ended_by: Exception | None = None

    async def run(self) -> None:
        """Until cancelled. Raises LongshortError for what waiting does not change, and what `check` raises."""
        while True:
            try:
                await self._open()
                await self._read()
            except LongshortError as error:
                self._lose(error)
                if not _passes(error):
                    raise
                await asyncio.sleep(self._attempts.wait_until_better(error))
            finally:
                self._lose(None)

    async def close(self) -> None:
        await self._calls.close()

    async def model(self) -> models_pb2.Model:
        """What the server has under the name of the run's model. Raises LongshortError."""
        wanted = self._texts.model
        try:
            return await self._ask(wanted)
        except errors.NotFound:
            if not wanted.version:
                raise
        # Its version is gone: another one may have taken its place.
        return await self._ask(types_pb2.ModelSelector(name=wanted.name))

    async def _ask(self, model: types_pb2.ModelSelector) -> models_pb2.Model:
        return await self._calls.unary(methods.GET_MODEL, models_pb2.GetModelRequest(model=model), CallOptions())

    def fill(self) -> None:
        """Sends what there is room for. For whoever has put work."""
        if self._exchange is None or self._alone:
            return
        now = asyncio.get_running_loop().time()
        if now < self._not_before:
            return
        while len(self._unanswered) < self.pace.size:
            job = self._work.take(len(self._unanswered))
            if job is None:
                self.pace.starved()
                return
            self._send(job, now)
            if self._alone:
                return

    def look_after(self, now: float) -> None:
        """Ends a stream that has not answered for too long, and fills one that had to wait. From time to time."""
        if self._unanswered and self._exchange is not None:
            last = max(self.answered_at or 0.0, min(job.sent for job in self._unanswered.values()))
            if now - last > self._timeout:
                self._end(errors.DeadlineExceeded(f"no answer came in {self._timeout:g} s"))
                return
        self.fill()

    async def _open(self) -> None:
        """A stream to the model that the run is of. Raises LongshortError, and what `check` raises."""
        model = await self.model()
        self._check(model, self.name)
        self._heard()
        self.pace.most = max(1, model.limits.window)
        self._model = model
        call = self._calls.begin(self._options, timeout=float("inf"))
        self._exchange = call.exchange(methods.SCORE_TEXTS)
        self._opened = False
        self._ended_by = None
        self.fill()

    async def _read(self) -> None:
        """Raises LongshortError at the stream's end."""
        assert self._exchange is not None
        checked = False
        while True:
            try:
                answer = await self._exchange.read(None)
            except LongshortError as error:
                await self._calls.explain(error)
                raise
            if answer is None:
                raise self._ended_by or errors.Unavailable("the server ended the stream")
            if not checked:
                # Between the look at the model and the stream, another one may have taken its place.
                self._check(await self.model(), self.name)
                checked = True
                self._attempts.succeeded()
            self._take(answer)
            self.fill()

    def _heard(self) -> None:
        self.answered_at = asyncio.get_running_loop().time()
        self.error = None

    def _send(self, job: Job, now: float) -> None:
        way = way_of(job, self._model, self._region_tokens, self._texts.truncate)
        if isinstance(way, str):
            job.fail(_INVALID_ARGUMENT, way)
            return
        job.sent = now
        if way is Way.PIECES:
            self._begin_long(job)
            return
        try:
            request = job.request(self._next_id)
        except (TypeError, ValueError) as error:
            job.fail(_INVALID_ARGUMENT, str(error))
            return
        if not self._opened:
            self._opened = True
            first = inference_pb2.ScoreTextsRequest(options=self._texts)
            first.MergeFrom(request)
            request = first
        self._alone = job.alone
        self._unanswered[self._next_id] = job
        self._next_id += 1
        assert self._exchange is not None
        self._exchange.write(request)

    def _begin_long(self, job: Job) -> None:
        id, self._next_id = self._next_id, self._next_id + 1
        self._alone = job.alone
        self._unanswered[id] = job
        self._long[id] = asyncio.ensure_future(self._score_long(id, job))

    def _end(self, error: Exception) -> None:
        """Has `_read` raise the error."""
        self._ended_by = error
        if self._exchange is not None:
            self._exchange.cancel()

    async def _score_long(self, id: int, job: Job) -> None:
        assert job.document is not None and not isinstance(job.document, tuple)
        options = CallOptions(timeout=self._timeout, **self._options)
        found: LongScore | LongshortError
        try:
            found = await score_long(
                self._calls,
                job.document,
                self._texts.model,
                self._region_tokens,
                self._model.limits.message_bytes or 1 << 20,
                options,
                self._heard,
            )
            # Its calls are not the stream's: the model may be another by now.
            self._check(await self.model(), self.name)
        except (errors.NotFound, BatchError) as error:
            # The model is gone, or is another one.
            self._end(error)
            return
        except LongshortError as error:
            found = error
        del self._unanswered[id], self._long[id]
        self._alone = False
        if isinstance(found, LongScore):
            job.finish(found)
        else:
            lasting = isinstance(found, (errors.InvalidArgument, errors.PermissionDenied))
            self._give_back([job], found, lasting)
        self.fill()

    def _take(self, answer: Answer) -> None:
        self._heard()
        job = self._unanswered.pop(answer.id, None)
        if job is None:
            return
        self._alone = False
        now = asyncio.get_running_loop().time()
        if answer.HasField("error") and self._is_refusal(answer.error, now, job):
            self.pace.refused()
            job.losses += 0 if answer.error.code == _RESOURCE_EXHAUSTED else 1
            self._work.put_back([job])
            asyncio.get_running_loop().call_at(self._not_before + 0.001, self.fill)
            return
        tokens, served_seconds = _cost(answer)
        self.pace.answered(tokens, now - job.sent, served_seconds, now)
        job.finish(answer)

    def _is_refusal(self, error: types_pb2.ItemError, now: float, job: Job) -> bool:
        """Whether the document may be sent again, and then when. A server that stops is left by its documents."""
        if error.code == _RESOURCE_EXHAUSTED and error.HasField("retry_after_seconds"):
            wait = error.retry_after_seconds
        elif error.code in _STOPPING and job.losses + 1 < 2 * LOSSES:
            wait = 1.0
        else:
            return False
        self._not_before = now + not_all_at_once(max(0.01, wait), random.random())
        return True

    def _lose(self, error: LongshortError | None) -> None:
        """The stream is over: what is unanswered is for others."""
        if self._exchange is not None:
            self._exchange.cancel()
            self._exchange = None
        for task in self._long.values():
            task.cancel()
        self._long.clear()
        jobs, self._unanswered, self._alone = list(self._unanswered.values()), {}, False
        if error is None:
            self._work.put_back(jobs)
            return
        self.error = error
        self.pace.refused()
        self._give_back(jobs, error)

    def _give_back(self, jobs: Sequence[Job], error: LongshortError, lasting: bool = False) -> None:
        """Documents that were not answered. `lasting`: they never will be."""
        refused = isinstance(error, errors.ResourceExhausted) and error.retry_after is not None
        for job in jobs:
            job.losses += 0 if refused else 1
        hopeless = [job for job in jobs if lasting or job.losses >= 2 * LOSSES]
        self._work.put_back(job for job in jobs if job not in hopeless)
        for job in hopeless:
            often = "" if lasting else f"{job.losses} times in a row: "
            job.fail(error.code.value[0], f"{often}{error.message}")


def _passes(error: LongshortError) -> bool:
    """Whether waiting may help: the others are as wrong the next time."""
    lasting = (
        errors.FailedPrecondition,
        errors.InvalidArgument,
        errors.PermissionDenied,
        errors.Unauthenticated,
        errors.Unimplemented,
    )
    return not isinstance(error, lasting)


def _cost(answer: Answer) -> tuple[int, float]:
    """Tokens of an answered document, and seconds in which the server worked on it."""
    if answer.HasField("classification"):
        found = answer.classification
        return sum(one.token_count for one in found.documents), found.classification.timings.run_seconds
    return answer.score.token_count, answer.score.timings.prefill_seconds
