"""The program longshort-train, as a process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from integration.server_process import BINARY, wait_until

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
