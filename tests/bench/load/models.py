"""Model repositories to measure with: the 44M model by formula, the zoo's language model, and identity models."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import language_model

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class LanguageModel:
    """A repository with one language model."""

    name: str
    repository: Path
    config: dict

    @property
    def memory(self) -> int:
        """M, in tokens."""
        return self.config["memory_length"]

    @property
    def full(self) -> int:
        """After so many tokens a stream's memory and segment are full, and it costs what it will ever cost."""
        return self.memory + self.config["segment_length"]

    def full_attention_bytes(self, element_bytes: int) -> int:
        """What keys and values of M tokens take in all layers."""
        return 2 * self.config["layers"] * self.config["model_width"] * self.memory * element_bytes


def _repository(name: str, repository: Path) -> LanguageModel:
    config = json.loads((repository / name / "1/config.json").read_text())
    return LanguageModel(name, repository, config)


def formula(memory: int, folder: Path) -> LanguageModel:
    """The 44M model with this memory and L = 256; written once into `folder`."""
    repository = folder / f"formula-{memory}"
    if not repository.exists():
        folder.mkdir(parents=True, exist_ok=True)
        config = json.loads(language_model.CASE.read_text())
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as scratch:
            written = language_model.model_directory(config, memory, Path(scratch))
            new = Path(scratch) / "new"
            (new / "formula").mkdir(parents=True)
            written.rename(new / "formula/1")
            # Renamed when it is whole, so that an interrupted run leaves nothing behind that looks like a model.
            new.rename(repository)
    return _repository("formula", repository)


def enwiki(folder: Path) -> LanguageModel:
    """The zoo's language model, alone in a repository."""
    repository = folder / "enwiki"
    repository.mkdir(parents=True, exist_ok=True)
    link = repository / "enwiki"
    if not link.exists():
        link.symlink_to(ROOT / "models/zoo/enwiki", target_is_directory=True)
    return _repository("enwiki", repository)


def identity(folder: Path) -> Path:
    """A repository for longshort-identity-server, whose models need no files."""
    repository = folder / "identity"
    for name in ("text", "image"):
        (repository / name / "1").mkdir(parents=True, exist_ok=True)
    return repository
