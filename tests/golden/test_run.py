"""tests/golden/run passes good cases and only those."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from reference import safetensors_file

GOLDEN = Path(__file__).parent


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GOLDEN / "run", directory, *options], capture_output=True, text=True, check=False)


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
    found = re.search(r"FAIL cases/a_tiny: (\S+), allowed 2e-05", finished.stdout)
    assert found, finished.stdout
    assert float(found[1]) == pytest.approx(1e-4, abs=2e-5)
    assert finished.stdout.endswith("golden: 0 of 1 cases hold\n")


def test_a_device_that_is_not_there_holds_no_case(case: Path) -> None:
    finished = run(case.parent, "--device=cuda:99")
    assert finished.returncode != 0
    assert "cuda:99" in finished.stdout
    assert finished.stdout.endswith("golden: 0 of 1 cases hold\n")


def test_only_cases_that_exist_can_be_left_out(case: Path) -> None:
    copied("language_model", "a_tiny", case.parents[1] / "more")
    assert run(case.parents[1], "--without", "more/cases/a_tiny").stdout.endswith("golden: 1 of 1 cases hold\n")
    assert run(case.parents[1], "--without", "cases/b_tiny").returncode == 2


def copied(form: str, name: str, to: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / form / name, to / "cases" / name))


def spoil(case: Path, name: str, index: tuple[int, ...], by: float) -> None:
    """Adds to one element of io.safetensors."""
    tensors = {key: tensor.copy() for key, tensor in safetensors_file.read(case / "io.safetensors").items()}
    tensors[name][index] += np.asarray(by, tensors[name].dtype)
    safetensors_file.write(case / "io.safetensors", tensors)


def test_a_mean_over_rows_of_two_widths_is_named(tmp_path: Path) -> None:
    copy = copied("text_classifier", "retrieval_dual", tmp_path)
    config = json.loads((copy / "config.json").read_text())
    config["config"] |= {"pooling_mode": "MEAN", "cls_token": False, "cls_last_layer": False}
    (copy / "config.json").write_text(json.dumps(config))
    tensors = {name: tensor.copy() for name, tensor in safetensors_file.read(copy / "io.safetensors").items()}
    for name in ("input_ids_1", "mask_1"):
        tensors[name] = np.pad(tensors[name], ((0, 0), (0, 1)))
    safetensors_file.write(copy / "io.safetensors", tensors)
    finished = run(copy.parent)
    assert finished.returncode != 0
    assert "a served model has one pooled_length for both" in finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("form", "name", "logits", "tolerance"),
    [
        ("text_classifier", "retrieval_dual", "logits", "2e-05"),
        ("vil", "a1_f4_cls", "logits", "2e-05"),
        ("cvt", "odd_sizes", "logits.1", "5e-05"),
    ],
)
def test_a_logit_off_by_1e_4_fails(form: str, name: str, logits: str, tolerance: str, tmp_path: Path) -> None:
    copy = copied(form, name, tmp_path)
    spoil(copy, logits, (1, 1), 1e-4)
    finished = run(copy.parent)
    assert finished.returncode != 0
    found = re.search(rf"FAIL cases/{name}: (\S+), allowed {tolerance}", finished.stdout)
    assert found, finished.stdout
    assert float(found[1]) == pytest.approx(1e-4, abs=float(tolerance))


def test_a_mask_that_does_not_follow_the_ids_fails(tmp_path: Path) -> None:
    copy = copied("text_classifier", "text_tiny", tmp_path)
    spoil(copy, "mask_0", (1, 40), 1)
    assert "FAIL cases/text_tiny: mask_0 does not mark" in run(copy.parent).stdout


def test_a_grey_level_off_by_two_fails(tmp_path: Path) -> None:
    copy = copied("image_preprocess", "cases", tmp_path)
    spoil(copy, "case1.cropped_u8_hwc", (0, 0, 0), 2)  # 183 becomes 185
    finished = run(copy.parent)
    assert finished.returncode != 0
    assert "FAIL cases/cases: 2.0e+00, allowed 1e+00" in finished.stdout


def test_another_id_fails(tmp_path: Path) -> None:
    copy = copied("text_classifier", "tokenize", tmp_path)
    config = json.loads((copy / "config.json").read_text())
    config["listops_lra_2021"]["cases"][0]["ids"][2] += 1
    (copy / "config.json").write_text(json.dumps(config))
    finished = run(copy.parent)
    assert finished.returncode != 0
    assert "listops_lra_2021 1.0e+00" in finished.stdout


@pytest.mark.parametrize(("form", "name"), [("vil", "a1_f4_cls"), ("cvt", "tiny"), ("text_classifier", "text_tiny")])
def test_a_classifier_without_its_files_fails(form: str, name: str, tmp_path: Path) -> None:
    copy = copied(form, name, tmp_path)
    next(copy.glob("weights.*")).unlink()
    assert "is named in config.json, but not there" in run(copy.parent).stdout
    (copy / "io.safetensors").unlink()
    assert f"FAIL cases/{name}: io.safetensors is not there" in run(copy.parent).stdout


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
