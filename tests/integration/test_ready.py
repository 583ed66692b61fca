"""`longshort ready`: the result of containers' probes."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace

from integration.certificates import Authority
from integration.running_stream import RunningStream
from integration.server_process import BINARY, Server, wait_until
from integration.tls_calls import files_of

CLIENT = BINARY.with_name("longshort")


def ready(port: int, *options: str) -> subprocess.CompletedProcess[str]:
    # A proxy that the environment names must not be asked.
    environment = {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
    command = [CLIENT, "ready", f"127.0.0.1:{port}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def test_a_server_that_serves_is_ready(server: Server) -> None:
    done = ready(server.http_port, "--timeout=10s")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")
    assert ready(server.http_port).returncode == 0, "without a limit"


def test_a_server_that_speaks_tls_is_asked_by_tls(repository: Path, tmp_path: Path) -> None:
    authority = Authority("servers")
    options = files_of(tmp_path, authority.server())
    with Server(repository, tmp_path / "run", *options, trusted=authority.pem) as server:
        done = ready(server.http_port, "--timeout=10s")
        assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")


def test_a_server_that_drains_is_not_ready(repository: Path, tmp_path: Path, api: SimpleNamespace) -> None:
    with Server(repository, tmp_path, "--drain-timeout=60s") as server:
        stream = RunningStream(api, server, "listener")
        server.terminate()
        wait_until(lambda: server.http("/readyz")[0] == 503)
        done = ready(server.http_port, "--timeout=10s")
        assert done.returncode == 3
        assert f"not ready at 127.0.0.1:{server.http_port}" in done.stderr and "503" in done.stderr
        stream.cancel()
        assert server.wait() == 0


def test_no_server_at_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        done = ready(taken.getsockname()[1], "--timeout=2s")
    assert done.returncode == 3 and "cannot reach the server" in done.stderr


def test_who_is_silent_is_not_waited_for_longer_than_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = ready(silent.getsockname()[1], "--timeout=1s")
    assert done.returncode == 3 and "cannot reach the server" in done.stderr


def test_wrong_addresses_are_named() -> None:
    for address in ("8501", "http://127.0.0.1:8501", "a@b:1"):
        done = subprocess.run([CLIENT, "ready", address], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and f'"{address}"; it must be HOST:PORT' in done.stderr
