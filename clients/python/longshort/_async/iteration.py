"""Iterates over the answers of a call, and cancels the call when it is no longer used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class AsyncIteration(AsyncIterator[T], Generic[T]):
    """Iterates until `take` returns None.

    Calls `cancel` at the end, after an error, and when a loop over it was left. Unlike a generator's cleanup, this
    happens immediately, not when the event loop runs next.
    """

    def __init__(self, take: Callable[[], Awaitable[T | None]], cancel: Callable[[], None]) -> None:
        self._take = take
        self._cancel = cancel

    def __aiter__(self) -> AsyncIteration[T]:
        return self

    async def __anext__(self) -> T:
        try:
            item = await self._take()
        except BaseException:
            self._cancel()
            raise
        if item is None:
            self._cancel()
            raise StopAsyncIteration
        return item

    def __del__(self) -> None:
        self._cancel()


class AsyncClosing:
    """What iterates over the answers of a call: how it ends the call."""

    # The call, once it has begun.
    _stream: Any = None
    _closed = False

    def cancel(self) -> None:
        """Ends the call, if it is running."""
        self._closed = True
        if self._stream is not None:
            self._stream.cancel()

    async def close(self) -> None:
        """The same. Never raises."""
        self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()
