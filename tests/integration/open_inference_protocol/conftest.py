"""Fixtures: models of all kinds, a server of them, and NVIDIA's client of its gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tritonclient.grpc as triton

from integration import open_inference
from integration.server_process import Server


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("open_inference")
    open_inference.write_models(folder)
    return folder


@pytest.fixture
def own_repository(tmp_path: Path) -> Path:
    """A repository that the test may change."""
    folder = tmp_path / "models"
    open_inference.write_models(folder)
    return folder


@pytest.fixture(scope="module")
def server(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(repository, tmp_path_factory.mktemp("server"), "--log-format=json") as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[triton.InferenceServerClient]:
    with open_inference.client_of(server) as made:
        yield made
