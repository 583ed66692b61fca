"""The served model meets the float64 reference on random configurations over every switch.

LONGSHORT_RANDOM_CONFIGURATIONS says how many language models (default 40), LONGSHORT_RANDOM_CLASSIFIERS how many of
each kind of classifier (default 15), LONGSHORT_RANDOM_SEED which (default 1).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden import encoder_cases, random_cases, random_classifiers

RUN = Path(__file__).parent / "run"

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("LONGSHORT_RANDOM_SEED", "1"))
CONFIGURATIONS = int(os.environ.get("LONGSHORT_RANDOM_CONFIGURATIONS", "40"))
CLASSIFIERS = int(os.environ.get("LONGSHORT_RANDOM_CLASSIFIERS", "15"))


def test_the_draws_reach_every_switch() -> None:
    drawn = [random_cases.draw_config(np.random.default_rng([SEED, index])) for index in range(40)]
    values = {
        name: {config[name] for config in drawn}
        for name in ("pre_ln", "use_gelu", "use_bias", "chunk_rank", "config_in_checkpoint", "weights_dtype")
    }
    assert values["chunk_rank"] == {1, 2, 3}
    assert all(len(values[name]) == 2 for name in values if name != "chunk_rank")
    assert any(config["window_len"] % config["chunk_size"] for config in drawn)
    assert any(config["window_len"] < config["chunk_size"] for config in drawn)
    assert any(0 < config["clamp_len"] < config["window_len"] for config in drawn)
    assert any(config["cpos_clamp_len"] > 0 for config in drawn)
    assert any(config["vocab_size"] % 2 for config in drawn)
    assert any(config["d_model"] // config["n_head"] % 16 for config in drawn)
    assert any(config["mem_len"] - config["window_len"] < config["chunk_size"] for config in drawn)


def test_random_configurations_meet_the_reference(tmp_path: Path) -> None:
    for index in range(CONFIGURATIONS):
        random_cases.write_case(tmp_path / f"random-{SEED}-{index:03}", np.random.default_rng([SEED, index]))
    finished = subprocess.run([RUN, tmp_path], capture_output=True, text=True, check=False)
    print(finished.stdout)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.endswith(f"golden: {CONFIGURATIONS} of {CONFIGURATIONS} cases hold\n")
    # The files whose segments all have length L are also cut without regard to segment ends.
    assert finished.stdout.count("across segment ends") == CONFIGURATIONS


@pytest.mark.parametrize(
    ("form", "write_case"),
    [
        ("text_classifier", random_classifiers.write_text_classifier_case),
        ("encoder", encoder_cases.write_random_case),
        ("vil", random_classifiers.write_vil_case),
        ("cvt", random_classifiers.write_cvt_case),
    ],
)
def test_random_classifiers_meet_the_reference(
    form: str, write_case: Callable[[Path, np.random.Generator], dict[str, Any]], tmp_path: Path
) -> None:
    for index in range(CLASSIFIERS):
        write_case(tmp_path / f"{form}-{SEED}-{index:03}", np.random.default_rng([SEED, index]))
    finished = subprocess.run([RUN, tmp_path], capture_output=True, text=True, check=False)
    print(finished.stdout)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.endswith(f"golden: {CLASSIFIERS} of {CLASSIFIERS} cases hold\n")
