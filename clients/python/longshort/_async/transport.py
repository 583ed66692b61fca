"""The gRPC layer of the asynchronous client. longshort/_sync/transport.py has the same interface."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import grpc
import grpc.aio

from longshort import errors
from longshort.metadata import Metadata
from longshort.methods import A, Method, Q, is_keep_alive

T = TypeVar("T")
Channel = grpc.aio.Channel
# The caller's items.
Source = AsyncIterable[T] | Iterable[T]


def open_channel(
    server: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, int | str]]
) -> Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(server, options)
    return grpc.aio.secure_channel(server, credentials, options)


async def close_channel(channel: Channel) -> None:
    await channel.close()


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def apart(function: Callable[[], T]) -> T:
    """Runs a blocking function in another thread."""
    return await asyncio.to_thread(function)


class Items(Generic[T]):
    """Reads a source item by item."""

    def __init__(self, source: Source[T]) -> None:
        self._items: AsyncIterator[T] | Iterator[T]
        self._items = aiter(source) if isinstance(source, AsyncIterable) else iter(source)

    async def next(self) -> tuple[T] | None:
        """Returns None at the end."""
        if isinstance(self._items, AsyncIterator):
            async for item in self._items:
                return (item,)
        else:
            for item in self._items:
                return (item,)
        return None


async def unary(
    channel: Channel, method: Method[Q, A], question: Q, timeout: float | None, metadata: Metadata, request_id: str
) -> A:
    """Makes a unary call. Raises LongshortError."""
    call: Any = channel.unary_unary(method.path, method.question.SerializeToString, method.answer.FromString)
    try:
        answer: A = await call(question, timeout=timeout, metadata=metadata)
        return answer
    except grpc.RpcError as error:
        raise errors.of_rpc(error, request_id) from None


async def client_stream(
    channel: Channel,
    method: Method[Q, A],
    questions: Iterator[Q],
    timeout: float | None,
    metadata: Metadata,
    request_id: str,
) -> A:
    """Makes a client-streaming call. Raises LongshortError, and the exceptions of `questions`."""
    call: Any = channel.stream_unary(method.path, method.question.SerializeToString, method.answer.FromString)
    running = call(timeout=timeout, metadata=metadata)
    try:
        for question in questions:
            try:
                await running.write(question)
            except (grpc.RpcError, asyncio.InvalidStateError):
                break  # the answer has the reason
        else:
            await running.done_writing()
        answer: A = await running
        return answer
    except grpc.RpcError as error:
        raise errors.of_rpc(error, request_id) from None
    finally:
        running.cancel()


class Stream(Generic[A]):
    """A server-streaming call with flow control: the server sends only what the reader accepts."""

    def __init__(
        self,
        channel: Channel,
        method: Method[Q, A],
        question: Q,
        timeout: float | None,
        metadata: Metadata,
        request_id: str,
    ) -> None:
        call: Any = channel.unary_stream(method.path, method.question.SerializeToString, method.answer.FromString)
        self._call: Any = call(question, timeout=timeout, metadata=metadata)
        self._request_id = request_id

    async def read(self) -> A | None:
        """Returns the next answer; None at the end. Raises LongshortError."""
        try:
            answer = await self._call.read()
        except grpc.RpcError as error:
            raise errors.of_rpc(error, self._request_id) from None
        return None if answer is grpc.aio.EOF else answer

    def cancel(self) -> None:
        """Ends the call, if it is running. Thread-safe."""
        self._call.cancel()


class Exchange(Generic[Q, A]):
    """A bidirectional call.

    Queues decouple both directions: questions wait for the server, answers for the reader. The caller bounds both
    queues by limiting the number of unanswered questions. Keepalives are no answers.
    """

    def __init__(self, channel: Channel, method: Method[Q, A], metadata: Metadata, request_id: str) -> None:
        # When the last message came, of time.monotonic().
        self.alive = time.monotonic()
        self._request_id = request_id
        # None marks the end.
        self._questions: asyncio.Queue[Q | None] = asyncio.Queue()
        # None or an error marks the end.
        self._answers: asyncio.Queue[A | None | grpc.RpcError] = asyncio.Queue()
        call: Any = channel.stream_stream(method.path, method.question.SerializeToString, method.answer.FromString)
        self._call: Any = call(self._each_question(), metadata=metadata)
        self._reading = asyncio.ensure_future(self._read())

    def write(self, question: Q) -> None:
        self._questions.put_nowait(question)

    def done_writing(self) -> None:
        self._questions.put_nowait(None)

    async def ready(self) -> bool:
        """Whether an answer is available."""
        await asyncio.sleep(0)
        return not self._answers.empty()

    async def read(self, timeout: float | None) -> A | None:
        """Returns the next answer; None at the end. Raises LongshortError, DeadlineExceeded after `timeout` seconds."""
        try:
            answer = await asyncio.wait_for(self._answers.get(), timeout)
        except TimeoutError:
            self.cancel()
            raise errors.DeadlineExceeded(
                f"no answer arrived within {timeout:g} s", request_id=self._request_id
            ) from None
        if isinstance(answer, grpc.RpcError):
            raise errors.of_rpc(answer, self._request_id)
        return answer

    def cancel(self) -> None:
        """Ends the call, if it is running."""
        self._call.cancel()
        self._questions.put_nowait(None)  # wakes the writing task

    async def _each_question(self) -> AsyncIterator[Q]:
        while (question := await self._questions.get()) is not None:
            yield question

    async def _read(self) -> None:
        try:
            async for answer in self._call:
                self.alive = time.monotonic()
                if not is_keep_alive(answer):
                    self._answers.put_nowait(answer)
            self._answers.put_nowait(None)
        except grpc.RpcError as error:
            self._answers.put_nowait(error)
        except asyncio.CancelledError:
            self._answers.put_nowait(None)  # this side cancelled the call
