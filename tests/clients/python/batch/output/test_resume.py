"""Resuming a run: which changes are refused, which shards count as done, and folders of object stores."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.server_process import Server
from longshort.batch.output.folders import open_folder
from longshort.batch.output.verifying import entries_of

from clients.python.batch.corpus import documents, hashes, read_rows, write_jsonl
from clients.python.conftest import address

ROWS = {"shard_rows": 10}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", documents(45))


@pytest.fixture
def out(corpus: Path, tmp_path: Path, repeatable: Server) -> Path:
    """The output folder of a finished run."""
    longshort.batch.score(str(corpus), str(tmp_path / "out"), server=address(repeatable), **ROWS)
    return tmp_path / "out"


def go_on(corpus: Path, out: Path, server: Server, **options: Any) -> longshort.batch.Summary:
    return longshort.batch.score(str(corpus), str(out), server=address(server), **(ROWS | options))


def test_what_is_done_is_not_done_again(corpus: Path, out: Path, repeatable: Server) -> None:
    before = repeatable.metric("longshort_prompt_tokens_total")
    summary = go_on(corpus, out, repeatable)
    assert (summary.rows, summary.all_rows, summary.shards_before) == (0, 45, 5)
    assert repeatable.metric("longshort_prompt_tokens_total") == before


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"shard_rows": 11}, "options.shard_rows was 10 and is 11"),
        ({"shard_bytes": 99}, "options.shard_bytes was 2097152 and is 99"),
        ({"carry": ["id"]}, 'options.carry was null and is ["id"]'),
        ({"output": "jsonl"}, 'options.output was "parquet" and is "jsonl"'),
        ({"region_tokens": 5}, "options.region_tokens was 0 and is 5"),
        ({"text": "id"}, 'options.text was "text" and is "id"'),
    ],
)
def test_other_options_are_refused_by_name(
    corpus: Path, out: Path, server: Server, options: Any, difference: str
) -> None:
    with pytest.raises(longshort.batch.Refused) as caught:
        go_on(corpus, out, server, **options)
    assert difference in str(caught.value) and str(caught.value).count(" and is ") == 1


def test_what_changes_no_result_may_change(corpus: Path, out: Path, server: Server) -> None:
    summary = go_on(corpus, out, server, priority="high", max_errors=3, parts=7, part=2, client_id="me", timeout=5.0)
    assert summary.rows == 0


@pytest.mark.parametrize("change", ["longer", "same length", "name", "more"])
def test_other_inputs_are_refused_by_name(corpus: Path, out: Path, server: Server, change: str) -> None:
    content, given = corpus.read_bytes(), [str(corpus)]
    if change == "longer":
        corpus.write_bytes(content + b"{}\n")
        wanted = f"the input {corpus} has changed: it had {len(content)} bytes and has {len(content) + 3}"
    elif change == "same length":
        corpus.write_bytes(content.replace(b"document 44", b"document 55"))
        wanted = f"the input {corpus} has changed: its first or last 64 KiB differ"
    elif change == "name":
        given = [str(shutil.copy(corpus, corpus.with_name("b.jsonl")))]
        wanted = f"an input was {corpus} and is {corpus.with_name('b.jsonl')}"
    else:
        given += [str(shutil.copy(corpus, corpus.with_name("b.jsonl")))]
        wanted = "the number of input files was 1 and is 2"
    with pytest.raises(longshort.batch.Refused) as caught:
        longshort.batch.score(given, str(out), server=address(server), **ROWS)
    assert wanted in str(caught.value)


def test_another_command_is_refused(out: Path, corpus: Path, classifiers: Server) -> None:
    with pytest.raises(longshort.batch.Refused, match='command was "score" and is "classify"'):
        longshort.batch.classify(str(corpus), str(out), server=address(classifiers), model="one", **ROWS)


def test_an_input_that_changes_while_it_is_read_ends_the_run(
    corpus: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longshort.batch.inputs import reading

    read = 0
    check = reading.check_unchanged

    def change_then_check(file: Any) -> None:
        nonlocal read
        read += 1
        if read == 3:
            corpus.write_bytes(corpus.read_bytes() + b"{}\n")
        check(file)

    monkeypatch.setattr(reading, "check_unchanged", change_then_check)
    with pytest.raises(longshort.batch.Refused, match=f"the input {corpus} has changed while the run read it"):
        go_on(corpus, tmp_path / "new", server)


@pytest.mark.parametrize("damage", ["file gone", "file short", "entry cut", "entry changed", "entry gone"])
def test_a_shard_that_is_not_whole_is_done_again(corpus: Path, out: Path, repeatable: Server, damage: str) -> None:
    wanted = hashes(out)
    rows, entry = out / "rows/000000-00000002.parquet", out / "manifest/shard-000000-00000002.json"
    if damage == "file gone":
        rows.unlink()
    elif damage == "file short":
        rows.write_bytes(rows.read_bytes()[:-1])
    elif damage == "entry cut":
        entry.write_bytes(entry.read_bytes()[:-20])
    elif damage == "entry changed":
        entry.write_bytes(entry.read_bytes().replace(b'"first_row":20', b'"first_row":21'))
    else:
        entry.unlink()
    summary = go_on(corpus, out, repeatable)
    assert (summary.shards, summary.shards_before, summary.rows) == (1, 4, 10)
    assert hashes(out) == wanted


def test_an_entry_names_the_inputs_of_its_shard(corpus: Path, out: Path) -> None:
    content = corpus.read_bytes()
    for entry in entries_of(str(out)):
        lines = content[entry.begin : entry.end].splitlines()
        assert len(lines) == entry.rows == (10 if entry.shard < 4 else 5)
        assert json.loads(lines[0])["text"].startswith(f"document {entry.first_row} ")
        assert entry.scored == entry.rows and entry.tokens > 0 and entry.input == str(corpus)
    assert entry.end == len(content)


def test_what_was_written_can_be_verified(corpus: Path, out: Path, server: Server) -> None:
    found = longshort.batch.verify(str(out))
    assert (found.shards, found.rows, found.errors, found.complete, found.wrong) == (5, 45, 0, True, ())
    changed, missing = out / "rows/000000-00000001.parquet", out / "rows/000000-00000003.parquet"
    content = bytearray(changed.read_bytes())
    content[100] ^= 1
    changed.write_bytes(content)
    missing.unlink()
    found = longshort.batch.verify(str(out))
    assert not found.complete
    assert found.wrong == (
        f"rows/{changed.name} is damaged: remove it, and run the same command again",
        f"rows/{missing.name} is missing",
    )
    assert "not complete" in str(found) and str(found).endswith("is missing")


def test_a_run_is_complete_when_all_its_parts_are(corpus: Path, tmp_path: Path, server: Server) -> None:
    out = tmp_path / "parts"
    for part in (1, 0):
        assert not longshort.batch.verify(str(out)).complete
        go_on(corpus, out, server, part=part, parts=2)
    assert longshort.batch.verify(str(out)).complete


def test_a_folder_with_something_else_is_refused(corpus: Path, tmp_path: Path, server: Server) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("x")
    with pytest.raises(longshort.batch.Refused, match="is not empty and holds no run"):
        go_on(corpus, tmp_path / "mine", server)
    assert [path.name for path in (tmp_path / "mine").iterdir() if path.name != ".unfinished"] == ["letter.txt"]


def test_a_folder_has_one_run_at_a_time_for_each_part(out: Path, corpus: Path, server: Server) -> None:
    folder = open_folder(str(out))
    with folder.lock(0, 1), pytest.raises(longshort.batch.InUse, match="is in use by another run"):
        go_on(corpus, out, server)
    with folder.lock(1, 3):
        with pytest.raises(longshort.batch.InUse, match="is in use by another run"):
            go_on(corpus, out, server)
        with pytest.raises(longshort.batch.InUse, match="part 1 of 3 of .* is in use by another run"):
            go_on(corpus, out, server, part=1, parts=3)
        go_on(corpus, out, server, part=2, parts=3)
    go_on(corpus, out, server)


def test_what_killed_parts_have_left_is_swept_by_their_next_run(out: Path, corpus: Path, server: Server) -> None:
    left = [out / ".unfinished" / name for name in ("1-of-3-77-rows-x", "2-of-3-77-rows-x", "77-ab-rows-x")]
    for path in left:
        path.write_bytes(b"x")
    go_on(corpus, out, server, part=1, parts=3)
    assert [path.exists() for path in left] == [False, True, True]
    go_on(corpus, out, server)
    assert [path.exists() for path in left] == [False, False, False]


def test_parts_that_begin_at_once_begin_one_run(corpus: Path, tmp_path: Path, server: Server) -> None:
    with ThreadPoolExecutor(8) as threads:
        runs = [
            threads.submit(go_on, corpus, tmp_path / "parts", server, part=part, parts=8, shard_rows=2)
            for part in range(8)
        ]
        assert sum(run.result(60).rows for run in runs) == 45
    assert [row["ordinal"] for row in read_rows(tmp_path / "parts")] == list(range(45))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_parts_come_to_the_same_rows_as_one_machine(
    corpus: Path, out: Path, server: Server, tmp_path: Path, kind: str
) -> None:
    given = corpus
    if kind == "parquet":
        given = tmp_path / "a.parquet"
        pq.write_table(pa.Table.from_pylist(documents(45)), given, row_group_size=13)
    done = []
    for part in (2, 0, 1):
        done.append(go_on(given, tmp_path / kind, server, part=part, parts=3))
    assert sum(summary.rows for summary in done) == 45 and all(summary.rows for summary in done)
    found = read_rows(tmp_path / kind)
    assert [(row["ordinal"], row["text_hash"]) for row in found] == [
        (row["ordinal"], row["text_hash"]) for row in read_rows(out)
    ]
    # A run can be resumed with another number of parts, too.
    (tmp_path / kind / "manifest/shard-000000-00000001.json").unlink()
    assert [go_on(given, tmp_path / kind, server, part=part, parts=2).rows for part in (0, 1)] == [0, 10]


def test_object_stores_hold_inputs_and_results(corpus: Path, out: Path, server: Server) -> None:
    """In fsspec's memory file system, a put is atomic, and there is no rename."""
    store = fsspec.filesystem("memory")
    store.pipe_file("/in/a.jsonl", corpus.read_bytes())
    try:
        for repeated in range(2):
            summary = longshort.batch.score("memory://in/*.jsonl", "memory://out", server=address(server), **ROWS)
            assert (summary.rows, summary.all_rows) == ((0, 45) if repeated else (45, 45))
        names = [file.name for entry in entries_of("memory://out") for file in entry.files]
        assert names == sorted(name for name in hashes(out))
        table = pa.concat_tables(pq.read_table(store.open(f"/out/{name}")) for name in names)
        assert table.column("input").to_pylist() == ["memory:///in/a.jsonl"] * 45
        assert table.column("text_hash").to_pylist() == [row["text_hash"] for row in read_rows(out)]
        # What is not listed does not count.
        store.rm("/out/manifest/shard-000000-00000001.json")
        again = longshort.batch.score("memory://in/*.jsonl", "memory://out", server=address(server), **ROWS)
        assert (again.rows, again.all_rows) == (10, 45)
    finally:
        store.rm("/in", recursive=True)
        store.rm("/out", recursive=True)
