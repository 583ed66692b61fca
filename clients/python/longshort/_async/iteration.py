"""Iterating over what a call answers, and ending the call when nobody iterates any more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class AsyncIteration(AsyncIterator[T], Generic[T]):
    """Takes items until there is none.

    At the end, after an error, and once a loop over it was left, `cancel` is called: at once, and not when an event
    loop comes to it, as it would be for a generator.
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
