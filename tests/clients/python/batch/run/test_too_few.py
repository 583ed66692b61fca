"""Runs in which no row, or too few, have results: they fail, early if they can, and name the likely mistake."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.server_process import Server

from clients.python.batch.corpus import read_errors, read_rows, write_jsonl
from clients.python.conftest import address


def run(*arguments: object, server: Server | None = None) -> subprocess.CompletedProcess[str]:
    servers = [f"--server={address(server)}"] if server is not None else []
    command = [sys.executable, "-m", "longshort.batch", *map(str, arguments), *servers]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def contents(count: int) -> list[Any]:
    return [{"content": f"document {i}", "id": str(i)} for i in range(count)]


@pytest.mark.parametrize("shard_rows", [10_000, 30])
def test_a_wrong_field_ends_the_run_after_100_rows(server: Server, tmp_path: Path, shard_rows: int) -> None:
    path, out = write_jsonl(tmp_path / "a.jsonl", contents(500)), tmp_path / "out"
    done = run("score", path, f"--out={out}", f"--shard-rows={shard_rows}", server=server)
    assert (done.returncode, done.stdout) == (6, "")
    assert "the first 100 rows all have the same error, so the run has ended" in done.stderr
    assert 'there is no "text"; the fields are: content, id (the longest text is in "content"). Give the' in done.stderr
    assert "--text" in done.stderr and "run the same command again" not in done.stderr
    assert not longshort.batch.verify(str(out)).complete
    if shard_rows > 100:
        # Nothing was written, so the folder may be used with the right field.
        done = run("score", path, f"--out={out}", "--text=content", server=server)
        assert done.returncode == 0 and len(read_rows(out)) == 500, done.stderr


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_a_small_run_without_a_result_fails_at_its_end(server: Server, tmp_path: Path, option: str) -> None:
    path, out = write_jsonl(tmp_path / "a.jsonl", contents(60)), tmp_path / "out"
    for _ in range(2):  # the second time, the run is complete at its beginning
        done = run("score", path, f"--out={out}", option, server=server)
        assert done.returncode == 6
        message = json.loads(done.stderr.splitlines()[-1])["message"] if option == "--json" else done.stderr
        assert "none of 60 rows has a result; min_success is 0.5. The most frequent error (60 rows): " in message
        if option == "--json":
            ((cause, count),) = json.loads(done.stdout)["causes"].items()
            assert count == 60 and cause.startswith('there is no "text"; the fields are: content, id')
        else:
            assert "60 rows have errors" in done.stdout
    done = run("verify", out)
    assert done.returncode == 6
    assert done.stdout.startswith(f"{out}: 1 shards with 0 rows and 60 errors; complete. The most frequent error (60 r")
    assert done.stdout.endswith(f"{out}: none of 60 rows has a result\n")
    assert run("verify", out, "--min-success=0").returncode == 0


def test_a_call_raises_with_its_summary(server: Server, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "good"}, *contents(5)])
    with pytest.raises(longshort.batch.TooFewResults, match="only 1 of 6 rows has a result") as caught:
        longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server))
    summary = caught.value.summary
    assert summary is not None and (summary.rows, summary.errors) == (1, 5)
    for min_success in (0, 0.1):
        again = longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server), min_success=min_success)
        assert (again.all_rows, again.all_errors) == (1, 5)
    with pytest.raises(ValueError, match="min_success is 1.5"):
        longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server), min_success=1.5)


def test_without_a_bound_all_rows_are_tried(server: Server, tmp_path: Path) -> None:
    path, out = write_jsonl(tmp_path / "a.jsonl", contents(150)), tmp_path / "out"
    done = run("score", path, f"--out={out}", "--min-success=0", server=server)
    assert done.returncode == 0 and "150 rows have errors" in done.stdout and len(read_errors(out)) == 150


@pytest.mark.parametrize(
    "beginning",
    [
        contents(99),  # fewer than 100
        [*contents(50), {"text": "good"}, *contents(60)],  # a good one among them
        [*contents(60), *[b"broken"] * 60],  # two reasons
    ],
)
def test_other_beginnings_end_nothing(server: Server, tmp_path: Path, beginning: list[Any]) -> None:
    rows = [*beginning, *({"text": f"row {i}"} for i in range(200))]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    summary = longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server), shard_rows=70)
    assert summary.rows + summary.errors == len(rows)


def test_a_run_goes_on_after_rows_with_results(server: Server, tmp_path: Path) -> None:
    """100 errors at the beginning of a call that resumes a run say nothing about its options."""
    path = write_jsonl(tmp_path / "a.jsonl", [*({"text": f"row {i}"} for i in range(150)), *contents(120)])
    out = tmp_path / "out"
    assert run("score", path, f"--out={out}", "--shard-rows=30", server=server).returncode == 0
    for entry in (out / "manifest").glob("shard-000000-0000000[5-9].json"):
        entry.unlink()
    summary = longshort.batch.score(str(path), str(out), server=address(server), shard_rows=30)
    assert (summary.errors, summary.all_rows) == (120, 150)
    assert list(summary.causes.values()) == [120]


def test_a_reason_of_the_server_ends_a_run_too(classifiers: Server, tmp_path: Path) -> None:
    """Documents that are longer than the model takes, with different lengths."""
    path = write_jsonl(tmp_path / "a.jsonl", ({"text": "x" * (70 + i % 7)} for i in range(300)))
    done = run("classify", path, f"--out={tmp_path / 'out'}", "--model=one", server=classifiers)
    assert done.returncode == 6 and "the first 100 rows all have the same error" in done.stderr
    done = run("classify", path, f"--out={tmp_path / 'out'}", "--model=one", "--truncate", server=classifiers)
    assert done.returncode == 0 and done.stdout.startswith("300 rows classified and 0 errors")


def test_a_column_of_nulls_ends_a_run_too(server: Server, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": pa.nulls(200, pa.string()), "body": ["x"] * 200}), tmp_path / "a.parquet")
    with pytest.raises(longshort.batch.TooFewResults, match='all have the same error.*there is no "text"'):
        longshort.batch.score(str(tmp_path / "a.parquet"), str(tmp_path / "out"), server=address(server))


def test_inputs_without_rows_are_named(server: Server, tmp_path: Path) -> None:
    path, out = tmp_path / "in/a.jsonl", tmp_path / "out"
    path.parent.mkdir()
    path.write_bytes(b"\n\n")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "in/b.parquet")
    for part in (0, 1):
        done = run("score", path.parent, f"--out={out}", "--parts=2", f"--part={part}", server=server)
        assert done.returncode == 6
        assert f"has 0 rows. There were no rows. 2 input files have no rows: {path}, {path.parent}/b" in done.stdout
        assert "the inputs have no rows, so nothing was done" in done.stderr
    done = run("score", path.parent, f"--out={out}", "--min-success=0", server=server)
    assert (done.returncode, done.stderr) == (0, "") and "There were no rows. 2 input" in done.stdout
    done = run("verify", out)
    assert done.returncode == 6 and done.stdout.endswith(f"{out}: the inputs had no rows\n")
    assert run("verify", out, "--min-success=0").returncode == 0


def test_after_inputs_without_rows_the_folder_takes_the_right_ones(server: Server, tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_bytes(b"")
    assert run("score", path, f"--out={out}", server=server).returncode == 6
    write_jsonl(path, [{"text": "x"}])
    assert run("score", path, f"--out={out}", server=server).returncode == 0
    assert run("verify", out).returncode == 0


def test_files_without_rows_among_others_are_named(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for place in range(8):
        write_jsonl(folder / f"{place}.jsonl", [{"text": "x"}] if place == 3 else [])
    # The part has no shard of its own, but the inputs have rows.
    for part, rows in ((0, 0), (1, 1)):
        done = run("score", folder, f"--out={tmp_path / 'out'}", "--parts=2", f"--part={part}", server=server)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"{rows} rows scored and 0 errors")
        assert f"7 input files have no rows: {folder}/0.jsonl, " in done.stdout
        assert f"{folder}/5.jsonl and 2 more." in done.stdout
    summary = longshort.batch.score(str(folder / "*.jsonl"), str(tmp_path / "again"), server=address(server))
    assert [Path(name).name for name in summary.without_rows] == [f"{place}.jsonl" for place in (0, 1, 2, 4, 5, 6, 7)]


NAMED = 'no input has the field "idd", which is to be carried, in its first rows; the fields are: '


@pytest.mark.parametrize(
    ("name", "content", "fields"),
    [
        ("a.jsonl", b'{"text": "x", "id": 1}\n{"text": "y", "url": "z"}\nbroken', "text, id, url. Correct --carry"),
        ("a.jsonl.gz", gzip.compress(b'{"text": "x", "id": 1}'), "text, id. Correct"),
        ("a.wet", b"", "url, date, record_id, content_type. Correct"),
        ("a.txt", b"some text", "none. Correct"),
    ],
    ids=["lines", "compressed lines", "no records", "text"],
)
def test_a_carried_field_that_no_row_has_is_refused(
    server: Server, tmp_path: Path, name: str, content: bytes, fields: str
) -> None:
    (tmp_path / name).write_bytes(content)
    options = (tmp_path / name, f"--out={tmp_path / 'out'}", "--carry=idd")
    done = run("score", *options, server=server)
    assert (done.returncode, done.stdout) == (2, "") and NAMED + fields in done.stderr
    if content:
        done = run("score", *options, "--min-success=0", server=server)
        rows = len(content.splitlines()) - 1 if name == "a.jsonl" else 1
        assert done.returncode == 0
        assert f' {rows} row{"s have" if rows > 1 else " has"} no "idd" to carry.' in done.stdout


def test_rows_without_a_carried_field_are_counted(server: Server, tmp_path: Path) -> None:
    """One file lacks the field, in another only some rows do; and a file of texts has no fields."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    write_jsonl(folder / "a.jsonl", [{"text": "x", "no": 1}] * 150)
    write_jsonl(folder / "b.jsonl", [{"text": "y", "id": place} for place in range(5)] + [{"text": "z"}, b"broken"])
    (folder / "c.txt").write_text("text")
    for expected in (157, 0):  # the second time, all shards are done before
        done = run("score", folder, f"--out={out}", "--carry=id", "--shard-rows=60", "--json", server=server)
        summary = json.loads(done.stdout)
        assert (done.returncode, summary["rows"], summary["lacking"]) == (0, expected, {"id": 152})
    assert [row["id"] for row in read_rows(out)][148:] == [None, None, *"01234", None, None]
