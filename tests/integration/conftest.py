"""Fixtures: generated stubs of the contract, a model repository, and a running server that most tests share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from grpc_tools import protoc

from integration import model_directory
from integration.certificates import Authority
from integration.server_process import ROOT, Server


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu_only(reason): not for LONGSHORT_DEVICE=emulated (docs/gpu.md)")
    config.addinivalue_line("markers", "not_sanitized(reason): the stage asan of tests/run leaves it out")


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Modules generated from proto/: `inference`, `models`, `types` (messages), and `inference_grpc` etc. (stubs)."""
    folder = tmp_path_factory.mktemp("stubs")
    names = ("types", "inference", "models", "sessions")
    protos = [f"longshort/v1/{name}.proto" for name in names]
    arguments = ["protoc", f"--proto_path={ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main([*arguments, *protos]) == 0
    sys.path.insert(0, str(folder))
    modules = SimpleNamespace()
    for name in names:
        setattr(modules, name, importlib.import_module(f"longshort.v1.{name}_pb2"))
        setattr(modules, f"{name}_grpc", importlib.import_module(f"longshort.v1.{name}_pb2_grpc"))
    return modules


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one tiny model."""
    folder = tmp_path_factory.mktemp("repository")
    model_directory.write(folder)
    return folder


@pytest.fixture(scope="session")
def server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that is never stopped by a test."""
    with Server(repository, tmp_path_factory.mktemp("server"), "--keepalive-interval=300ms") as running:
        yield running


@pytest.fixture
def inference(api: SimpleNamespace, server: Server) -> object:
    return api.inference_grpc.InferenceStub(server.channel)


@pytest.fixture
def models(api: SimpleNamespace, server: Server) -> object:
    return api.models_grpc.ModelsStub(server.channel)


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Who signs the certificates of servers."""
    return Authority("servers")


@pytest.fixture(scope="module")
def clients() -> Authority:
    """Who signs the certificates of clients."""
    return Authority("clients")
