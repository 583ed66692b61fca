"""Scores documents by one server or several, each as fast as it can.

When a server is lost, the others get its documents. It is tried again until it is back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from longshort import errors, inputs
from longshort._proto import inference_pb2, models_pb2
from longshort.batch.report.failures import ModelChanged
from longshort.batch.run.addresses import connection_of, servers_of
from longshort.batch.run.models import identity
from longshort.batch.run.options import ServerOptions
from longshort.batch.run.server import Server
from longshort.batch.run.work import Job, Work
from longshort.errors import LongshortError
from longshort.metadata import CallOptions

# Interval between resolutions of the servers' names.
_RESOLVE_SECONDS = 30.0
_POLL_SECONDS = 0.5
# The first connection fails after a minute, so that a mistyped name is reported soon.
_MAX_START_SECONDS = 60.0


class Scorer:
    """Thread: that of the event loop."""

    def __init__(self, options: ServerOptions, texts: inference_pb2.ScoreTextsOptions, region_tokens: int = 0) -> None:
        """
        options        ignores keys of other options
        texts          options of the stream; the scorer sets `model`
        region_tokens  tokens in a region, for documents that need several calls; 0: no regions

        Raises ValueError for invalid files, names and times.
        """
        self._timeout = options.get("timeout", 1800.0)
        self._patience = options.get("patience", 600.0)
        if not self._timeout > 0:
            raise ValueError(f"timeout is {self._timeout}; it must be more than 0 seconds")
        if not self._patience >= 0:
            raise ValueError(f"patience is {self._patience}; it must be at least 0 seconds")
        self._connection = connection_of(options)
        self._texts = texts
        self._texts.model.CopyFrom(inputs.selector(options.get("model", "")))
        self._region_tokens = region_tokens
        self._options = CallOptions(priority=options.get("priority", "low"))
        self._client_id = options.get("client_id", "")
        self._work = Work()
        self._servers: dict[str, Server] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._identity: dict[str, Any] | None = None
        self._began = 0.0
        # Fails with the error that ends the work. After that, no document is answered.
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> models_pb2.Model:
        """Waits until a server returns its model, which the run then keeps. Raises LongshortError."""
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        end = self._began + min(_MAX_START_SECONDS, self._patience)
        await self._find_servers()
        while not isinstance(found := await self._first_model(), models_pb2.Model):
            lasting = not isinstance(found, (errors.Unavailable, errors.DeadlineExceeded, errors.ResourceExhausted))
            if lasting or loop.time() >= end:
                raise found
            await asyncio.sleep(0.5)
            await self._find_servers()
        model = found
        self._identity = identity(model)
        self._texts.model.name, self._texts.model.version = model.name, model.version
        for name, server in self._servers.items():
            self._begin(name, server)
        self._watch = asyncio.ensure_future(self._watch_servers())
        self._watch.add_done_callback(self._watched)
        return model

    async def _first_model(self) -> models_pb2.Model | LongshortError:
        """The model of the first server that answers, or an error if none answers."""
        requests = {asyncio.ensure_future(server.wanted_model()) for server in self._servers.values()}
        wrong: LongshortError = errors.Unavailable("there is no server")
        try:
            for answer in asyncio.as_completed(requests):
                try:
                    return await answer
                except LongshortError as error:
                    wrong = error
        finally:
            for one in requests:
                one.cancel()
            await asyncio.gather(*requests, return_exceptions=True)
        return wrong

    def put(self, jobs: Iterable[Job]) -> None:
        """Adds jobs. Each receives its answer once."""
        self._work.put(jobs)
        for server in self._servers.values():
            server.fill()

    @property
    def waiting(self) -> int:
        """The number of documents that were not sent to a server."""
        return len(self._work)

    @property
    def window(self) -> int:
        """The number of documents that all servers take at once."""
        return sum(server.window.size for server in self._servers.values())

    @property
    def servers(self) -> int:
        """The number of servers."""
        return len(self._servers)

    def server_errors(self) -> dict[str, str]:
        """The error of each server that is not available."""
        return {name: str(server.error) for name, server in self._servers.items() if server.error is not None}

    async def close(self) -> None:
        """Ends all streams. Unanswered documents stay unanswered."""
        tasks = [task for task in (self._watch, *self._tasks.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in self._servers.values():
            await server.close()
        if not self.failure.done():
            self.failure.cancel()
        elif not self.failure.cancelled():
            self.failure.exception()  # marks the error as retrieved, since callers have read it

    async def _find_servers(self) -> None:
        """Resolves the servers' names. Keeps a server that is gone from DNS while it answers."""
        found = await servers_of(self._connection)
        names = {connection.servers[0] for connection in found}
        for connection in found:
            name = connection.servers[0]
            if name not in self._servers:
                self._servers[name] = Server(
                    connection,
                    self._work,
                    self._texts,
                    self._check,
                    client_id=self._client_id,
                    options=self._options,
                    timeout=self._timeout,
                    region_tokens=self._region_tokens,
                )
                if self._identity is not None:
                    self._begin(name, self._servers[name])
        for name in [name for name, server in self._servers.items() if name not in names and server.error is not None]:
            server = self._servers.pop(name)
            task = self._tasks.pop(name, None)
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await server.close()

    def _begin(self, name: str, server: Server) -> None:
        task = asyncio.ensure_future(server.run())
        task.add_done_callback(self._ended)
        self._tasks[name] = task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A server cannot be used. A different model ends the work; after other errors, other servers continue."""
        if task.cancelled():
            return
        error = task.exception()
        others = any(not one.done() for one in self._tasks.values())
        if error is not None and (not others or not isinstance(error, LongshortError)):
            self._fail(error)

    def _watched(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)

    def _check(self, model: models_pb2.Model, server: str) -> None:
        """Raises ModelChanged if the model is not the run's model."""
        now = identity(model)
        if self._identity is not None and now != self._identity:
            wrong = [
                f"{key} {now[key]} instead of {value}" for key, value in self._identity.items() if now[key] != value
            ]
            raise ModelChanged(
                f"the model of the server {server} is not the model of the run: {', '.join(wrong)}. The results so far"
                " stay valid: serve the run's model again and run the same command, or start again with another"
                " folder"
            )

    async def _watch_servers(self) -> None:
        loop = asyncio.get_running_loop()
        resolved = loop.time()
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            now = loop.time()
            for server in list(self._servers.values()):
                server.poll(now)
            if now - resolved > _RESOLVE_SECONDS:
                resolved = now
                # A file of tokens or certificates may be missing while it is replaced: the next time, it is there.
                with contextlib.suppress(ValueError):
                    await self._find_servers()
            self._check_patience(now)

    def _check_patience(self, now: float) -> None:
        servers = list(self._servers.values())
        wrong = [server.error for server in servers if server.error is not None]
        answered = max((server.answered_at or self._began for server in servers), default=self._began)
        if len(wrong) == len(servers) and now - answered > self._patience:
            last = wrong[-1] if wrong else errors.Unavailable("there is no server")
            self._fail(last)
