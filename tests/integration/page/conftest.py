"""Fixtures: the demo models and tiny ones, a server of them, and a real browser on its page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import classifier_directory, model_directory
from integration.browser import MISSING, Browser
from integration.server_process import ROOT, Server


@pytest.fixture(autouse=True, scope="session")
def _chromium() -> None:
    if MISSING is not None:
        pytest.skip(MISSING)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo models, tiny and fast language models of bytes and of characters, a tiny classifier of pairs, and one
    of texts or pairs."""
    repository = tmp_path_factory.mktemp("models")
    for name in ("enwiki", "flowers", "languages"):
        shutil.copytree(ROOT / "models/zoo" / name / "1", repository / name / "1")
    model_directory.write(repository)
    characters = model_directory.write(repository, "characters")
    config = json.loads((characters / "config.json").read_text())
    (characters / "config.json").write_text(json.dumps(config | {"tokenizer": "fairseq_characters"}))
    symbols = ["_", *(chr(code) for code in (*range(33, 95), *range(96, 127), *range(161, 322)))]
    (characters / "vocabulary.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols[:255]))
    classifier_directory.write_text(repository, "pairs", documents=2)
    classifier_directory.write_encoder(repository, "text_or_pair", "--set", "documents=2")
    return repository


@pytest.fixture(scope="session")
def page(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(models, tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("downloads")) as browser:
        yield browser


@pytest.fixture
def browser(shared: Browser, page: Server) -> Iterator[Browser]:
    """A browser on the page, which must neither report an error nor ask another host for anything."""
    shared.open(page.http_port)
    yield shared
    assert shared.errors() == []
    assert shared.hosts() <= {f"127.0.0.1:{page.http_port}"}
