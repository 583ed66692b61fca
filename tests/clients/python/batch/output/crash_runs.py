"""A program that begins runs, kills them by SIGKILL at random, and goes on with them, until enough were killed.

    crash_runs.py SERVER INPUT FOLDER KILLS SEED

Each run is a fork of this process, which has imported all and started nothing: so a hundred take seconds. Half of the
kills come at a random time, and half before a random one of the system calls by which files are written. Prints JSON:
the folders of runs that came to their end, and at how many kills each was.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import longshort.batch

SHARD_ROWS = 16
CALLS = ("open", "write", "fsync", "replace", "mkdir")


def count_calls(before: Callable[[int], None]) -> None:
    """Has `before` hear of each such call, with how many there were."""
    made = 0

    def counted(call: Any) -> Any:
        def count(*arguments: Any, **options: Any) -> Any:
            nonlocal made
            before(made)
            made += 1
            return call(*arguments, **options)

        return count

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def start(server: str, path: str, out: str, dies_before: int | None) -> int:
    """A run in a process of its own; its id."""
    child = os.fork()
    if child == 0:
        if dies_before is not None:
            count_calls(lambda made: os.kill(os.getpid(), signal.SIGKILL) if made == dies_before else None)
        longshort.batch.score(path, out, server=server, shard_rows=SHARD_ROWS)
        os._exit(0)
    return child


def main(server: str, path: str, folder: str, wanted: int, seed: int) -> None:
    draw = random.Random(seed)
    begun = time.monotonic()
    os.waitpid(start(server, path, f"{folder}/timed", None), 0)
    whole = time.monotonic() - begun
    kills, ended = 0, []
    since, run = 0, 0
    while kills < wanted:
        # A shard costs 12 such calls, and the beginning of a run about 20.
        at_call = draw.randrange(0, 12 * 8) if draw.random() < 0.5 else None
        child = start(server, path, f"{folder}/run{run}", at_call)
        if at_call is None:
            time.sleep(draw.uniform(0, whole))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            kills, since = kills + 1, since + 1
        elif os.waitstatus_to_exitcode(status) == 0:
            ended.append({"out": f"{folder}/run{run}", "kills": since})
            run, since = run + 1, 0
        else:
            raise SystemExit(f"a run ended with {status}")
    os.waitpid(start(server, path, f"{folder}/run{run}", None), 0)
    ended.append({"out": f"{folder}/run{run}", "kills": since})
    print(json.dumps({"kills": kills, "ended": ended, "seconds": time.monotonic() - begun, "whole": whole}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
