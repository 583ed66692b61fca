"""gRPC as the synchronous client needs it: what differs from longshort/_async/transport.py, which has the same
names."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import grpc

from longshort import errors
from longshort.metadata import Metadata
from longshort.methods import A, Method, Q

T = TypeVar("T")
Channel = grpc.Channel
# What is given one by one.
Source = Iterable[T]


def open_channel(
    server: str, credentials: grpc.ChannelCredentials | None, options: list[tuple[str, int | str]]
) -> Channel:
    if credentials is None:
        return grpc.insecure_channel(server, options)
    return grpc.secure_channel(server, credentials, options)


def close_channel(channel: Channel) -> None:
    channel.close()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def apart(function: Callable[[], T]) -> T:
    """What blocks."""
    return function()


class Items(Generic[T]):
    """What a source gives, one by one."""

    def __init__(self, source: Source[T]) -> None:
        self._items = iter(source)

    def next(self) -> tuple[T] | None:
        """None at the end."""
        for item in self._items:
            return (item,)
        return None


def unary(
    channel: Channel, method: Method[Q, A], question: Q, timeout: float | None, metadata: Metadata, request_id: str
) -> A:
    """One question, one answer. Raises LongshortError."""
    call: Any = channel.unary_unary(method.path, method.question.SerializeToString, method.answer.FromString)
    try:
        answer: A = call(question, timeout=timeout, metadata=metadata)
        return answer
    except grpc.RpcError as error:
        raise errors.of_rpc(error, request_id) from None


def client_stream(
    channel: Channel,
    method: Method[Q, A],
    questions: Iterator[Q],
    timeout: float | None,
    metadata: Metadata,
    request_id: str,
) -> A:
    """Many questions, one answer. Raises LongshortError, and what `questions` raises."""
    call: Any = channel.stream_unary(method.path, method.question.SerializeToString, method.answer.FromString)
    wrong: list[BaseException] = []

    def guarded() -> Iterator[Q]:
        # In a thread of gRPC's, which would only say that "iterating requests" failed.
        try:
            yield from questions
        except BaseException as error:
            wrong.append(error)
            raise

    try:
        answer: A = call(guarded(), timeout=timeout, metadata=metadata)
        return answer
    except grpc.RpcError as error:
        raise (wrong[0] if wrong else errors.of_rpc(error, request_id)) from None


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

    def read(self) -> A | None:
        """The next answer; None at the end. Raises LongshortError."""
        try:
            return next(self._call, None)
        except grpc.RpcError as error:
            raise errors.of_rpc(error, self._request_id) from None

    def cancel(self) -> None:
        """Ends the call, unless it has ended. May come from anywhere."""
        self._call.cancel()


class Exchange(Generic[Q, A]):
    """A call of many questions with many answers.

    Questions wait for the server, and answers for their reader, each in a queue: so neither side waits for the other.
    Who asks bounds both, by how many questions are unanswered. A thread reads; gRPC has another one that writes.
    """

    def __init__(self, channel: Channel, method: Method[Q, A], metadata: Metadata, request_id: str) -> None:
        self._request_id = request_id
        # None ends the questions.
        self._questions: queue.SimpleQueue[Q | None] = queue.SimpleQueue()
        # None, or the error, ends the answers.
        self._answers: queue.SimpleQueue[A | None | grpc.RpcError] = queue.SimpleQueue()
        call: Any = channel.stream_stream(method.path, method.question.SerializeToString, method.answer.FromString)
        self._call: Any = call(iter(self._questions.get, None), metadata=metadata)
        threading.Thread(target=_read, args=(self._call, self._answers), name="longshort-reader", daemon=True).start()

    def write(self, question: Q) -> None:
        self._questions.put(question)

    def done_writing(self) -> None:
        self._questions.put(None)

    def ready(self) -> bool:
        """Whether reading would not wait."""
        return not self._answers.empty()

    def read(self, timeout: float | None) -> A | None:
        """The next answer; None at the end. Raises LongshortError; DeadlineExceeded after `timeout` seconds."""
        try:
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            self.cancel()
            raise errors.DeadlineExceeded(f"no answer came in {timeout:g} s", request_id=self._request_id) from None
        if isinstance(answer, grpc.RpcError):
            raise errors.of_rpc(answer, self._request_id)
        return answer

    def cancel(self) -> None:
        """Ends the call, unless it has ended. May come from anywhere."""
        self._call.cancel()
        self._questions.put(None)  # which the writing thread waits for


def _read(call: Any, answers: queue.SimpleQueue[A | None | grpc.RpcError]) -> None:
    """Holds no exchange: one that nobody has ends."""
    try:
        for answer in call:
            answers.put(answer)
        answers.put(None)
    except grpc.RpcError as error:
        answers.put(error)
