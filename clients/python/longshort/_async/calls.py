"""Calls with retries, deadlines and metadata, independent of the messages that they carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from longshort import diagnosis, errors
from longshort._async import transport
from longshort.connection import Connection, Endpoints, Token
from longshort.errors import LongshortError
from longshort.metadata import CallOptions, Metadata, of_call, request_id_of
from longshort.methods import A, Method, Q
from longshort.retries import Attempts, RetryPolicy, checked_timeout


class AsyncCalls:
    """Thread-safe, like gRPC's channels."""

    def __init__(self, connection: Connection, *, client_id: str, timeout: float, retry: RetryPolicy) -> None:
        """Raises ValueError for unusable files."""
        self._connection = connection
        _check_timeout(timeout)
        self._client_id = client_id
        self._timeout = timeout
        self._retry = retry
        self._token = Token(connection)
        self._endpoints = Endpoints(connection, transport.open_channel)

    def begin(
        self, options: CallOptions, *, session_id: str = "", safe: bool = True, timeout: float | None = None
    ) -> Call:
        """Prepares a call. `safe`: the call is idempotent. `timeout` overrides that of the options."""
        if timeout is None:
            timeout = self.timeout_of(options)
        return Call(self, options, session_id, Attempts(self._retry, timeout, safe))

    def timeout_of(self, options: CallOptions) -> float:
        """Returns the timeout in seconds. Raises ValueError for an invalid one."""
        timeout = options.get("timeout", self._timeout)
        _check_timeout(timeout)
        return timeout

    async def unary(
        self, method: Method[Q, A], question: Q, options: CallOptions, *, session_id: str = "", safe: bool = True
    ) -> A:
        """Makes a unary call."""
        call = self.begin(options, session_id=session_id, safe=safe)
        while True:
            try:
                return await transport.unary(
                    call.channel(), method, question, call.attempts.remaining(), call.metadata(), call.request_id
                )
            except LongshortError as error:
                await call.recover(error)

    async def upload(self, method: Method[Q, A], questions: Iterator[Q], options: CallOptions, *, session_id: str) -> A:
        """Makes a client-streaming call. It is not retried, because `questions` can be read only once."""
        call = self.begin(options, session_id=session_id)
        try:
            return await transport.client_stream(
                call.channel(), method, questions, call.attempts.remaining(), call.metadata(), call.request_id
            )
        except LongshortError as error:
            await call.fail(error)

    async def close(self) -> None:
        for channel in self._endpoints.close():
            await transport.close_channel(channel)

    def channel(self, session_id: str) -> transport.Channel:
        return self._endpoints.channel(session_id)

    def unreachable(self) -> None:
        self._endpoints.unreachable()

    def metadata(self, options: CallOptions, request_id: str, session_id: str) -> Metadata:
        return of_call(
            options,
            request_id=request_id,
            client_id=self._client_id,
            session_id=session_id,
            authorization=self._token.authorization(),
        )

    async def explain(self, error: LongshortError) -> None:
        """Adds the likely cause of a failed connection, or the rejected token's file, to the message."""
        if isinstance(error, errors.Unavailable):
            cause = await transport.apart(lambda: diagnosis.diagnose(self._connection))
            for hint in (cause and f"likely cause: {cause}", diagnosis.proxy_hint(self._connection)):
                if hint:
                    error.message += f"; {hint}"
        if isinstance(error, errors.Unauthenticated) and self._connection.token_file is not None:
            error.message += f" (token_file={self._connection.token_file})"


class Call:
    """A call with all its attempts, which share one request id."""

    def __init__(self, calls: AsyncCalls, options: CallOptions, session_id: str, attempts: Attempts) -> None:
        self._calls = calls
        self._options = options
        self._session_id = session_id
        self.attempts = attempts
        self.request_id = request_id_of(options)

    def channel(self) -> transport.Channel:
        return self._calls.channel(self._session_id)

    def metadata(self) -> Metadata:
        return self._calls.metadata(self._options, self.request_id, self._session_id)

    def stream(self, method: Method[Q, A], question: Q) -> transport.Stream[A]:
        """Starts an attempt of a server-streaming call."""
        left = self.attempts.remaining()
        return transport.Stream(self.channel(), method, question, left, self.metadata(), self.request_id)

    def exchange(self, method: Method[Q, A]) -> transport.Exchange[Q, A]:
        """Starts an attempt of a bidirectional call."""
        self.attempts.begin()
        return transport.Exchange(self.channel(), method, self.metadata(), self.request_id)

    async def recover(self, error: LongshortError) -> None:
        """Waits until the next attempt. If there is none, raises the error with its likely cause."""
        if isinstance(error, errors.Unavailable):
            self._calls.unreachable()
        try:
            wait = self.attempts.wait_after(error)
        except LongshortError:
            await self.fail(error)
        await transport.sleep(wait)

    async def fail(self, error: LongshortError) -> NoReturn:
        """Raises the error with its likely cause."""
        await self._calls.explain(error)
        raise error from None


def _check_timeout(timeout: float) -> None:
    if not checked_timeout(timeout) > 0:
        raise ValueError(f"timeout is {timeout}; it must be more than 0 seconds")
