"""One server of a run: a stream of documents, which is opened again whenever it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from longshort import errors, methods
from longshort._async import transport
from longshort._async.calls import AsyncCalls
from longshort._proto import inference_pb2, models_pb2, types_pb2
from longshort.batch.report.failures import BatchError
from longshort.batch.run.adaptive_window import AdaptiveWindow
from longshort.batch.run.delivery import Delivery, choose_delivery
from longshort.batch.run.long_documents import LongScore, score_long
from longshort.batch.run.work import LOSSES, Answer, Job, Work
from longshort.connection import Connection
from longshort.errors import LongshortError
from longshort.metadata import CallOptions
from longshort.retries import PATIENT, Attempts, RetryPolicy

# Timeout of a GetModel call.
_LOOKUP_SECONDS = 20.0
# For cancelled tasks to close their sessions.
_CLOSE_SECONDS = 2.0
_ONCE = RetryPolicy(attempts=1)
_INVALID_ARGUMENT = 3
_RESOURCE_EXHAUSTED = 8
# CANCELLED, UNAVAILABLE: the codes of documents that a stopping server did not score.
_STOPPING = (1, 14)


class Server:
    """Takes documents from the shared queue, as many as keep it busy, and returns those that it could not answer.

    Thread: that of the event loop.
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
        check          called with the server's model and name; raises an error if the model is wrong
        timeout        maximum seconds without an answer while documents are unanswered
        region_tokens  tokens in a region; 0: no regions
        """
        self.name = connection.servers[0]
        # Time of its last answer, by the loop's clock.
        self.answered_at: float | None = None
        # Its last error while it is not available; None while it is.
        self.error: LongshortError | None = None
        self.window = AdaptiveWindow()
        self._work = work
        self._texts = texts
        self._check = check
        self._options = options
        self._timeout = timeout
        self._region_tokens = region_tokens
        self._calls = AsyncCalls(connection, client_id=client_id, timeout=_LOOKUP_SECONDS, retry=_ONCE)
        # The model as the server described it last.
        self._model = models_pb2.Model()
        # Tasks of documents that need several calls.
        self._long: dict[int, asyncio.Task[None]] = {}
        # Those of them that were cancelled, and close their sessions.
        self._ending: set[asyncio.Task[None]] = set()
        self._exchange: transport.Exchange[inference_pb2.ScoreTextsRequest, Answer] | None = None
        self._unanswered: dict[int, Job] = {}
        self._next_id = 0
        # Whether the stream's first message, which has the options, was sent.
        self._opened = False
        self._alone = False
        # Counts consecutive lost streams.
        self._attempts = Attempts(PATIENT, float("inf"))
        # No document is sent before this time, after a refusal.
        self._not_before = 0.0
        # Why the client has ended the stream.
        self._ended_by: Exception | None = None

    async def run(self) -> None:
        """Runs until it is cancelled. Raises a LongshortError that is not transient, and errors of `check`."""
        while True:
            try:
                await self._open()
                await self._read()
            except LongshortError as error:
                self._lose(error)
                if not _is_transient(error):
                    raise
                await asyncio.sleep(self._attempts.wait_until_better(error))
            finally:
                self._lose(None)

    async def close(self) -> None:
        # Cancelled tasks close their sessions.
        if self._ending:
            await asyncio.wait(self._ending, timeout=_CLOSE_SECONDS)
        await self._calls.close()

    async def wanted_model(self) -> models_pb2.Model:
        """The model that the run names, before it starts. Raises LongshortError: NotFound for a version that is not
        there, whatever other versions are."""
        return await self._ask(self._texts.model)

    async def model(self) -> models_pb2.Model:
        """The server's model with the name of the run's model, for `check`. Raises LongshortError."""
        wanted = self._texts.model
        try:
            return await self._ask(wanted)
        except errors.NotFound:
            if not wanted.version:
                raise
        # Its version is gone. Another version may have replaced it, which `check` names.
        return await self._ask(types_pb2.ModelSelector(name=wanted.name))

    async def _ask(self, model: types_pb2.ModelSelector) -> models_pb2.Model:
        return await self._calls.unary(methods.GET_MODEL, models_pb2.GetModelRequest(model=model), CallOptions())

    def fill(self) -> None:
        """Sends documents while the window has room. Callers that add work call it."""
        if self._exchange is None or self._alone:
            return
        now = asyncio.get_running_loop().time()
        if now < self._not_before:
            return
        while len(self._unanswered) < self.window.size:
            job = self._work.take(len(self._unanswered))
            if job is None:
                self.window.on_starved()
                return
            self._send(job, now)
            if self._alone:
                return

    def poll(self, now: float) -> None:
        """Ends a stream whose answers are overdue, and fills one that had to wait. Called at intervals."""
        if self._unanswered and self._exchange is not None:
            last = max(self.answered_at or 0.0, min(job.sent for job in self._unanswered.values()))
            if now - last > self._timeout:
                self._end(errors.DeadlineExceeded(f"the server sent no answer for {self._timeout:g} s"))
                return
        self.fill()

    async def _open(self) -> None:
        """Opens a stream to the run's model. Raises LongshortError, and errors of `check`."""
        model = await self.model()
        self._check(model, self.name)
        self._on_answer()
        self.window.max_size = max(1, model.limits.window)
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
                # Another model may have replaced it between the check and the stream.
                self._check(await self.model(), self.name)
                checked = True
                self._attempts.succeeded()
            self._take(answer)
            self.fill()

    def _on_answer(self) -> None:
        self.answered_at = asyncio.get_running_loop().time()
        self.error = None

    def _send(self, job: Job, now: float) -> None:
        way = choose_delivery(job, self._model, self._region_tokens, self._texts.truncate)
        if isinstance(way, str):
            job.fail(_INVALID_ARGUMENT, way)
            return
        job.sent = now
        if way is Delivery.PIECES:
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
            first.options.keep_alives = True
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
        """Makes `_read` raise the error."""
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
                self._on_answer,
            )
            # Its calls are not those of the stream, so the model may have changed.
            self._check(await self.model(), self.name)
        except (errors.NotFound, errors.Unavailable, BatchError) as error:
            # The model is gone or has changed, or the server stops. The stream would stay open while the server drains.
            self._end(error)
            return
        except LongshortError as error:
            found = error
        except (TypeError, ValueError) as error:
            found = errors.InvalidArgument(str(error))
        del self._unanswered[id], self._long[id]
        self._alone = False
        if isinstance(found, LongScore):
            job.finish(found)
        else:
            permanent = isinstance(found, (errors.InvalidArgument, errors.PermissionDenied))
            self._requeue_or_fail([job], found, permanent)
        self.fill()

    def _take(self, answer: Answer) -> None:
        self._on_answer()
        job = self._unanswered.pop(answer.id, None)
        if job is None:
            return
        self._alone = False
        now = asyncio.get_running_loop().time()
        if answer.HasField("error") and self._is_refusal(answer.error, now, job):
            self.window.on_refusal()
            job.losses += 0 if answer.error.code == _RESOURCE_EXHAUSTED else 1
            self._work.requeue([job])
            asyncio.get_running_loop().call_at(self._not_before + 0.001, self.fill)
            return
        tokens, served_seconds = _cost(answer)
        self.window.on_answer(tokens, now - job.sent, served_seconds, now)
        job.finish(answer)

    def _is_refusal(self, error: types_pb2.ItemError, now: float, job: Job) -> bool:
        """Whether the document may be sent again; sets the time. Other servers get the documents of a stopping one."""
        if error.code == _RESOURCE_EXHAUSTED and error.HasField("retry_after_seconds"):
            wait = error.retry_after_seconds
        elif error.code in _STOPPING and job.losses + 1 < 2 * LOSSES:
            wait = 1.0
        else:
            return False
        self._not_before = now + self._attempts.wait_of_item(max(0.01, wait))
        return True

    def _lose(self, error: LongshortError | None) -> None:
        """Ends the stream, and returns its unanswered documents to the queue."""
        if self._exchange is not None:
            self._exchange.cancel()
            self._exchange = None
        for task in self._long.values():
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self._long.clear()
        jobs, self._unanswered, self._alone = list(self._unanswered.values()), {}, False
        if error is None:
            self._work.requeue(jobs)
            return
        self.error = error
        self.window.on_refusal()
        self._requeue_or_fail(jobs, error)

    def _requeue_or_fail(self, jobs: Sequence[Job], error: LongshortError, permanent: bool = False) -> None:
        """Returns unanswered documents to the queue. After too many losses, or if the error is `permanent`, it becomes
        the answer instead."""
        refused = isinstance(error, errors.ResourceExhausted) and error.retry_after is not None
        for job in jobs:
            job.losses += 0 if refused else 1
        failed = [job for job in jobs if permanent or job.losses >= 2 * LOSSES]
        self._work.requeue(job for job in jobs if job not in failed)
        for job in failed:
            often = "" if permanent else f"{job.losses} times in a row: "
            job.fail(error.code.value[0], f"{often}{error.message}")


def _is_transient(error: LongshortError) -> bool:
    """Whether a later call may succeed."""
    permanent = (
        errors.FailedPrecondition,
        errors.InvalidArgument,
        errors.PermissionDenied,
        errors.Unauthenticated,
        errors.Unimplemented,
    )
    return not isinstance(error, permanent)


def _cost(answer: Answer) -> tuple[int, float]:
    """Tokens of an answered document, and seconds that the server worked on it."""
    if answer.HasField("classification"):
        found = answer.classification
        return sum(one.token_count for one in found.documents), found.classification.timings.run_seconds
    if answer.HasField("embedding"):
        return sum(one.token_count for one in answer.embedding.documents), answer.embedding.timings.run_seconds
    return answer.score.token_count, answer.score.timings.prefill_seconds
