"""tests/run: stopping it ends all that it started; stages that only compute run beside the tests of others."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A step with children, of which one has left its session and its parent.
CTEST = """#!/bin/bash
(setsid sleep 1000 &)
sleep 1001 &
sleep 1002
"""


def processes(folder: Path) -> list[str]:
    """The commands of the processes that have this current directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder) and (process / "stat").read_text().split()[2] != "Z":
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    latest = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < latest
        time.sleep(0.2)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose stage tsan runs bin/ctest, which a test writes."""
    for name in ("tests/run", "deploy/steps.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("deploy/install", "bin/cmake", "bin/ctest", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#!/bin/bash\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("stages", ["tsan", "asan,tsan"])
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_processes(checkout: Path, stop: signal.Signals, stages: str) -> None:
    """Those of a stage that runs beside another, too."""
    (checkout / "bin/ctest").write_text(CTEST)
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"}
    command = [checkout / "tests/run", "--only", stages]
    run = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    wait_until(
        lambda: sum(process.startswith("sleep 100") for process in processes(checkout)) == 3 * len(stages.split(","))
    )
    # For Ctrl-C, a terminal sends the signal to all; in a shell script, processes in the background ignore it.
    if stop == signal.SIGINT:
        os.killpg(run.pid, stop)
    else:
        run.send_signal(stop)
    assert run.wait(60) == 128 + stop
    assert processes(checkout) == []


def test_otherwise_the_tests_decide_the_exit_status(checkout: Path) -> None:
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"}
    run = subprocess.run([checkout / "tests/run", "--only=tsan"], env=environment, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == "0 passed, 1 failed"


# The tests of asan end when those of tsan have passed.
CTEST_OF_TWO_STAGES = """#!/bin/bash
if [[ $2 == build/tsan ]]; then
  echo run >>build/tsan/runs
  echo '<testsuite tests="40" failures="0"/>' >build/tsan/ctest.xml
  exit
fi
for ((beat = 0; beat < 3000; ++beat)); do
  grep -qs '^40 passed' build/logs/tsan-ahead.log && break
  sleep 0.1
done
echo '<testsuite tests="2" failures="0"/>' >build/asan/ctest.xml
"""


def test_a_stage_that_only_computes_runs_beside_the_tests_before_it(checkout: Path) -> None:
    (checkout / "bin/ctest").write_text(CTEST_OF_TWO_STAGES)
    for name in ("asan", "tsan"):
        (checkout / "build" / name).mkdir(parents=True)
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"}
    run = subprocess.run([checkout / "tests/run", "--only=asan,tsan"], env=environment, capture_output=True, text=True)
    assert "all has passed beside earlier stages" in run.stdout
    # Pytest and tests/golden/run, which asan runs after ctest, are not there.
    assert run.stdout.splitlines()[-1] == "42 passed, 2 failed"
    assert (checkout / "build/tsan/runs").read_text() == "run\n"
