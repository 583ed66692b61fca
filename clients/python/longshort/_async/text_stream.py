"""A stream of generated text."""

from __future__ import annotations

from collections.abc import Callable

from longshort import methods
from longshort._async.calls import AsyncCalls
from longshort._async.iteration import AsyncClosing, AsyncIteration
from longshort._proto import inference_pb2
from longshort.answers import Delta, Generation
from longshort.errors import LongshortError
from longshort.generation import Assembly
from longshort.metadata import CallOptions


class AsyncTextStream(AsyncClosing):
    """Iterates over the text of a generation as it arrives. `result` has the whole generation in the end.

    The call starts with the first read. Leaving the loop (by break or an exception), the end of a `with`, `close()` and
    the deletion of the stream cancel the call, and the server stops generating. The call is retried like any other
    until its first message arrives, but not later.

    Not thread-safe, except for close().
    """

    def __init__(
        self,
        calls: AsyncCalls,
        request: inference_pb2.GenerateRequest,
        options: CallOptions,
        on_session: Callable[[int | None], None] = lambda tokens: None,
    ) -> None:
        session = request.session
        self._safe = not session.id or session.HasField("expected_tokens")
        self._calls = calls
        self._request = request
        self._options = options
        self._on_session = on_session
        self._assembly = Assembly()
        self._result: Generation | None = None

    def __aiter__(self) -> AsyncIteration[str]:
        """The pieces of text. Raises LongshortError, and ValueError for several completions, whose text is
        interleaved."""
        if self._request.completions > 1:
            raise ValueError(
                "completions is more than 1: iterate over deltas(), which have the completion's index, or use finish()"
            )
        return AsyncIteration(self._next_text, self.cancel)

    def deltas(self) -> AsyncIteration[Delta]:
        """The pieces of all completions, with their tokens and bytes if requested. Raises LongshortError."""
        return AsyncIteration(self._next_delta, self.cancel)

    def messages(self) -> AsyncIteration[inference_pb2.GenerateStreamResponse]:
        """The raw messages as they arrive."""
        return AsyncIteration(self._next_message, self.cancel)

    async def finish(self) -> Generation:
        """Reads to the end and returns the whole result. Raises LongshortError."""
        try:
            while await self._next_delta() is not None:
                pass
        finally:
            self.cancel()
        return self.result

    @property
    def result(self) -> Generation:
        """The whole generation. Raises RuntimeError until all text was read."""
        if self._result is None:
            raise RuntimeError("the generation was not read to the end: iterate to the end, or call finish()")
        return self._result

    @property
    def text(self) -> str:
        """The text of the first completion received so far, also after an error."""
        return self._assembly.text()

    def __del__(self) -> None:
        if getattr(self, "_stream", None) is not None:
            self.cancel()

    async def _next_text(self) -> str | None:
        while (delta := await self._next_delta()) is not None:
            if delta.text:
                return delta.text
        return None

    async def _next_delta(self) -> Delta | None:
        """Returns None at the end."""
        while (message := await self._next_message()) is not None:
            delta = self._assembly.add(message)
            if delta is not None:
                if message.delta.HasField("session_tokens"):
                    self._on_session(message.delta.session_tokens)
                return delta
            if (result := self._assembly.generation()) is not None and self._result is None:
                self._result = result
                self._on_session(result.session_tokens)
        return None

    async def _next_message(self) -> inference_pb2.GenerateStreamResponse | None:
        if self._closed:
            return None
        if self._stream is None:
            return await self._first_message()
        message: inference_pb2.GenerateStreamResponse | None
        try:
            message = await self._stream.read()
        except LongshortError:
            if self._closed:
                return None  # close() was called concurrently
            raise
        return message

    async def _first_message(self) -> inference_pb2.GenerateStreamResponse | None:
        call = self._calls.begin(self._options, session_id=self._request.session.id, safe=self._safe)
        while True:
            self._stream = call.stream(methods.GENERATE_STREAM, self._request)
            try:
                message: inference_pb2.GenerateStreamResponse | None = await self._stream.read()
                return message
            except LongshortError as error:
                if self._closed:
                    return None
                await call.recover(error)
