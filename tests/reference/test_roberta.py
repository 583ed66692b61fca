"""The converted RoBERTa of the float64 reference is that of Hugging Face's `transformers`.

LONGSHORT_RANDOM_ROBERTAS says how many random models (default 30), LONGSHORT_RANDOM_SEED which (default 1).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from golden import roberta
from longshort_convert.__main__ import main

from reference import safetensors_file
from reference.text_classifier import TextClassifier

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/text_classifier"
INSTALLED = ROOT / "build/transformers/requirements.txt"
COUNT = os.environ.get("LONGSHORT_RANDOM_ROBERTAS", "30")
SEED = os.environ.get("LONGSHORT_RANDOM_SEED", "1")
TOLERANCE = 1e-10


def differences(model: Path, expected: Path) -> dict[str, float]:
    """The largest difference of each kind of result, relative to the largest value."""
    config = json.loads((model / "config.json").read_text())
    network = TextClassifier(config, safetensors_file.read(model / "model.safetensors"))
    tensors = safetensors_file.read(expected)
    batches = [tensors[name] for name in sorted(tensors) if name.startswith("input_ids_")]
    found: dict[str, float] = {}
    for name in ("logits", "first", "mean"):
        for row, wanted in enumerate(tensors.get(name, ())):
            result = getattr(network, name)([ids[row] for ids in batches])
            difference = float(np.abs(result - wanted).max() / max(1.0, np.abs(wanted).max()))
            found[name] = max(difference, found.get(name, 0.0))
    return found


@pytest.mark.parametrize("case", [path.parent.name for path in sorted(GOLDEN.glob("roberta*/io.safetensors"))])
def test_golden_robertas_are_those_of_transformers(case: str, tmp_path: Path) -> None:
    config = json.loads((GOLDEN / case / "config.json").read_text())
    if config["weights_file"] is None:
        pytest.skip("query by query, a full-size model takes minutes")
    weights = safetensors_file.read(GOLDEN / case / config["weights_file"])
    folder = roberta.write_folder(tmp_path / "folder", config["hugging_face"], weights)
    assert main([str(folder), "--out", str(tmp_path / "model")]) == 0
    found = differences(tmp_path / "model", GOLDEN / case / "io.safetensors")
    assert max(found.values()) < 1e-6, found  # stored as float32


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED.exists(), reason="build/transformers is missing: run deploy/install --tests")
def test_random_robertas_are_those_of_transformers(tmp_path: Path) -> None:
    command = [ROOT / "tests/golden/run_transformers", "random", tmp_path, f"--seed={SEED}", f"--count={COUNT}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == int(COUNT)
    kinds = set()
    for folder in folders:
        out = tmp_path / f"converted-{folder.name}"
        assert main([str(folder), "--out", str(out)]) == 0
        found = differences(out, folder / "expected.safetensors")
        assert max(found.values()) < TOLERANCE, (folder.name, found)
        kinds.add(tuple(found))
    assert kinds == {("logits", "first", "mean"), ("first", "mean")}
