"""Servers that are replaced one after the other, under load: no call fails, whatever way clients find their servers."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from integration import http2
from integration.server_process import Server, wait_until
from integration.tcp_balancer import TcpBalancer
from integration.test_retries import RETRY_POLICY
from integration.test_stopping import accepts_connections

# As long as the balancers here may take to see that a server is not ready: some tenths of a second, and far more on a
# busy machine.
DELAY = "--drain-delay=3s"
CALLS = 5000


def service_config(*, balanced: bool, checked: bool, retried: bool) -> tuple[str, str]:
    config: dict[str, object] = {}
    if balanced:
        config["loadBalancingConfig"] = [{"round_robin": {}}]
    if checked:
        config["healthCheckConfig"] = {"serviceName": "tiny"}
    if retried:
        config["methodConfig"] = [{"name": [{}], "retryPolicy": RETRY_POLICY}]
    return "grpc.service_config", json.dumps(config)


class Client:
    """Calls all the time until it is stopped, in turn with an answer and with a stream."""

    def __init__(self, api: SimpleNamespace, name: str, channel: grpc.Channel) -> None:
        self._api = api
        self._channel = channel
        self._stub = api.inference_grpc.InferenceStub(channel)
        self._over = threading.Event()
        self.name = name
        self._metadata = (("x-client-id", name.replace(" ", "-")),)
        self.answered = 0
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._call_until_over)
        self._thread.start()

    def _call_until_over(self) -> None:
        calls: list[Callable[[], None]] = [self._generate, self._generate, self._stream, self._score]
        while not self._over.is_set():
            for call in calls:
                try:
                    call()
                    self.answered += 1
                except grpc.RpcError as error:
                    self.failures.append(f"{call.__name__}: {error.code().name}: {error.details()}")

    def _generate(self) -> None:
        question = self._api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=2)
        self._stub.Generate(question, timeout=60, metadata=self._metadata)

    def _stream(self) -> None:
        question = self._api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=100)
        *_, last = self._stub.GenerateStream(question, timeout=60, metadata=self._metadata)
        assert last.summary.usage.generated_tokens == 100

    def _score(self) -> None:
        texts = [self._api.inference.ScoreTextsRequest(id=n, input={"text": "xy"}) for n in range(5)]
        assert len(list(self._stub.ScoreTexts(iter(texts), timeout=60, metadata=self._metadata))) == len(texts)

    def was_answered_by(self, server: Server) -> bool:
        return f"client={self._metadata[0][1]}" in server.log()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._channel.close()


def start_clients(api: SimpleNamespace, servers: list[Server], balancer: TcpBalancer) -> list[Client]:
    addresses = "ipv4:" + ",".join(f"127.0.0.1:{server.grpc_port}" for server in servers)
    own = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0), ("grpc.max_reconnect_backoff_ms", 500)]
    clients = []
    for retried in (False, True):
        way = "with retries" if retried else "without retries"
        for checked in (False, True):
            config = service_config(balanced=True, checked=checked, retried=retried)
            kind = "health-checking" if checked else "balanced"
            clients.append(Client(api, f"{kind} {way}", grpc.insecure_channel(addresses, [*own, config])))
        config = service_config(balanced=False, checked=False, retried=retried)
        clients += [Client(api, f"pinned {way}", balancer.new_channel(config)) for _ in range(2)]
    return clients


def calls_in(log: str) -> Counter[str]:
    """How many calls of clients stand in a log, by their codes."""
    return Counter(re.findall(r"request id=\S+ rpc=\w+ model=\w+ version=1 code=(\w+)", log))


@pytest.mark.timeout(600)
@pytest.mark.not_sanitized("thousands of calls of one kind; test_retries restarts servers, too")
def test_no_call_fails_while_servers_are_replaced(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    ended: list[Server] = []
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(repository, tmp_path / str(n), DELAY)) for n in range(2)]
        balancer = stack.enter_context(
            TcpBalancer(tmp_path / "balancer", [server.grpc_port for server in servers]),
        )
        clients = start_clients(api, servers, balancer)

        def answered() -> int:
            return sum(client.answered for client in clients)

        def go_on_until(calls: int) -> None:
            wait_until(lambda: answered() >= calls or any(client.failures for client in clients), 120)

        try:
            for turn in range(2):
                go_on_until(CALLS * (turn + 1) // 3)
                old = servers[turn]
                old.terminate()
                assert old.wait() == 0
                ended.append(old)
                go_on_until(answered() + CALLS // 20)  # with one server
                servers[turn] = stack.enter_context(
                    Server(repository, tmp_path / f"new-{turn}", DELAY, grpc_port=old.grpc_port)
                )
                wait_until(lambda turn=turn: balancer.health(servers[turn].grpc_port) == {True})
                # Clients that balance by themselves have found it: minReadySeconds of a Deployment.
                balanced = [client for client in clients if not client.name.startswith("pinned")]
                new = servers[turn]
                wait_until(lambda new=new, balanced=balanced: all(client.was_answered_by(new) for client in balanced))
            go_on_until(CALLS)
        finally:
            for client in clients:
                client.stop()
        assert {client.name: client.failures for client in clients if client.failures} == {}
        for server in servers:
            server.terminate()
            assert server.wait() == 0
        ended += servers
    for server in ended:
        assert "drained calls_cut_off=0" in server.log()
    assert answered() >= CALLS
    logged = sum((calls_in(server.log()) for server in ended), Counter())
    assert logged == {"OK": answered()}, "each call stands in the log of one server, and none was cancelled there"


def open_scores(api: SimpleNamespace, server: Server) -> tuple[Any, Callable[[], None], Callable[[], None]]:
    """A ScoreTexts stream that has an answer, how to send another document, and how to end it."""
    asked: list[int | None] = [0]
    changed = threading.Condition()

    def say(what: int | None) -> None:
        with changed:
            asked.append(what)
            changed.notify()

    def texts() -> Iterator[Any]:
        while True:
            with changed:
                changed.wait_for(lambda: asked)
                number = asked.pop(0)
            if number is None:
                return
            yield api.inference.ScoreTextsRequest(id=number, input={"text": "xy"})

    stream = api.inference_grpc.InferenceStub(server.new_channel()).ScoreTexts(texts())
    next(stream)
    return stream, lambda: say(1), lambda: say(None)


def test_what_is_open_is_served_to_its_end_and_what_is_idle_waits_for_nothing(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    with (
        Server(repository, tmp_path, "--drain-timeout=10m") as server,
        socket.create_connection(("127.0.0.1", server.grpc_port)),  # and says nothing
        socket.create_connection(("127.0.0.1", server.grpc_port)) as idle,
    ):
        idle.sendall(http2.BEGINNING)  # and acknowledges nothing
        watch = health_pb2_grpc.HealthStub(server.new_channel()).Watch(health_pb2.HealthCheckRequest())
        next(watch)
        question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=5000)
        stream = api.inference_grpc.InferenceStub(server.new_channel()).GenerateStream(question)
        next(stream)
        scores, ask, end = open_scores(api, server)
        server.terminate()
        wait_until(lambda: not accepts_connections(server.grpc_port))
        for _ in range(3):
            ask()
            assert next(scores).id == 1
        end()
        assert list(scores) == [] and scores.code() == grpc.StatusCode.OK
        *_, last = stream
        assert last.summary.usage.generated_tokens == 5000
        assert server.wait(30) == 0, "far sooner than --drain-timeout"
        assert "drained calls_cut_off=0" in server.log()
        watch.cancel()
