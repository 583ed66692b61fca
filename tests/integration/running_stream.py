"""Calls that are under way beside what a test does."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import grpc

from integration.server_process import Server, wait_until


class RunningStream:
    """A stream that runs and is read all the time. By default it runs far longer than a test needs it."""

    def __init__(
        self,
        api: SimpleNamespace,
        server: Server,
        client: str,
        timeout: float | None = None,
        *,
        max_tokens: int = 60000,
    ) -> None:
        request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=max_tokens)
        stub = api.inference_grpc.InferenceStub(server.channel)
        self.stream = stub.GenerateStream(request, timeout, metadata=[("x-client-id", client)])
        self.messages = 0
        self.is_complete = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        wait_until(lambda: self.messages > 1)  # the first, which names the model, comes before it runs

    def _read(self) -> None:
        with contextlib.suppress(grpc.RpcError):  # cancelled
            for _ in self.stream:
                self.messages += 1
            self.is_complete = True

    def cancel(self) -> None:
        self.stream.cancel()
        self._reader.join()


def stream_that_stands_still(api: SimpleNamespace, server: Server, session: str) -> Any:
    """An unread stream of a session, in progress: with its alternatives, it is too large to be sent unread."""
    request = api.inference.GenerateRequest(
        prompt={"text": "x"},
        max_tokens=6000,
        token_log_probabilities=True,
        top_alternatives=20,
        session={"id": session},
    )
    stream = api.inference_grpc.InferenceStub(server.slow_channel()).GenerateStream(request)
    next(stream)
    return stream
