"""Servers that refuse calls, restart, or have not started yet."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import longshort
import pytest
from integration import tokens
from integration.server_process import Server, wait_until

from clients.python.conftest import address, stall
from clients.python.drivers import Driver

ONCE = longshort.RetryPolicy(attempts=1)


class FullServer:
    """A server of one stream, whose stream and queue are taken while it is full."""

    def __init__(self, repository: Path, folder: Path) -> None:
        arguments = ["--max-streams=1", "--max-queued-requests=1", "--max-message-bytes=1024"]
        self.server = Server(repository, folder, *arguments)
        self._client = longshort.Client(address(self.server), retry=ONCE)
        self._streams: list[longshort.TextStream] = []
        self._readers: list[threading.Thread] = []

    def fill(self, max_tokens: int) -> None:
        for metric in ("longshort_streams_active", "longshort_queued_requests"):
            stream = self._client.generate("x", max_tokens=max_tokens)
            reader = threading.Thread(target=lambda stream=stream: list(stream))
            reader.start()
            self._streams.append(stream)
            self._readers.append(reader)
            wait_until(lambda metric=metric: self.server.metric(metric) == 1)

    def make_room(self) -> None:
        for stream in self._streams:
            stream.close()
        for reader in self._readers:
            reader.join(60)

    def refusals(self) -> float:
        return self.server.metric("longshort_requests_total", code="RESOURCE_EXHAUSTED")

    def __enter__(self) -> FullServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.make_room()
        self._client.close()
        self.server.__exit__()


@pytest.fixture
def full(repository: Path, tmp_path: Path) -> Iterator[FullServer]:
    with FullServer(repository, tmp_path) as one:
        yield one


def test_a_refusal_says_when_to_retry_and_how_many_wait(driver: Driver, full: FullServer) -> None:
    full.fill(max_tokens=65536)
    client = driver.client(address(full.server), retry=ONCE)
    calls: list[Callable[[], object]] = [
        lambda: driver.done(client.score("xy")),
        lambda: driver.collect(client.generate("x", max_tokens=1)),
        lambda: driver.done(client.session("s").generate("x", max_tokens=1).finish()),
    ]
    for call in calls:
        with pytest.raises(longshort.ResourceExhausted) as caught:
            call()
        assert caught.value.retry_after > 0
        assert caught.value.queue_depth == 1
        assert f"retry after {caught.value.retry_after:g} s" in str(caught.value)
        assert caught.value.request_id in str(caught.value)
    driver.done(client.close())


def test_a_refusal_that_lasts_longer_than_the_call_may_is_raised_at_once(driver: Driver, full: FullServer) -> None:
    full.fill(max_tokens=65536)
    client = driver.client(address(full.server), timeout=0.9)
    before = full.refusals()
    with pytest.raises(longshort.ResourceExhausted) as caught:
        driver.done(client.score("xy"))
    if caught.value.retry_after > 0.9:
        assert full.refusals() == before + 1, "it was not tried again"
    driver.done(client.close())


def test_refused_calls_are_made_again_when_there_is_room(driver: Driver, full: FullServer) -> None:
    full.fill(max_tokens=10000)
    client = driver.client(address(full.server), retry=longshort.RetryPolicy(attempts=20))
    assert driver.done(client.score("xy"))[0].token_count == 2
    assert full.refusals() >= 1
    assert driver.done(client.generate("x", max_tokens=2).finish()).usage.generated_tokens == 2
    assert driver.done(client.session("s").generate("x", max_tokens=1).finish()).session_tokens == 2
    driver.done(client.close())


def test_too_large_a_message_is_not_sent_again(driver: Driver, full: FullServer) -> None:
    client = driver.client(address(full.server), retry=longshort.RetryPolicy(first_wait=100, longest_wait=100))
    with pytest.raises(longshort.ResourceExhausted, match="larger than max") as caught:
        driver.done(client.score("x" * 2000))
    assert caught.value.retry_after is None
    driver.done(client.close())


def test_a_rate_limit_is_kept_to(driver: Driver, repository: Path, tmp_path: Path) -> None:
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "secret", "scopes=infer calls-per-second=5"))
    with Server(repository, tmp_path / "server", f"--token-file={file}") as server:
        client = driver.client(address(server), token="secret")
        begun = time.monotonic()
        for _ in range(15):
            driver.done(client.tokenize("x"))
        # A bucket of 5, then 5 a second.
        assert time.monotonic() - begun > 1.5
        hasty = driver.client(address(server), token="secret", retry=ONCE)
        with pytest.raises(longshort.ResourceExhausted) as caught:
            for _ in range(20):
                driver.done(hasty.tokenize("x"))
        assert 0 < caught.value.retry_after <= 0.3
        driver.done(client.close())
        driver.done(hasty.close())


@pytest.mark.parametrize("gently", [True, False], ids=["stopped", "killed"])
def test_calls_outlive_restarts(repository: Path, tmp_path: Path, gently: bool) -> None:
    """A server that stops finishes its calls. One that dies ends the streams that have begun."""
    over = threading.Event()
    patient = longshort.RetryPolicy(attempts=50, longest_wait=1)
    servers = [Server(repository, tmp_path / "0")]

    def ask_until_over() -> int:
        asked = 0
        with longshort.Client(address(servers[0]), retry=patient) as client:
            while not over.is_set():
                if gently:
                    assert client.generate("x", max_tokens=2).finish().usage.generated_tokens == 2
                assert client.score("xy")[0].token_count == 2
                asked += 1
        return asked

    def served_enough() -> bool:
        return servers[-1].metric("longshort_requests_total", code="OK") > 20

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(ask_until_over) for _ in range(3)]
        try:
            for restart in range(3):
                with servers[-1] as server:
                    wait_until(served_enough)
                    if gently:
                        server.terminate()
                        assert server.wait() == 0
                servers.append(Server(repository, tmp_path / str(restart + 1), grpc_port=server.grpc_port))
            with servers[-1]:
                wait_until(served_enough)
                over.set()
                assert all(one.result(60) for one in asked)
        finally:
            over.set()


def test_wait_ready_waits_for_a_server(driver: Driver, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path / "0") as server:
        pass
    client = driver.client(address(server))
    with pytest.raises(longshort.Unavailable, match="cannot connect"):
        driver.done(client.wait_ready(timeout=0.5))
    started: list[Server] = []

    def start() -> None:
        started.append(Server(repository, tmp_path / "1", grpc_port=server.grpc_port))

    starting = threading.Thread(target=start)
    starting.start()
    driver.done(client.wait_ready(model="tiny"))
    starting.join(60)
    assert driver.done(client.models())
    driver.done(client.close())
    started[0].__exit__()


def test_a_stalled_server_ends_by_the_deadline(driver: Driver, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path) as server:
        client = driver.client(address(server))
        assert driver.done(client.models())
        stall(server)
        calls: list[Callable[[], Any]] = [
            lambda: driver.done(client.models(timeout=0.3)),
            lambda: driver.collect(client.generate("x", timeout=0.3)),
            lambda: driver.done(client.session("s").export("/dev/null", timeout=0.3)),
        ]
        for call in calls:
            begun = time.monotonic()
            with pytest.raises(longshort.DeadlineExceeded):
                call()
            assert 0.25 < time.monotonic() - begun < 30
        server.process.send_signal(signal.SIGCONT)
        driver.done(client.close())


def test_a_server_that_says_it_is_not_serving_is_passed_over(driver: Driver, repository: Path, tmp_path: Path) -> None:
    """The server drains because of an open stream. The other one answers, without a failed attempt."""
    with Server(repository, tmp_path / "0") as draining, Server(repository, tmp_path / "1") as other:
        reader = longshort.Client(address(draining))
        deltas = reader.generate("x", max_tokens=60000).deltas()
        assert next(deltas)
        client = driver.client(f"ipv4:{address(draining)},{address(other)}")
        assert driver.done(client.models())
        draining.terminate()
        wait_until(lambda: draining.http("/readyz")[0] != 200)
        refused = draining.metric("longshort_requests_total", code="UNAVAILABLE")

        def tokenized(server: Server) -> float:
            return server.metric("longshort_requests_total", rpc="Tokenize", code="OK")

        def ten_more_are_answered_by_the_other() -> bool:
            by_other, by_both = tokenized(other), tokenized(other) + tokenized(draining)
            for _ in range(10):
                assert driver.done(client.tokenize("x", timeout=30))
            wait_until(lambda: tokenized(other) + tokenized(draining) == by_both + 10)
            return tokenized(other) == by_other + 10

        # The news takes its time; until then the draining one answers, too.
        wait_until(ten_more_are_answered_by_the_other)
        assert draining.metric("longshort_requests_total", code="UNAVAILABLE") - refused <= 1
        driver.done(client.close())
        reader.close()
