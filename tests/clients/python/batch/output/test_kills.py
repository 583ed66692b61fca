"""Runs that are killed at any moment and resumed write the same rows, in the same order, with the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import longshort.batch
import pytest
from integration.server_process import Server

from clients.python.batch.corpus import documents, hashes, read_errors, read_rows, write_jsonl
from clients.python.batch.output import crash_runs
from clients.python.conftest import address

KILLS = 110


@pytest.mark.slow
def test_killed_runs_come_to_what_an_uninterrupted_one_does(repeatable: Server, tmp_path: Path) -> None:
    lines = [line for i, line in enumerate(documents(150)) for line in ([line, b"broken"] if i % 40 == 7 else [line])]
    path = write_jsonl(tmp_path / "a.jsonl", lines)
    longshort.batch.score(
        str(path), str(tmp_path / "whole"), server=address(repeatable), shard_rows=crash_runs.SHARD_ROWS
    )
    wanted, rows = hashes(tmp_path / "whole"), read_rows(tmp_path / "whole")
    assert len(rows) == 150 and len(read_errors(tmp_path / "whole")) == 4
    assert [row["ordinal"] for row in rows] == [i for i, line in enumerate(lines) if line != b"broken"]
    command = [
        sys.executable,
        "-m",
        "clients.python.batch.output.crash_runs",
        address(repeatable),
        str(path),
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, str(KILLS), "1"],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] == KILLS
    # Runs were killed often and seldom, so early and late.
    assert len(report["ended"]) > 5 and max(run["kills"] for run in report["ended"]) > 2
    for run in report["ended"]:
        assert hashes(run["out"]) == wanted
        assert read_rows(run["out"]) == rows
        assert not [path for path in (Path(run["out"]) / ".unfinished").iterdir() if path.name != "lock"]
