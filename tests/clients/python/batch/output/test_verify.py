"""Files that were lost, changed or added after a run: verify reports them, and the same command repairs the run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import longshort.batch
import pytest
from integration.server_process import Server

from clients.python.batch.corpus import documents, hashes, read_rows, write_jsonl
from clients.python.conftest import address

ENTRY = "manifest/shard-000000-0000000{}.json"
FIRST, MIDDLE, LAST = (ENTRY.format(shard) for shard in (0, 2, 4))


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """Inputs of 45 and 7 rows, which are five shards and one."""
    rows = [*documents(44), b"broken"]
    return [str(write_jsonl(tmp_path / "a.jsonl", rows)), str(write_jsonl(tmp_path / "b.jsonl", documents(7)))]


def score(inputs: list[str], out: Path, server: Server, part: int = 0, parts: int = 1) -> longshort.batch.Summary:
    return longshort.batch.score(inputs, str(out), server=address(server), shard_rows=10, part=part, parts=parts)


@pytest.fixture
def out(inputs: list[str], tmp_path: Path, repeatable: Server) -> Path:
    score(inputs, tmp_path / "out", repeatable)
    return tmp_path / "out"


def remove(out: Path, *names: str) -> None:
    for name in names:
        for path in out.glob(name):
            path.unlink()


def write(out: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    (out / name).write_bytes(change((out / name).read_bytes()))


def copy(out: Path, old: str, new: str) -> None:
    shutil.copy(out / old, out / new)


# What happens, what verify says of it, and how many shards the same command does again.
LOSSES: dict[str, tuple[Callable[[Path], None], str, int]] = {
    "the first entry": (
        lambda out: remove(out, FIRST),
        "a.jsonl: 1 of 5 shards have no entry; the first of them is shard 0",
        1,
    ),
    "an entry": (
        lambda out: remove(out, MIDDLE),
        "a.jsonl: 1 of 5 shards have no entry; the first of them is shard 2",
        1,
    ),
    "the last entry": (
        lambda out: remove(out, LAST),
        "a.jsonl: 1 of 5 shards have no entry; the first of them is shard 4",
        1,
    ),
    "the last shards": (
        lambda out: remove(out, LAST, ENTRY.format(3), "*/000000-0000000[34]*"),
        "2 of 5 shards have no entry",
        2,
    ),
    "an input's only entry": (
        lambda out: remove(out, "manifest/shard-000001-*"),
        "b.jsonl: 1 of 1 shards have no entry",
        1,
    ),
    "a garbled entry": (
        lambda out: write(out, MIDDLE, lambda entry: entry.replace(b"20", b"21", 1)),
        "2.json is damaged",
        1,
    ),
    "an entry of zeros": (lambda out: write(out, LAST, lambda entry: bytes(len(entry))), f"{LAST} is damaged", 1),
    "another shard's entry": (lambda out: copy(out, FIRST, MIDDLE), f"{MIDDLE} is damaged", 1),
    "all entries": (lambda out: remove(out, "manifest/shard-*"), "a.jsonl: 5 of 5 shards have no entry", 6),
    "everything": (
        lambda out: remove(out, "manifest/shard-*", "rows/*", "errors/*"),
        "a.jsonl: 5 of 5 shards have no entry",
        6,
    ),
    "the marker": (lambda out: remove(out, "manifest/complete-*"), "; not complete: run the same command again", 0),
    "a marker of no extent": (
        lambda out: write(out, "manifest/complete-0-of-1.json", lambda _: b'{"index":0,"count":1}'),
        "complete-0-of-1.json is damaged",
        0,
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_reported_and_repaired(loss: str, inputs: list[str], out: Path, repeatable: Server) -> None:
    assert longshort.batch.verify(str(out)).complete
    wanted, rows = hashes(out), read_rows(out)
    damage, message, shards = LOSSES[loss]
    damage(out)
    found = longshort.batch.verify(str(out))
    assert not found.complete and message in str(found), found
    assert score(inputs, out, repeatable).shards == shards
    found = longshort.batch.verify(str(out))
    assert found.complete and (found.shards, found.rows, found.errors) == (6, 51, 1), found
    assert hashes(out) == wanted and read_rows(out) == rows


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows/000000-00000001.parquet", "rows/copy.parquet"),
        ("rows/000000-00000001.parquet", "rows/000000-00000005.parquet"),
        ("rows/000000-00000001.parquet", "rows/000002-00000000.parquet"),
        ("rows/000000-00000001.parquet", "rows/000000-00000001.jsonl"),
        ("errors/000000-00000004.jsonl", "errors/000000-00000003.jsonl"),
    ],
)
def test_a_file_that_no_entry_names_is_reported(
    old: str, new: str, inputs: list[str], out: Path, repeatable: Server
) -> None:
    copy(out, old, new)
    found = longshort.batch.verify(str(out))
    assert not found.complete
    assert found.wrong == (f"{new} is not in the manifest, and readers of the folder would read it: move it away",)
    with pytest.raises(longshort.batch.BatchError, match=f"{new}.* would read it: move it away"):
        score(inputs, out, repeatable)
    (out / new).unlink()
    score(inputs, out, repeatable)
    assert longshort.batch.verify(str(out)).complete


def test_hidden_files_are_nobodys_business(inputs: list[str], out: Path, repeatable: Server) -> None:
    for name in ("rows/.nfs0001", "rows/_SUCCESS"):
        (out / name).write_bytes(b"x")
    assert longshort.batch.verify(str(out)).complete
    assert score(inputs, out, repeatable).shards == 0


def test_a_killed_runs_files_are_removed_if_the_shard_does_not_need_them(
    inputs: list[str], out: Path, repeatable: Server
) -> None:
    """A run that was killed before its entry left errors of a shard. Done again, the shard has no errors."""
    wanted = hashes(out)
    copy(out, "errors/000000-00000004.jsonl", "errors/000000-00000002.jsonl")
    remove(out, MIDDLE)
    assert score(inputs, out, repeatable).shards == 1
    assert hashes(out) == wanted and longshort.batch.verify(str(out)).complete


def test_each_part_is_known_by_its_own_mark(inputs: list[str], tmp_path: Path, repeatable: Server) -> None:
    out = tmp_path / "parts"
    score(inputs, out, repeatable, part=1, parts=2)
    # Of part 0 nothing is missed, since it is not done.
    assert longshort.batch.verify(str(out)).wrong == ()
    remove(out, ENTRY.format(1))
    (wrong,) = longshort.batch.verify(str(out)).wrong
    assert wrong == f"{inputs[0]}: 1 of 2 shards have no entry; the first of them is shard 1"
    score(inputs, out, repeatable, part=1, parts=2)
    score(inputs, out, repeatable, part=0, parts=2)
    assert longshort.batch.verify(str(out)).complete
    remove(out, ENTRY.format(1))
    assert not longshort.batch.verify(str(out)).complete


def test_a_changed_list_of_inputs_is_reported(inputs: list[str], out: Path, repeatable: Server) -> None:
    """The same command writes it again."""
    changes: list[Callable[[bytes], bytes]] = [
        lambda inputs: inputs.splitlines(True)[0],
        lambda inputs: inputs[:-5],
        lambda inputs: inputs.replace(b'"bytes":', b'"bytes":1', 1),
        lambda _: b"",
    ]
    for change in changes:
        write(out, "manifest/inputs.jsonl", change)
        found = longshort.batch.verify(str(out))
        assert not found.complete and "manifest/inputs.jsonl is damaged: run the same command again" in str(found)
        assert score(inputs, out, repeatable).shards == 0
        assert longshort.batch.verify(str(out)).complete


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run[: len(run) // 2],
        lambda run: bytes(len(run)),
        lambda run: b"",
        lambda run: b"{}",
        lambda run: run.replace(b'"shard_rows":10,', b'"shard_rows":11,'),
        lambda run: run.replace(b'"score"', b'"scorf"'),
    ],
)
def test_a_damaged_description_of_the_run_is_reported(
    change: Callable[[bytes], bytes], inputs: list[str], out: Path, repeatable: Server
) -> None:
    write(out, "manifest/run.json", change)
    found = longshort.batch.verify(str(out))
    assert not found.complete
    assert str(found).startswith("6 shards with 51 rows and 1 errors; not complete. The")
    assert found.wrong == ("manifest/run.json is damaged: start again with another folder",)
    with pytest.raises(longshort.batch.Refused, match="run.json is damaged: start again with another folder"):
        score(inputs, out, repeatable)


def test_a_folder_without_a_run_is_no_run_to_resume(tmp_path: Path) -> None:
    found = longshort.batch.verify(str(tmp_path))
    assert str(found) == f"0 shards with 0 rows and 0 errors; not complete.\n{tmp_path} holds no run"
