"""Scores or classifies any number of documents over one stream."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from longshort import errors, methods
from longshort._async import transport
from longshort._async.calls import AsyncCalls, Call
from longshort._async.iteration import AsyncClosing, AsyncIteration
from longshort._proto import inference_pb2
from longshort.errors import LongshortError, StatusLost
from longshort.inputs import Document
from longshort.metadata import CallOptions
from longshort.window import Window

T = TypeVar("T")
Answer = inference_pb2.ScoreTextsResponse


class AsyncAnswerStream(AsyncClosing, Generic[T]):
    """Iterates over the answers to documents, and reads documents from their source on demand.

    - At most `window` documents are read but not yet answered. So the source may be endless, and a slow caller slows
      down the stream.
    - The source is read in the caller's thread or task. A received answer is returned before another document is read.
    - If the connection is lost, unanswered documents are sent again, to the same server or another. Each document gets
      exactly one answer.
    - An error of the stream is raised; earlier answers remain valid. An error of one document is its answer's `error`.
    - Leaving the loop, the end of a `with` and `close()` end the stream.
    """

    def __init__(
        self,
        calls: AsyncCalls,
        documents: transport.Source[Document],
        texts: inference_pb2.ScoreTextsOptions,
        options: CallOptions,
        convert: Callable[[Answer], T],
        *,
        window: int,
        ordered: bool,
    ) -> None:
        self._convert = convert
        self._source = transport.Items(documents)
        self._texts = texts
        self._window = Window(window, ordered)
        # The length of the stream is unknown, so the timeout applies to each answer instead of the stream.
        patience = calls.timeout_of(options)
        self._patience = None if patience == float("inf") else patience
        self._call: Call = calls.begin(options, timeout=float("inf"))
        self._stream: transport.Exchange[inference_pb2.ScoreTextsRequest, Answer] | None = None
        # Whether to send only the first unanswered document until its answer arrives. Then no other write is pending,
        # which could make gRPC lose the status (errors.StatusLost).
        self._careful = False

    def __aiter__(self) -> AsyncIteration[T]:
        """The answers. Raises LongshortError, and the exceptions of the source."""
        return AsyncIteration(self._next, self.cancel)

    async def _next(self) -> T | None:
        """Returns None at the end."""
        while not self._closed:
            answer = self._window.take()
            if answer is not None:
                return self._convert(answer)
            if self._window.has_room() and not (self._stream is not None and await self._stream.ready()):
                await self._read_document()
            elif self._window.count_unanswered() > 0:
                await self._read_answer()
            else:
                await self._end()
        return None

    async def _read_document(self) -> None:
        item = await self._source.next()
        if item is None:
            self._window.end()
            if self._stream is not None and not self._careful:
                self._stream.done_writing()
            return
        request = self._window.add(item[0])
        if self._stream is None:
            self._open()
        elif not self._careful:
            self._stream.write(request)

    def _open(self) -> None:
        """Opens a stream and sends all unanswered documents."""
        self._stream = self._call.exchange(methods.SCORE_TEXTS)
        first, *others = self._window.unanswered()
        beginning = inference_pb2.ScoreTextsRequest(options=self._texts)
        beginning.options.keep_alives = True
        beginning.MergeFrom(first)
        self._stream.write(beginning)
        if not self._careful:
            self._send(others)

    def _send(self, requests: Iterable[inference_pb2.ScoreTextsRequest]) -> None:
        assert self._stream is not None
        for request in requests:
            self._stream.write(request)
        if self._window.ended:
            self._stream.done_writing()

    async def _read_answer(self) -> None:
        if self._stream is None:
            self._open()
            return
        try:
            answer = await self._stream.read(self._patience)
            if answer is None:
                raise errors.Internal(f"the server did not answer {self._window.count_unanswered()} documents")
        except LongshortError as error:
            if self._closed:
                return
            self._stream.cancel()
            self._call.attempts.was_alive(self._stream.alive)
            self._stream = None
            lost, self._careful = isinstance(error, StatusLost) and not self._careful, True
            if not lost:
                await self._call.recover(error)
            return
        # Pins the model version, for the case that the stream continues at another server.
        self._texts.model.CopyFrom(answer.model)
        self._call.attempts.succeeded()
        self._window.answer(answer)
        if self._careful:
            self._careful = False
            self._send(self._window.unanswered())

    async def _end(self) -> None:
        """Ends the stream after the last answer. Its status no longer matters."""
        self._closed = True
        if self._stream is not None:
            with contextlib.suppress(LongshortError):
                await self._stream.read(self._patience)
