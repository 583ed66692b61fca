"""gRPC as the asynchronous client needs it: what differs from longshort/_sync/transport.py, which has the same
names."""

from __future__ import annotations

import asyncio
import contextlib
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


class Stream(Generic[Q, A]):
    """A call with many answers, of one question or of many."""

    def __init__(
        self,
        channel: Channel,
        method: Method[Q, A],
        question: Q | None,
        timeout: float | None,
        metadata: Metadata,
        request_id: str,
    ) -> None:
        """`question`: None of a call with many, which are written one by one."""
        self._request_id = request_id
        make: Any = channel.stream_stream if question is None else channel.unary_stream
        call = make(method.path, method.question.SerializeToString, method.answer.FromString)
        questions = [] if question is None else [question]
        self._call: Any = call(*questions, timeout=timeout, metadata=metadata)
        self._reading: asyncio.Task[A | None] | None = None
        self._broken = False

    async def write(self, question: Q) -> None:
        """Does nothing once the call has ended: reading tells why."""
        if self._call.done():
            return
        try:
            await self._call.write(question)
        except (grpc.RpcError, asyncio.InvalidStateError):
            self._broken = True

    async def done_writing(self) -> None:
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            await self._call.done_writing()

    async def ready(self) -> bool:
        """Whether reading would not wait."""
        reading = self._begin_reading()
        await asyncio.sleep(0)
        return reading.done()

    async def read(self, timeout: float | None = None) -> A | None:
        """The next answer; None at the end. Raises LongshortError; DeadlineExceeded after `timeout` seconds."""
        reading = self._begin_reading()
        done, _ = await asyncio.wait({reading}, timeout=timeout)
        if not done:
            self.cancel()
            raise errors.DeadlineExceeded(f"no answer came in {timeout:g} s", request_id=self._request_id)
        self._reading = None
        try:
            return reading.result()
        except grpc.RpcError as error:
            failure = errors.of_rpc(error, self._request_id)
            if self._broken and isinstance(failure, errors.Internal):
                # gRPC forgets the status of a call on which writing failed.
                raise errors.Unavailable("the connection was lost", request_id=self._request_id) from None
            raise failure from None

    def cancel(self) -> None:
        """Ends the call, unless it has ended. May come from anywhere."""
        self._call.cancel()

    def _begin_reading(self) -> asyncio.Task[A | None]:
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read())
            # Nobody may be left to hear of an error.
            self._reading.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return self._reading

    async def _read(self) -> A | None:
        try:
            answer = await self._call.read()
        except asyncio.CancelledError:
            if self._call.cancelled():
                return None  # by this side: nobody reads on
            raise
        return None if answer is grpc.aio.EOF else answer
