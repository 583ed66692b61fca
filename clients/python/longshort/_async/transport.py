"""gRPC as the asynchronous client needs it: what differs from longshort/_sync/transport.py, which has the same
names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import grpc
import grpc.aio

from longshort import errors
from longshort.metadata import Metadata
from longshort.methods import A, Method, Q

T = TypeVar("T")
Channel = grpc.aio.Channel
# What is given one by one.
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
    """What blocks, without blocking others."""
    return await asyncio.to_thread(function)


class Items(Generic[T]):
    """What a source gives, one by one."""

    def __init__(self, source: Source[T]) -> None:
        self._items: AsyncIterator[T] | Iterator[T]
        self._items = aiter(source) if isinstance(source, AsyncIterable) else iter(source)

    async def next(self) -> tuple[T] | None:
        """None at the end."""
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
    """One question, one answer. Raises LongshortError."""
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
    """Many questions, one answer. Raises LongshortError, and what `questions` raises."""
    call: Any = channel.stream_unary(method.path, method.question.SerializeToString, method.answer.FromString)
    running = call(timeout=timeout, metadata=metadata)
    try:
        for question in questions:
            try:
                await running.write(question)
            except (grpc.RpcError, asyncio.InvalidStateError):
                break  # the answer tells why
        else:
            await running.done_writing()
        answer: A = await running
        return answer
    except grpc.RpcError as error:
        raise errors.of_rpc(error, request_id) from None
    finally:
        running.cancel()


class Stream(Generic[A]):
    """A call of one question with many answers. The server sends no more than its reader takes."""

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
        """The next answer; None at the end. Raises LongshortError."""
        try:
            answer = await self._call.read()
        except grpc.RpcError as error:
            raise errors.of_rpc(error, self._request_id) from None
        return None if answer is grpc.aio.EOF else answer

    def cancel(self) -> None:
        """Ends the call, unless it has ended. May come from anywhere."""
        self._call.cancel()


class Exchange(Generic[Q, A]):
    """A call of many questions with many answers.

    Questions wait for the server, and answers for their reader, each in a queue: so neither side waits for the other.
    Who asks bounds both, by how many questions are unanswered.
    """

    def __init__(self, channel: Channel, method: Method[Q, A], metadata: Metadata, request_id: str) -> None:
        self._request_id = request_id
        # None ends the questions.
        self._questions: asyncio.Queue[Q | None] = asyncio.Queue()
        # None, or the error, ends the answers.
        self._answers: asyncio.Queue[A | None | grpc.RpcError] = asyncio.Queue()
        call: Any = channel.stream_stream(method.path, method.question.SerializeToString, method.answer.FromString)
        self._call: Any = call(self._each_question(), metadata=metadata)
        self._reading = asyncio.ensure_future(self._read())

    def write(self, question: Q) -> None:
        self._questions.put_nowait(question)

    def done_writing(self) -> None:
        self._questions.put_nowait(None)

    async def ready(self) -> bool:
        """Whether reading would not wait."""
        await asyncio.sleep(0)
        return not self._answers.empty()

    async def read(self, timeout: float | None) -> A | None:
        """The next answer; None at the end. Raises LongshortError; DeadlineExceeded after `timeout` seconds."""
        try:
            answer = await asyncio.wait_for(self._answers.get(), timeout)
        except TimeoutError:
            self.cancel()
            raise errors.DeadlineExceeded(f"no answer came in {timeout:g} s", request_id=self._request_id) from None
        if isinstance(answer, grpc.RpcError):
            raise errors.of_rpc(answer, self._request_id)
        return answer

    def cancel(self) -> None:
        """Ends the call, unless it has ended."""
        self._call.cancel()
        self._questions.put_nowait(None)  # which the writing task waits for

    async def _each_question(self) -> AsyncIterator[Q]:
        while (question := await self._questions.get()) is not None:
            yield question

    async def _read(self) -> None:
        try:
            async for answer in self._call:
                self._answers.put_nowait(answer)
            self._answers.put_nowait(None)
        except grpc.RpcError as error:
            self._answers.put_nowait(error)
        except asyncio.CancelledError:
            self._answers.put_nowait(None)  # by this side: nobody reads on
