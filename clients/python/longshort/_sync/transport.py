"""The gRPC layer of the synchronous client. longshort/_async/transport.py has the same interface."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import grpc

from longshort import errors
from longshort.metadata import Metadata
from longshort.methods import A, Method, Q, is_keep_alive

T = TypeVar("T")
Channel = grpc.Channel
# The caller's items.
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
    """Runs a blocking function."""
    return function()


class Items(Generic[T]):
    """Reads a source item by item."""

    def __init__(self, source: Source[T]) -> None:
        self._items = iter(source)

    def next(self) -> tuple[T] | None:
        """Returns None at the end."""
        for item in self._items:
            return (item,)
        return None


def unary(
    channel: Channel, method: Method[Q, A], question: Q, timeout: float | None, metadata: Metadata, request_id: str
) -> A:
    """Makes a unary call. Raises LongshortError."""
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
    """Makes a client-streaming call. Raises LongshortError, and the exceptions of `questions`."""
    call: Any = channel.stream_unary(method.path, method.question.SerializeToString, method.answer.FromString)
    wrong: list[BaseException] = []

    def guarded() -> Iterator[Q]:
        # Runs in a thread of gRPC, which would only report "Exception iterating requests!".
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

    def read(self) -> A | None:
        """Returns the next answer; None at the end. Raises LongshortError."""
        try:
            return next(self._call, None)
        except grpc.RpcError as error:
            raise errors.of_rpc(error, self._request_id) from None

    def cancel(self) -> None:
        """Ends the call, if it is running. Thread-safe."""
        self._call.cancel()


class Exchange(Generic[Q, A]):
    """A bidirectional call.

    Queues decouple both directions: questions wait for the server, answers for the reader. The caller bounds both
    queues by limiting the number of unanswered questions. Keepalives are no answers. One thread reads; gRPC writes in
    another.
    """

    def __init__(self, channel: Channel, method: Method[Q, A], metadata: Metadata, request_id: str) -> None:
        self._request_id = request_id
        # None marks the end.
        self._questions: queue.SimpleQueue[Q | None] = queue.SimpleQueue()
        # None or an error marks the end.
        self._answers: queue.SimpleQueue[A | None | grpc.RpcError] = queue.SimpleQueue()
        call: Any = channel.stream_stream(method.path, method.question.SerializeToString, method.answer.FromString)
        self._call: Any = call(iter(self._questions.get, None), metadata=metadata)
        self._alive = [time.monotonic()]
        reading = (self._call, self._answers, self._alive)
        threading.Thread(target=_read, args=reading, name="longshort-reader", daemon=True).start()

    @property
    def alive(self) -> float:
        """When the last message came, of time.monotonic()."""
        return self._alive[0]

    def write(self, question: Q) -> None:
        self._questions.put(question)

    def done_writing(self) -> None:
        self._questions.put(None)

    def ready(self) -> bool:
        """Whether an answer is available."""
        return not self._answers.empty()

    def read(self, timeout: float | None) -> A | None:
        """Returns the next answer; None at the end. Raises LongshortError, DeadlineExceeded after `timeout` seconds."""
        try:
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            self.cancel()
            raise errors.DeadlineExceeded(
                f"no answer arrived within {timeout:g} s", request_id=self._request_id
            ) from None
        if isinstance(answer, grpc.RpcError):
            raise errors.of_rpc(answer, self._request_id)
        return answer

    def cancel(self) -> None:
        """Ends the call, if it is running. Thread-safe."""
        self._call.cancel()
        self._questions.put(None)  # wakes the writing thread


def _read(call: Any, answers: queue.SimpleQueue[A | None | grpc.RpcError], alive: list[float]) -> None:
    """Runs in the reading thread. A plain function, so that the thread does not keep the exchange alive."""
    try:
        for answer in call:
            alive[0] = time.monotonic()
            if not is_keep_alive(answer):
                answers.put(answer)
        answers.put(None)
    except grpc.RpcError as error:
        answers.put(error)
