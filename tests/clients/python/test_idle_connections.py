"""Balancers that forget silent connections: calls of all kinds pass at the defaults, since the client pings."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from integration.server_process import BINARY
from longshort import connection
from longshort._proto import inference_pb2

from clients.python.drivers import Driver
from clients.python.idle_balancer import IdleBalancer

# Balancers of which users have reported.
FORGOTTEN_AFTER = 15.0


class SlowServer:
    """Its calls of Tokenize, which have one answer, take `seconds`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._server = grpc.server(
            ThreadPoolExecutor(4),
            options=[("grpc.http2.max_ping_strikes", 0), ("grpc.http2.max_pings_without_data", 0)],
        )
        handlers = {
            "Tokenize": grpc.unary_unary_rpc_method_handler(
                self._tokenize,
                inference_pb2.TokenizeRequest.FromString,
                inference_pb2.TokenizeResponse.SerializeToString,
            )
        }
        service = grpc.method_handlers_generic_handler("longshort.v1.Inference", handlers)
        self._server.add_generic_rpc_handlers((service,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def _tokenize(self, _: Any, __: grpc.ServicerContext) -> inference_pb2.TokenizeResponse:
        self.calls += 1
        time.sleep(self.seconds)
        return inference_pb2.TokenizeResponse()

    def end(self) -> None:
        self._server.stop(None)


@pytest.fixture
def slow() -> Iterator[SlowServer]:
    server = SlowServer()
    yield server
    server.end()


RESETS = pytest.mark.parametrize("resets", [True, False], ids=["resets", "forgets"])


@RESETS
def test_a_silent_call_and_a_silence_between_calls_last(
    driver: Driver, slow: SlowServer, resets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All times are a tenth."""
    assert connection._PING_AFTER_MS / 1000 < FORGOTTEN_AFTER * 0.8
    monkeypatch.setattr(connection, "_PING_AFTER_MS", connection._PING_AFTER_MS // 10)
    with IdleBalancer(slow.port, FORGOTTEN_AFTER / 10, resets) as balancer:
        client = driver.client(f"127.0.0.1:{balancer.port}", health_check=False)
        slow.seconds = FORGOTTEN_AFTER / 5
        driver.done(client.tokenize("x", timeout=30))
        time.sleep(FORGOTTEN_AFTER / 5)
        slow.seconds = 0
        driver.done(client.tokenize("x", timeout=30))
        assert (slow.calls, balancer.connections) == (2, 1)


@pytest.mark.slow
@RESETS
def test_a_silent_call_of_the_program_lasts(slow: SlowServer, resets: bool) -> None:
    with IdleBalancer(slow.port, FORGOTTEN_AFTER, resets) as balancer:
        slow.seconds = FORGOTTEN_AFTER * 1.2
        command = [BINARY.with_name("longshort"), f"--server=127.0.0.1:{balancer.port}", "tokenize"]
        done = subprocess.run(command, input="x", capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert (slow.calls, balancer.connections) == (1, 1)
