"""A balancer that closes connections on which nothing moves, and no pings."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import longshort
import pytest

from integration.server_process import BINARY, Server
from integration.tcp_balancer import TcpBalancer

IDLE_SECONDS = 1.5
LONGER = 2 * IDLE_SECONDS


@pytest.fixture(scope="module")
def idle(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, TcpBalancer]]:
    folder = tmp_path_factory.mktemp("idle")
    with (
        Server(repository, folder / "server", "--ping-interval=1h", "--keepalive-interval=300ms") as server,
        TcpBalancer(folder / "balancer", [server.grpc_port], f"{IDLE_SECONDS}s") as balancer,
    ):
        yield server, balancer


def calls(server: Server) -> float:
    return server.metric("longshort_requests_total", rpc="ScoreTexts")


def texts_far_between() -> Iterator[str]:
    yield "one"
    time.sleep(LONGER)
    yield "two"


def test_a_silent_stream_of_the_python_client_lasts(idle: tuple[Server, TcpBalancer]) -> None:
    server, balancer = idle
    before = calls(server)
    with longshort.Client(f"127.0.0.1:{balancer.port}") as client:
        answers = list(client.score_stream(texts_far_between(), window=1, timeout=60))
    assert [answer.token_count for answer in answers] == [3, 3]
    assert calls(server) == before + 1


def test_so_does_that_of_the_program(idle: tuple[Server, TcpBalancer]) -> None:
    server, balancer = idle
    before = calls(server)
    command = [BINARY.with_name("longshort"), f"--server=127.0.0.1:{balancer.port}", "score", "--lines", "--json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        for text in texts_far_between():
            program.stdin.write(text + "\n")
            program.stdin.flush()
        output, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    assert len(output.splitlines()) == 2
    assert calls(server) == before + 1


def test_keepalives_come_only_to_who_asks_for_them(api: SimpleNamespace, inference: Any) -> None:
    def requests(keep_alives: bool) -> Iterator[Any]:
        yield api.inference.ScoreTextsRequest(id=7, input={"text": "one"}, options={"keep_alives": keep_alives})
        time.sleep(1)  # the server's interval is 300 ms
        yield api.inference.ScoreTextsRequest(id=8, input={"text": "two"})

    kinds = [answer.WhichOneof("result") for answer in inference.ScoreTexts(requests(False), timeout=60)]
    assert kinds == ["score", "score"]
    kinds = [answer.WhichOneof("result") for answer in inference.ScoreTexts(requests(True), timeout=60)]
    assert kinds[0] == kinds[-1] == "score"
    assert len(kinds) > 3
    assert set(kinds[1:-1]) == {"keep_alive"}
