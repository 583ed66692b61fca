"""What the bench asks, keeps and prints. bench/gpu/test_plain.py compares its networks with the goldens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import formula
from reference import safetensors_file

from bench.gpu.bench import Bench, MeasurementError, preset
from bench.peers import __main__ as peers
from bench.peers import results
from bench.peers.cases import Case, all_cases, workload
from bench.peers.lengths import rows as rows_of_lengths
from bench.peers.subjects import SUBJECTS, LengthCase
from bench.peers.table import rows
from bench.peers.turns import TurnError, Turns, in_turns

CASES = list(all_cases(["lra-text"], ["fp32"], [1, 8], [2]))
PROGRAMS = Path(__file__).resolve().parents[3] / "build/release/bin"
# The second round is a busy one.
FOUND = {
    "rounds": {
        "probe": [0.004, 0.009, 0.005],
        "cpp": [0.008, 0.040, 0.010],
        "pytorch": [0.02, 0.08, 0.02],
        "onnxruntime": [0.03, 0.08, 0.03],
        "openvino": [0.006, 0.020, 0.006],
    },
    "server": 0.010,
    "errors": {},
    "at_peak": 0.004,
    "peaks": {"fp32_flops": 1e11, "bf16_flops": 2e11},
}


def run(monkeypatch: pytest.MonkeyPatch, out: Path, found: Any) -> tuple[int, list[Case]]:
    """The exit status of a run whose measurements are `found`, and the cases that it measured."""
    measured = []

    def measure(_bench: Bench, case: Case, *_: object) -> dict[str, Any]:
        measured.append(case)
        return found(case)

    monkeypatch.setattr(peers, "measure", measure)
    monkeypatch.setattr(peers, "draw", lambda *_: None)
    return peers.run(CASES, 3, 1, PROGRAMS, out), measured


def test_items_have_the_networks_length_or_size() -> None:
    asked = {name: workload(preset(name), 8) for name in ("vil-ls-medium-384", "lra-listops", "lra-retrieval")}
    assert asked["vil-ls-medium-384"] == "classify,concurrency=8,image_side=384"
    assert asked["lra-listops"] == "classify,concurrency=8,prompt=2000,documents=1,ids=1:511"
    assert asked["lra-retrieval"] == "classify,concurrency=8,prompt=4096,documents=2"


def test_rows_have_times_per_item_and_show_who_is_fastest_in_quiet_and_in_busy_rounds() -> None:
    assert rows(Case("lra-text", "fp32", 8, 2), FOUND) == [
        "| LRA Text, 4,000 bytes | 8 | 2 | 2 quiet | 1 (1.06 to 1.19) | 1.25 | 2.5 (2.5 to 2.5) | 3.75 (3.75 to 3.75) "
        "| **0.75 (0.75 to 0.75)** | 0.68x | 0.5 | 50% |",
        "| LRA Text, 4,000 bytes | 8 | 2 | 1 busy | 5 (5 to 5) |  | 10 (10 to 10) | 10 (10 to 10) "
        "| **2.5 (2.5 to 2.5)** | 0.50x | 0.5 | 10% |",
    ]


PROGRAM = """
import sys
print("a library greets")
print("ready", flush=True)
for turn, _ in enumerate(sys.stdin, 1):
    if turn == 4:
        sys.exit("the fourth turn is too much")
    print(turn * {step}, flush=True)
print('{{"logits": [1]}}')
"""


def test_programs_take_turns(tmp_path: Path) -> None:
    turns = {
        name: Turns([sys.executable, "-c", PROGRAM.format(step=step)], tmp_path / name, 60)
        for name, step in (("a", 1), ("b", 0.5))
    }
    assert in_turns(turns, 3) == {"a": [1, 2, 3], "b": [0.5, 1, 1.5]}
    assert turns["a"].end() == {"logits": [1]}
    with pytest.raises(TurnError, match="ended with 1: the fourth turn is too much"):
        turns["b"].take()
    for one in turns.values():
        one.stop()


def test_a_program_that_cannot_begin_says_why(tmp_path: Path) -> None:
    with pytest.raises(TurnError, match="no memory"):
        Turns([sys.executable, "-c", """print('{"error": "no memory"}')"""], tmp_path / "log", 60)
    with pytest.raises(TurnError, match="ended with -9: nothing"):
        Turns([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log", 0.1)


def test_an_interrupted_run_continues_with_the_missing_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def ended(case: Case) -> dict[str, Any]:
        if case.batch == 8:
            raise MeasurementError("logits differ")
        return FOUND

    assert run(monkeypatch, tmp_path, ended) == (1, CASES)
    assert run(monkeypatch, tmp_path, lambda _: FOUND) == (0, CASES[1:])
    assert run(monkeypatch, tmp_path, lambda _: FOUND) == (0, [])
    assert (tmp_path / "table.md").read_text().count("quiet |") == 2


def test_a_case_with_a_runner_that_failed_is_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = FOUND | {"errors": {"openvino": "RuntimeError: no memory"}}
    assert run(monkeypatch, tmp_path, lambda _: broken) == (1, CASES)
    assert run(monkeypatch, tmp_path, lambda _: FOUND) == (0, CASES)


def test_results_of_another_machine_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run(monkeypatch, tmp_path, lambda _: FOUND)
    monkeypatch.setattr(results, "processor", lambda: "64 cores of another")
    with pytest.raises(SystemExit, match="use another --out"):
        run(monkeypatch, tmp_path, lambda _: FOUND)


def test_a_table_of_lengths_has_the_fastest_times_and_each_runners_memory() -> None:
    case = LengthCase("ls-base-r1", 512, 2)
    found = {"longshort": {"batch_seconds": [0.9, 0.5], "resident_peak": 20 << 20}, "at_peak": 0.4,
             "openvino": {"seconds": [1.0]}, "full": {"error": "not done after 600 s"}}  # fmt: skip
    assert rows_of_lengths(SUBJECTS["documents"], {case: found})[2:] == [
        "| ls-base-r1 | 512 | 2 | Longshort, C++ | 500 | 977 | 400 | 80% | 20 |",
        "| ls-base-r1 | 512 | 2 | OpenVINO | 1000 | 1953 | 400 | 40% |  |",
    ]


def test_weights_follow_the_formula(tmp_path: Path) -> None:
    command = [PROGRAMS / "longshort-gpu-bench", "write", "--config=lra-text", f"--model={tmp_path}"]
    subprocess.run(command, check=True)
    assert json.loads((tmp_path / "config.json").read_text()) == preset("lra-text")
    weights = safetensors_file.read(tmp_path / "model.safetensors")
    for name, base, scale in (
        ("model.transformer_1.mha.W_q.weight", 0.0, (3 / 64) ** 0.5),
        ("model.norm.weight", 1.0, 0.2),
        ("model.norm.bias", 0.0, 0.2),
    ):
        assert np.array_equal(weights[name], formula.tensor(name, weights[name].shape, base, scale, 0)), name
