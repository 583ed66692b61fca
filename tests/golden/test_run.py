"""tests/golden/run passes good cases and only those."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from reference import safetensors_file

GOLDEN = Path(__file__).parent


def run(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GOLDEN / "run", directory], capture_output=True, text=True, check=False)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A copy of a case that holds."""
    return Path(shutil.copytree(GOLDEN / "language_model" / "a_tiny", tmp_path / "cases" / "a_tiny"))


def test_a_log_probability_off_by_1e_4_fails(case: Path) -> None:
    path = case / "io.safetensors"
    tensors = {name: tensor.copy() for name, tensor in safetensors_file.read(path).items()}
    tensors["seg01.logprobs"][1, 5, 7] += np.float32(1e-4)
    safetensors_file.write(path, tensors)
    finished = run(case.parent)
    assert finished.returncode != 0
    assert "FAIL cases/a_tiny: 1.0e-04, allowed 2e-05" in finished.stdout
    assert finished.stdout.endswith("golden: 0 of 1 cases hold\n")


def test_one_failing_case_among_good_ones_fails(case: Path) -> None:
    shutil.copytree(case, case.parent / "b_broken")
    (case.parent / "b_broken" / "weights.pt").unlink()
    finished = run(case.parent)
    assert finished.returncode != 0
    assert "ok   cases/a_tiny" in finished.stdout
    assert "FAIL cases/b_broken: weights.pt is named in config.json, but not there" in finished.stdout
    assert finished.stdout.endswith("golden: 1 of 2 cases hold\n")


def test_a_missing_file_fails(case: Path) -> None:
    (case / "io_padmid.safetensors").unlink()
    finished = run(case.parent)
    assert finished.returncode != 0
    assert "io_padmid.safetensors is listed in config.json, but not there" in finished.stdout


def test_an_unknown_form_fails(case: Path) -> None:
    config = json.loads((case / "config.json").read_text())
    (case / "config.json").write_text(json.dumps(config | {"form": "recurrent"}))
    finished = run(case.parent)
    assert finished.returncode != 0
    assert 'form "recurrent" is unknown' in finished.stdout


@pytest.mark.parametrize("content", ["", "not json", "[]", "{}"])
def test_a_config_that_is_none_fails(case: Path, content: str) -> None:
    (case / "config.json").write_text(content)
    finished = run(case.parent)
    assert finished.returncode != 0
    assert finished.stdout.startswith("FAIL cases/a_tiny: ")


def test_a_folder_without_cases_fails(tmp_path: Path) -> None:
    finished = run(tmp_path)
    assert finished.returncode != 0
    assert "no config.json" in finished.stderr


def test_a_missing_folder_fails(tmp_path: Path) -> None:
    finished = run(tmp_path / "absent")
    assert finished.returncode != 0
    assert "no config.json" in finished.stderr
