"""Parquet columns with values that their type does not allow, or that Python cannot represent. At most the row is an
error, and the run continues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.server_process import Server

from clients.python.batch.corpus import read_errors, read_rows, write_jsonl
from clients.python.conftest import address

# Arrow strings that are not checked for UTF-8.
BROKEN = pa.array([b"a b", b"c \xff d", b"e", None, b"\xc3"]).view(pa.string())
GOOD = pa.array(["v", "w", "x", "y", "z"])


def score(table: pa.Table, folder: Path, server: Server, output: Any, **options: Any) -> Path:
    """Scores the file, and after it another input with one row."""
    pq.write_table(table, folder / "a.parquet")
    after = write_jsonl(folder / "b.jsonl", [{"text": "good"}])
    inputs = [str(folder / "a.parquet"), str(after)]
    options = {"server": address(server), "output": output} | options
    summary = longshort.batch.score(inputs, str(folder / "out"), **options)
    assert summary.rows + summary.errors == table.num_rows + 1
    assert longshort.batch.verify(str(folder / "out")).complete
    return folder / "out"


@pytest.mark.parametrize("output", ["parquet", "jsonl"])
def test_a_text_that_is_not_utf8_is_an_error(server: Server, tmp_path: Path, output: Any) -> None:
    out = score(pa.table({"text": BROKEN, "id": GOOD}), tmp_path, server, output)
    name = str(tmp_path / "a.parquet")
    assert [(row["input"], row["ordinal"]) for row in read_rows(out)] == [
        (name, 0),
        (name, 2),
        (str(tmp_path / "b.jsonl"), 0),
    ]
    assert [(error["ordinal"], error["message"], error["id"]) for error in read_errors(out)] == [
        (1, '"text" is not UTF-8: byte 2 is 0xff', "w"),
        (3, 'there is no "text"', "y"),
        (4, '"text" is not UTF-8: byte 0 is 0xc3', "z"),
    ]
    assert {(error["input"], error["code"]) for error in read_errors(out)} == {(name, "INVALID_ARGUMENT")}


@pytest.mark.parametrize("output", ["parquet", "jsonl"])
@pytest.mark.parametrize("kind", ["string", "list", "struct", "dictionary"])
def test_a_carried_value_that_is_not_utf8_is_an_error(server: Server, tmp_path: Path, kind: str, output: Any) -> None:
    """It would break readers of the results. In the list of errors it is escaped."""
    offsets = pa.array([0, 1, 2, 3, 4, 5], pa.int32())
    column, shown = {
        "string": (BROKEN, "c \\xff d"),
        "list": (pa.ListArray.from_arrays(offsets, BROKEN), ["c \\xff d"]),
        "struct": (pa.StructArray.from_arrays([BROKEN], ["s"]), {"s": "c \\xff d"}),
        "dictionary": (BROKEN.dictionary_encode(), "c \\xff d"),
    }[kind]
    out = score(pa.table({"text": GOOD, "title": column}), tmp_path, server, output)
    assert [row["ordinal"] for row in read_rows(out)] == [0, 2, 3, 0]
    first, second = read_errors(out)
    assert first["message"] == '"title" is not UTF-8: byte 2 is 0xff' and first["title"] == shown
    assert (first["ordinal"], second["ordinal"]) == (1, 4)
    if output == "parquet":
        for path in (out / "rows").iterdir():
            assert pq.read_table(path).to_pylist()


def test_a_column_that_is_not_carried_does_not_matter(server: Server, tmp_path: Path) -> None:
    out = score(pa.table({"text": GOOD, "title": BROKEN}), tmp_path, server, "jsonl", carry=[])
    assert len(read_rows(out)) == 6 and read_errors(out) == []


def test_times_that_python_does_not_have_are_written_out(server: Server, tmp_path: Path) -> None:
    """Results have them in JSON lines only, errors always."""
    days = pa.array([0, 2**30, 2], pa.date32())
    times = pa.array([1, 2, 2**50], pa.timestamp("s"))
    table = pa.table({"text": ["a", "b", None], "day": days, "time": times})
    out = score(table, tmp_path, server, "jsonl", carry=["day", "time"])
    first, second, _ = read_rows(out)
    assert (first["day"], first["time"]) == ("1970-01-01", "1970-01-01 00:00:01")
    assert (second["day"], second["time"]) == ("<value out of range: 1073741824>", "1970-01-01 00:00:02")
    (error,) = read_errors(out)
    assert error["time"] == f"<value out of range: {2**50 * 1000}>" and error["day"] == "1970-01-03"
