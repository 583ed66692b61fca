"""Servers and clients that tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration import model_directory
from integration.server_process import ROOT, Server, wait_until

from clients.python.drivers import Awaiting, Driver, Waiting


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one tiny language model."""
    folder = tmp_path_factory.mktemp("repository")
    model_directory.write(folder)
    return folder


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file by which servers trust each other's sessions."""
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_bytes(b"k" * 32)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="session")
def server(repository: Path, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the tiny model that is never stopped by a test."""
    with Server(repository, tmp_path_factory.mktemp("server"), f"--session-key-file={key}") as running:
        yield running


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the demo models. Each image and document is a batch of its own on one thread, so equal inputs have
    equal results bit by bit: a convolution rounds an image in a larger batch differently."""
    options = ("--max-batch-size=1", "--threads=1")
    with Server(ROOT / "models/zoo", tmp_path_factory.mktemp("zoo"), *options) as running:
        yield running


@pytest.fixture(params=[Waiting, Awaiting], ids=["sync", "async"])
def driver(request: pytest.FixtureRequest) -> Driver:
    """Both clients, one after the other."""
    one: Driver = request.param()
    return one


def address(server: Server) -> str:
    return f"127.0.0.1:{server.grpc_port}"


def stall(server: Server) -> None:
    """Stops the process, until SIGCONT."""
    server.process.send_signal(signal.SIGSTOP)
    tasks = Path(f"/proc/{server.process.pid}/task")
    # Behind the program's name in brackets; T: stopped.
    wait_until(lambda: {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()} == {"T"})


@pytest.fixture
def client(driver: Driver, server: Server) -> Iterator[Any]:
    """A client of the tiny model."""
    made = driver.client(address(server))
    yield made
    driver.done(made.close())


@pytest.fixture
def zoo_client(driver: Driver, zoo: Server) -> Iterator[Any]:
    made = driver.client(address(zoo), model="enwiki")
    yield made
    driver.done(made.close())
