"""One test for both clients: what to do with what they return."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable
from typing import Any

import longshort


class Waiting:
    """Of longshort.Client."""

    kind = "sync"

    def client(self, *arguments: Any, **options: Any) -> longshort.Client:
        return longshort.Client(*arguments, **options)

    def done(self, answer: Any) -> Any:
        """What a method returned."""
        return answer

    def collect(self, stream: Iterable[Any], most: int | None = None) -> list[Any]:
        """What a stream gives; after so many, the loop is left by `break`."""
        found: list[Any] = []
        for one in stream:
            found.append(one)
            if len(found) == most:
                break
        return found

    def leave_by_error(self, stream: Iterable[Any]) -> None:
        """Raises ArithmeticError in the loop, after the first item."""
        for _ in stream:
            raise ArithmeticError

    def enter(self, manager: Any) -> Any:
        return manager.__enter__()

    def leave(self, manager: Any) -> None:
        manager.__exit__(None, None, None)


class Awaiting:
    """Of longshort.AsyncClient. All tests have one event loop: gRPC does not take leave of one well."""

    kind = "async"
    _runner = asyncio.Runner()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(coroutine, context=contextvars.copy_context())

    def client(self, *arguments: Any, **options: Any) -> longshort.AsyncClient:
        return longshort.AsyncClient(*arguments, **options)

    def done(self, answer: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await answer

        return self._run(wait())

    def collect(self, stream: AsyncIterator[Any], most: int | None = None) -> list[Any]:
        async def collect() -> list[Any]:
            found: list[Any] = []
            async for one in stream:
                found.append(one)
                if len(found) == most:
                    break
            return found

        return self._run(collect())

    def leave_by_error(self, stream: AsyncIterator[Any]) -> None:
        async def leave() -> None:
            async for _ in stream:
                raise ArithmeticError

        self._run(leave())

    def enter(self, manager: Any) -> Any:
        return self.done(manager.__aenter__())

    def leave(self, manager: Any) -> None:
        self.done(manager.__aexit__(None, None, None))


Driver = Waiting | Awaiting
