"""The float64 references meet every golden case of the classifiers, which the official code computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reference import checkpoint_file, safetensors_file
from reference.cvt import Cvt
from reference.text_classifier import TextClassifier, from_official
from reference.vil import Vil

CASES = Path(__file__).parents[1] / "golden"
# Expected values are stored as float32.
TOLERANCE = 2e-6


def cases(form: str) -> list[str]:
    """Those with a checkpoint: the full-size ones by formula would take minutes, query by query."""
    return sorted(path.parent.name for path in (CASES / form).glob("*/weights.*"))


def read(form: str, case: str) -> tuple[dict[str, Any], dict[str, NDArray], dict[str, NDArray]]:
    """config.json, the weights by their names without prefix, and io.safetensors."""
    folder = CASES / form / case
    config = json.loads((folder / "config.json").read_text())
    path = folder / config["weights_file"]
    if path.suffix == ".safetensors":
        weights = safetensors_file.read(path)
    else:
        checkpoint = checkpoint_file.read(path)
        weights = checkpoint["net" if form == "vil" else "model_state_dict"]
    weights = {name.removeprefix("module."): value for name, value in weights.items()}
    return config, weights, safetensors_file.read(folder / "io.safetensors")


def test_there_are_golden_cases() -> None:
    assert [len(cases(form)) for form in ("text_classifier", "vil", "cvt")] == [17, 8, 3]


@pytest.mark.parametrize("case", cases("text_classifier"))
def test_the_text_classifier_meets_the_official_logits(case: str) -> None:
    config, weights, expected = read("text_classifier", case)
    own = config["config"]
    model = TextClassifier(own if "architecture" in own else from_official(own), weights)
    for row, wanted in enumerate(expected["logits"]):
        documents = [expected[f"input_ids_{document}"][row] for document in range(config["documents"])]
        assert np.abs(model.logits(documents) - wanted).max() < TOLERANCE


@pytest.mark.parametrize("case", cases("vil"))
def test_vil_meets_the_official_logits(case: str) -> None:
    config, weights, expected = read("vil", case)
    model = Vil(config["model_args"], weights)
    for image, wanted in zip(expected["input"], expected["logits"], strict=True):
        assert np.abs(model.logits(image) - wanted).max() < TOLERANCE


@pytest.mark.parametrize("case", cases("cvt"))
def test_cvt_meets_the_logits(case: str) -> None:
    config, weights, expected = read("cvt", case)
    model = Cvt(config, weights)
    for name in sorted(name for name in expected if name.startswith("images")):
        for image, wanted in zip(expected[name], expected[name.replace("images", "logits")], strict=True):
            assert np.abs(model.logits(image) - wanted).max() < TOLERANCE
