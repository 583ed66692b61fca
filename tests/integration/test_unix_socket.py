"""A server that listens on a Unix socket, as beside a sidecar."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import grpc
import longshort
import pytest

from integration import expect
from integration.running_stream import RunningStream
from integration.server_process import BINARY, Server, run, wait_until

CLIENT = BINARY.with_name("longshort")


def test_clients_in_both_languages_use_it(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with Server(repository, tmp_path / "server", "--listen-mode=600", socket=path) as server:
        assert stat.filemode(path.stat().st_mode) == "srw-------"
        wait_until(lambda: f" ready grpc=unix:{path} " in server.log())
        assert f"unix:{path}" in server.http("/nothing")[1]
        with longshort.Client(server.address) as client:
            expected = client.score(["hello"])[0].log_likelihood
            assert [score.log_likelihood for score in client.score_stream(["hello"])] == [expected]
            wait_until(lambda: server.metric("longshort_connections_open") >= 1)

        async def score() -> float:
            async with longshort.AsyncClient(f"unix://{path}") as client:
                return (await client.score(["hello"]))[0].log_likelihood

        assert asyncio.run(score()) == expected
        command = [CLIENT, f"--server=unix:{path}", "score", "--json", "-"]
        scored = subprocess.run(command, input="hello", capture_output=True, text=True, timeout=60, check=True)
        assert json.loads(scored.stdout)["scores"][0]["log_likelihood"] == pytest.approx(expected)
        wait_until(lambda: server.metric("longshort_connections_open") <= 1)  # that of the fixture's channel


def test_a_stop_ends_its_streams_and_removes_it(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with Server(repository, tmp_path / "server", "--drain-timeout=10m", socket=path) as server:
        reader = RunningStream(api, server, "reader", max_tokens=4000)
        server.terminate()
        wait_until(lambda: not path.exists())
        with server.new_channel() as late, expect.error(grpc.StatusCode.UNAVAILABLE):
            late.unary_unary("/longshort.v1.Models/ListModels")(b"", timeout=20)
        wait_until(lambda: reader.is_complete)
        assert server.wait() == 0
    assert not list(tmp_path.glob("server.sock*"))


class UnixConnection(http.client.HTTPConnection):
    """To the server that listens on a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


def test_http_may_have_one_of_its_own(repository: Path, tmp_path: Path) -> None:
    path, web = tmp_path / "server.sock", tmp_path / "http.sock"
    with Server(
        repository, tmp_path / "server", "--listen-mode=600", f"--http-listen=unix:{web}", socket=path
    ) as server:
        assert (stat.filemode(web.stat().st_mode), server.http_port) == ("srw-------", 0)
        wait_until(lambda: f" ready grpc=unix:{path} http=unix:{web}" in server.log())
        connection = UnixConnection(web)
        for _ in range(2):
            connection.request("GET", "/readyz")
            assert (connection.getresponse().read(), connection.sock is not None) == (b"ready\n", True)
        with longshort.Client(server.address) as client:
            expected = client.score(["hello"])[0].log_likelihood
        body = json.dumps({"inputs": [{"text": "hello"}]})
        connection.request("POST", "/longshort.v1.Inference/ScoreText", body, {"Content-Type": "application/json"})
        scores = json.loads(connection.getresponse().read())["scores"]
        assert scores[0]["logLikelihood"] == pytest.approx(expected)
        second = run(f"--model-repository={repository}", "--listen=127.0.0.1:0", f"--http-listen=unix:{web}")
        assert f"--http-listen=unix:{web} cannot be bound: another process listens on it" in second.stderr
        server.terminate()
        assert server.wait() == 0
    assert not list(tmp_path.glob("*.sock*"))


def test_one_server_has_it_until_it_is_gone(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with Server(repository, tmp_path / "server", socket=path) as server:
        second = run(f"--model-repository={repository}", f"--listen=unix:{path}", "--http-listen=127.0.0.1:0")
        assert second.returncode == 1
        assert f"--listen=unix:{path} cannot be bound: another process listens on it" in second.stderr
        server.channel.unary_unary("/longshort.v1.Models/ListModels")(b"", timeout=60)
        server.process.send_signal(signal.SIGKILL)
        server.wait()
    assert path.exists()
    with Server(repository, tmp_path / "again", socket=path) as server:
        server.channel.unary_unary("/longshort.v1.Models/ListModels")(b"", timeout=60)
