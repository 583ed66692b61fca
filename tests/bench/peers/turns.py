"""Programs that measure in turns, a batch each: what slows the machine for a while slows all of them."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The threads of a program spin for some milliseconds after a batch, on the CPUs of the next program.
REST_SECONDS = 0.02
# A virtual processor whose other half works for others takes two to four times as long.
SLOW_PROBE = 1.3


class TurnError(Exception):
    """A program gave no time; the message says why."""


class Turns:
    """A process that measures one batch for each line that it gets, and at the end prints one JSON object.

    It is killed `seconds` after its start.
    """

    def __init__(self, command: list[str], log: Path, seconds: float) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._timer = threading.Timer(seconds, self._process.kill)
        self._timer.start()
        try:
            while self._answer() != "ready":  # libraries print lines, too
                pass
        except BaseException:
            self.stop()
            raise

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = (self._log.read_text().strip() or "nothing").splitlines()[-1]
            raise TurnError(f"ended with {self._process.wait()}: {said}")
        return line.strip()

    def _answer(self) -> str:
        """A line, unless it is the last one, which came too early."""
        line = self._line()
        if line.startswith("{"):
            raise TurnError(json.loads(line).get("error", line))
        return line

    def take(self) -> float:
        """The seconds of a batch. Errors: TurnError."""
        assert self._process.stdin is not None
        time.sleep(REST_SECONDS)
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        return float(self._answer())

    def end(self) -> dict[str, Any]:
        """Errors: TurnError."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        found = json.loads(self._line())
        if "error" in found:
            raise TurnError(found["error"])
        return found

    def stop(self) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.wait()


def in_turns(turns: Mapping[str, Turns], rounds: int) -> dict[str, list[float]]:
    """The seconds of each program in each round. Errors: TurnError."""
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, one in turns.items():
            seconds[name].append(one.take())
    return seconds


def quiet_rounds(probes: list[float]) -> list[bool]:
    """Whether the machine had its speed in each round: the probe took hardly longer than in the fastest one."""
    return [seconds < SLOW_PROBE * min(probes) for seconds in probes]
