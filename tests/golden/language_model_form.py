"""Form `language_model`: converts the case's checkpoint and runs the served model on each of its files.

The C++ program longshort-golden feeds the streams whole and in pieces and prints what it found; the judgement is here.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from reference import safetensors_file
from reference.language_model import Hyperparameters

from golden import checkpoints, formula, programs
from golden.outcome import CaseError, Outcome

TOLERANCE = 2e-5
TOLERANCE_BY_FORMULA = 1e-4
RANDOM_CUTS = 3
_MODES = {"whole segments": 1, "token by token": 1, "random cuts": RANDOM_CUTS}
_MODE_ACROSS = "across segment ends"


def judge(case: Path, config: dict[str, Any], build: programs.Build) -> Outcome:
    """Errors: CaseError."""
    _check_files(case, config)
    differences: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="longshort-golden-") as scratch:
        checkpoint = _checkpoint(case, config, Path(scratch))
        models: dict[int, Path] = {}
        for stem, entry in config["io"].items():
            length = _segment_length(config, entry["segments"])
            if length not in models:
                models[length] = _convert(checkpoint, config, length, Path(scratch) / f"model-{length}")
            file = case / f"{stem}.safetensors"
            found = _run(build, models[length], file, entry["segments"], programs.threads_of(config))
            _check_rows(case, config, stem, found)
            if build.device != "cpu" and found["token by token"]["replayed_steps"] == 0:
                raise CaseError(f"{stem}: no step of single tokens ran as a graph on {build.device}")
            for mode, result in found.items():
                difference = programs.difference_of(result)
                # max() would lose a NaN that stands second.
                known = differences.get(mode, 0.0)
                differences[mode] = difference if not difference <= known else known
    return Outcome(differences, TOLERANCE if config["weights_file"] else TOLERANCE_BY_FORMULA)


def _check_files(case: Path, config: dict[str, Any]) -> None:
    listed = {f"{stem}.safetensors" for stem in config["io"]}
    present = {path.name for path in case.glob("io*.safetensors")}
    if not listed:
        raise CaseError("config.json lists no file under io")
    if missing := sorted(listed - present):
        raise CaseError(f"{', '.join(missing)} is listed in config.json, but not there")
    if unlisted := sorted(present - listed):
        raise CaseError(f"{', '.join(unlisted)} is there, but not listed in config.json")


def _checkpoint(case: Path, config: dict[str, Any], scratch: Path) -> Path:
    """The case's checkpoint; made by formula where it has none."""
    if config["weights_file"] is not None:
        return programs.weights_path(case, config)
    path = scratch / "weights.pt"
    try:
        checkpoints.write_language_model(path, config, formula.language_model_weights(config))
    except ValueError as error:
        raise CaseError(str(error)) from error
    return path


def _segment_length(config: dict[str, Any], segments: list[int]) -> int:
    """The least L that holds every segment as it is fed: all but the last with their padding."""
    hyperparameters = Hyperparameters.from_json(config)
    fed = [hyperparameters.padded_length(length) for length in segments[:-1]] + segments[-1:]
    chunk = hyperparameters.chunk_size
    return -(-max(fed) // chunk) * chunk


def _convert(checkpoint: Path, config: dict[str, Any], segment_length: int, out: Path) -> Path:
    programs.convert(checkpoint, out, "--segment-length", segment_length, "--mem-len", config["mem_len"])
    return out


def _run(
    build: programs.Build, model: Path, file: Path, segments: list[int], threads: int
) -> dict[str, dict[str, Any]]:
    """What longshort-golden printed, by mode."""
    joined = ",".join(str(length) for length in segments)
    arguments = [
        f"--model={model}",
        f"--file={file}",
        f"--segments={joined}",
        f"--threads={threads}",
        f"--device={build.device}",
    ]
    lines = programs.json_lines_of(build, "longshort-golden", *arguments, f"--random_cuts={RANDOM_CUTS}")
    return {result["mode"]: result for result in lines}


def _check_rows(case: Path, config: dict[str, Any], stem: str, found: dict[str, dict[str, Any]]) -> None:
    """Every mode must have compared every expected position, in every copy of the stream."""
    entry = config["io"][stem]
    expected = _expected_rows(case / f"{stem}.safetensors", entry["batch"])
    for mode, copies in (_MODES | ({_MODE_ACROSS: RANDOM_CUTS} if _MODE_ACROSS in found else {})).items():
        rows = found[mode]["rows"] if mode in found else 0
        if rows != expected * copies:
            raise CaseError(f"{stem}, {mode}: {rows} positions were compared, not {expected * copies}")


def _expected_rows(file: Path, batch: int) -> int:
    """Positions with log-probabilities in the file, over all streams; the batch must be the one promised."""
    shapes = {name: tensor.shape for name, tensor in safetensors_file.read(file).items() if name.endswith("logprobs")}
    if any(shape[0] != batch for shape in shapes.values()):
        raise CaseError(f"{file.name} is not of batch {batch}")
    return sum(shape[0] * shape[1] for shape in shapes.values())
