"""Runs the programs under test."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden.outcome import CaseError


def convert(checkpoint: Path, out: Path, *options: object) -> None:
    """Makes a model directory of a checkpoint. Errors: CaseError."""
    output_of([sys.executable, "-m", "longshort_convert", checkpoint, *options, "--out", out])


@dataclass(frozen=True)
class Build:
    """A build's programs, and the device that models run on."""

    folder: Path
    device: str = "cpu"

    @property
    def is_emulated(self) -> bool:
        return self.device.startswith("emulated:")


def json_lines_of(build: Build, name: str, *arguments: object, given: str = "") -> list[dict[str, Any]]:
    """What a program of the build printed, a JSON object a line, when `given` was its input. Errors: CaseError."""
    program = build.folder / "bin" / name
    if not program.is_file():
        raise CaseError(f"{program} is not there: build it first")
    return [json.loads(line) for line in output_of([program, *arguments], given).splitlines()]


def output_of(command: list[object], given: str = "") -> str:
    """What the command printed. Errors: CaseError if it ended with another status than 0."""
    words = [str(word) for word in command]
    finished = subprocess.run(words, input=given, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        said = (finished.stderr.strip() or finished.stdout.strip() or "nothing").splitlines()
        raise CaseError(f"{Path(words[0]).name} ended with {finished.returncode}: {said[-1]}")
    return finished.stdout


def number_of(printed: float | None) -> float:
    """A difference that a program printed: NaN where it is null."""
    return math.nan if printed is None else printed


def difference_of(line: dict[str, Any]) -> float:
    return number_of(line["largest_difference"])


def weights_path(case: Path, config: dict[str, Any]) -> Path:
    """The case's checkpoint, named by weights_file. Errors: CaseError if it is not there."""
    path = case / config["weights_file"]
    if not path.is_file():
        raise CaseError(f"{path.name} is named in config.json, but not there")
    return path


def threads_of(config: dict[str, Any]) -> int:
    """Cases with a checkpoint are small: starting threads for an operation costs more than the operation. 0 is all."""
    return 1 if config["weights_file"] else 0
