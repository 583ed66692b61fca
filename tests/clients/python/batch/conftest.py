"""Servers that the tests of batches share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration import classifier_directory, model_directory
from integration.server_process import Server


@pytest.fixture(scope="session")
def repeatable(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the tiny model, one document after the other on one thread, each in as few steps as it can: its
    scores are the same bit by bit, whatever is asked beside and however slow the machine is."""
    options = ("--max-streams=1", "--threads=1", "--step-time=1s")
    with Server(repository, tmp_path_factory.mktemp("repeatable"), *options) as running:
        yield running


@pytest.fixture(scope="session")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of tiny classifiers, `one` of documents, `two` of pairs and `joins` of both, and of the tiny
    language model."""
    repository = tmp_path_factory.mktemp("classifiers")
    classifier_directory.write_text(repository, "one", documents=1)
    classifier_directory.write_text(repository, "two", documents=2)
    classifier_directory.write_encoder(repository, "joins")
    model_directory.write(repository)
    with Server(repository, tmp_path_factory.mktemp("server")) as running:
        yield running
