"""Files that the manifest lists survive a power cut after any call, although a disk loses what was not fsynced."""

from __future__ import annotations

import hashlib
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import longshort.batch
import pytest
from integration.server_process import Server
from longshort.batch.output import folders
from longshort.batch.output.verifying import entries_of

from clients.python.batch.corpus import documents, hashes, write_jsonl
from clients.python.batch.output.power_loss import Disk
from clients.python.conftest import address

SHARD_ROWS = 12


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", [*documents(40), b"broken"])


def score(corpus: Path, out: Path, server: Server) -> None:
    longshort.batch.score(str(corpus), str(out), server=address(server), shard_rows=SHARD_ROWS)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Records writes to `out`, which exists before."""
    (tmp_path / "out").mkdir()
    disk = Disk(tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(folders, "os", disk)
        yield disk


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def broken_promises(out: Path) -> list[str]:
    """Files that the manifest lists, but that are damaged."""
    return [
        file.name
        for entry in entries_of(str(out))
        for file in entry.files
        if not (out / file.name).is_file() or hashlib.sha256((out / file.name).read_bytes()).hexdigest() != file.sha256
    ]


def test_what_is_listed_survives_a_power_cut_at_any_time(
    corpus: Path, repeatable: Server, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score(corpus, tmp_path / "out", repeatable)
    wanted = hashes(tmp_path / "out")
    monkeypatch.setattr(folders, "os", os)
    draw = random.Random(1)
    listed = set()
    for calls in range(len(disk.record) + 1):
        for attempt in range(4):
            left = tmp_path / f"left-{calls}-{attempt}"
            disk.left_behind(calls, draw, left)
            assert broken_promises(left) == [], f"after call {calls}"
            listed.add(len(entries_of(str(left))))
    assert listed == {0, 1, 2, 3, 4}
    # After the last call nothing is lost.
    assert hashes(left) == wanted and len(entries_of(str(left))) == 4
    # Any of them can be resumed.
    for calls in range(0, len(disk.record), 6):
        left = tmp_path / f"left-{calls}-0"
        score(corpus, left, repeatable)
        assert hashes(left) == wanted, f"after call {calls}"


@pytest.mark.parametrize("forgotten", ["folders", "files"])
def test_the_disk_would_show_what_is_not_fsynced(
    corpus: Path, repeatable: Server, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    """Without fsync of files, or of folders, the test above fails."""
    if forgotten == "folders":
        monkeypatch.setattr(folders, "_sync_folder", lambda _: None)
    else:
        sync = disk.fsync
        monkeypatch.setattr(disk, "fsync", lambda descriptor: sync(descriptor) if is_folder(descriptor) else None)
    score(corpus, tmp_path / "out", repeatable)
    draw = random.Random(1)
    broken = []
    for attempt in range(200):
        left = tmp_path / f"left-{attempt}"
        disk.left_behind(len(disk.record), draw, left)
        broken += broken_promises(left)
    assert broken
