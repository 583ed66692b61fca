"""The float64 reference meets every golden case, which the official code computed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from golden import formula
from numpy.typing import NDArray

from reference import checkpoint_file, safetensors_file
from reference.language_model import Hyperparameters, LanguageModel

CASES = Path(__file__).parents[1] / "golden" / "language_model"
# Expected values are stored as float32; a log-probability of -20 is then off by 1e-6.
TOLERANCE = 2e-6


def official_weights(case: Path, config: Mapping[str, object]) -> dict[str, NDArray]:
    if config["weights_file"] is None:
        state = formula.language_model_weights(config)
    else:
        state = checkpoint_file.read(case / str(config["weights_file"]))["model"]
    return {name.removeprefix("decoder.model."): value for name, value in state.items()}


def golden_files() -> list[Path]:
    return sorted(CASES.glob("*/io*.safetensors"))


def test_there_are_golden_files() -> None:
    assert len(golden_files()) >= 10


@pytest.mark.parametrize("file", golden_files(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_reference_meets_the_official_log_probabilities(file: Path) -> None:
    config = json.loads((file.parent / "config.json").read_text())
    expected = safetensors_file.read(file)
    entry = config["io"][file.stem]
    model = LanguageModel(
        Hyperparameters.from_json(config), official_weights(file.parent, config), batch=entry["batch"]
    )

    start = 0
    for index, length in enumerate(entry["segments"]):
        if "tokens" in expected:  # by formula: one stream, some of its positions
            found = model.segment(expected["tokens"][:, start : start + length])
            chosen = (expected["positions"] >= start) & (expected["positions"] < start + length)
            wanted = expected["logprobs"][:, chosen]
            found = found[:, expected["positions"][chosen] - start]
        else:
            found = model.segment(expected[f"seg{index:02}.tokens"])
            wanted = expected[f"seg{index:02}.logprobs"]
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max(initial=0.0) < TOLERANCE, f"segment {index}"
        start += length
