"""The program longshort-train, as a process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from integration.server_process import BINARY, ROOT, wait_until

pytestmark = [
    pytest.mark.cpu_only("training runs on the CPU"),
    pytest.mark.not_sanitized("the trainer's C++ tests are"),
]

MODEL = ("--layers=1", "--model-width=16", "--heads=2", "--feed-forward-width=16", "--batch=2", "--shards=2")


def test_variables_that_bind_openmps_threads_are_ignored(tmp_path: Path) -> None:
    """They would bind every thread to the first CPU."""
    variables = {"OMP_PROC_BIND": "true", "GOMP_CPU_AFFINITY": "0"}
    text, log = tmp_path / "mine.txt", tmp_path / "log"
    text.write_text("The same again and again. " * 10_000)
    command = [BINARY.with_name("longshort-train"), text, f"--out={tmp_path}/mine/1", *MODEL]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--steps=1000000"], stdout=output, stderr=output, env=os.environ | variables
        ) as training,
    ):
        try:
            tasks = Path(f"/proc/{training.pid}/task")
            wait_until(lambda: "step" in log.read_text())
            assert len(list(tasks.iterdir())) >= 2
            for task in tasks.iterdir():
                assert os.sched_getaffinity(int(task.name)) == os.sched_getaffinity(0), task.name
        finally:
            training.kill()
    for name, value in variables.items():
        assert f"ignores the environment's {name}={value}, which would bind or limit its threads" in log.read_text()


def refusal(*arguments: object) -> str:
    done = subprocess.run(
        [BINARY.with_name("longshort-train"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--from={zoo}/listops/1", "--vocabulary={zoo}/listops/1/vocabulary.txt"], "--vocabulary and --from"),
        (["--from={zoo}/listops/1", "--config={zoo}/listops/1/config.json"], "--config and --from"),
        (["--from={zoo}/listops/1", "--size=medium"], "--size"),
        (["--config={zoo}/listops/1/config.json", "--size=medium"], "--size"),
        (["--held-out={data}", "--held-out-fraction=0.2"], "--held-out-fraction and --held-out"),
        (["--config={zoo}/listops/1/config.json"], "config.json: its tokenizer reads vocabulary.txt; give it with"),
        (["--config={zoo}/listops/1/config.json", "--text-column=review"], "unknown field 'text'"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(tmp_path: Path, options: list[str], why: str) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"label": "0", "text": "[MAX 1 2 ]"}\n{"label": "1", "text": "[MIN 1 2 ]"}\n')
    named = {"zoo": ROOT / "models/zoo", "data": data}
    given = [option.format(**named) for option in options]
    assert why in refusal("text-classifier", data, f"--out={tmp_path}/mine/1", *given)


def test_data_that_are_not_there_leave_no_folder(tmp_path: Path) -> None:
    for command in ("text-classifier", "image-classifier", "language-model"):
        why = refusal(command, tmp_path / "mistyped", f"--out={tmp_path}/models/mine/1")
        assert f"{tmp_path}/mistyped: there is no such file or folder to train on" in why
    assert not (tmp_path / "models").exists()
