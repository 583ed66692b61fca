"""JSON lines as programs write them: marks, blank lines, other encodings, and numbers beyond Python's and JSON's."""

from __future__ import annotations

import bz2
import json
import math
from pathlib import Path
from typing import Any, NoReturn

import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.server_process import Server
from longshort.batch.inputs.shards import Position, ShardLimits

from clients.python.batch.corpus import read_errors, read_rows
from clients.python.batch.inputs.test_inputs import rows_of
from clients.python.conftest import address

MARK = b"\xef\xbb\xbf"


def refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def texts(path: Path, start: Position = Position()) -> list[Any]:  # noqa: B008
    return [row.document for shard in rows_of(path, ShardLimits(), start) for row in shard.rows]


@pytest.mark.parametrize(
    "content",
    [
        MARK + b'{"text": "a"}\r\n{"text": "b"}',
        MARK + MARK + b'{"text": "a"}\n' + MARK + b'{"text": "b"}\n',  # two files that were joined
        b'\n{"text": "a"}\n\n \t\r\n' + MARK + b'\n{"text": "b"}\n\n\n',
    ],
)
def test_marks_and_blank_lines_cost_no_row(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    (shard,) = rows_of(path, ShardLimits())
    assert [(row.ordinal, row.document) for row in shard.rows] == [(0, "a"), (1, "b")]


def test_a_run_goes_on_behind_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\n{"text": "a"}\n\n\n{"text": "b"}\n\n')
    first, second = rows_of(path, ShardLimits(rows=1))
    assert [row.document for row in first.rows + second.rows] == ["a", "b"]
    assert texts(path, Position(1, 1, len(b'\n{"text": "a"}\n'))) == ["b"]
    assert texts(path, Position(2, 2, len(path.read_bytes()) - 1)) == []


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16", "UTF-16LE"),  # with a mark
        ("utf-16-le", "UTF-16LE"),
        ("utf-16-be", "UTF-16BE"),
        ("utf-32", "UTF-32LE"),
        ("utf-32-be", "UTF-32BE"),
    ],
)
def test_a_file_in_another_encoding_is_one_error(encoding: str, name: str, tmp_path: Path) -> None:
    content = "".join(f'{{"text": "row {i}"}}\n' for i in range(50)).encode(encoding)
    (tmp_path / "a.jsonl").write_bytes(content)
    (tmp_path / "a.jsonl.bz2").write_bytes(bz2.compress(content))
    for path in (tmp_path / "a.jsonl", tmp_path / "a.jsonl.bz2"):
        (shard,) = rows_of(path, ShardLimits())
        (row,) = shard.rows
        assert row.error is not None and row.error.code.name == "INVALID_ARGUMENT"
        assert row.error.message == (f"the file is {name}; it must be UTF-8: convert it by `iconv -f {name} -t UTF-8`")
        assert texts(path, Position(1, 1, path.stat().st_size)) == []


def test_a_file_whose_lines_end_with_cr_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b'{"text": "row %d"}\r' % i for i in range(50)))
    (shard,) = rows_of(path, ShardLimits())
    (row,) = shard.rows
    assert row.error is not None and row.error.message.startswith("its lines end with CR alone; they must end with LF")


NUMBERS = b"""{"text": "a", "score": NaN}
{"text": "b", "deep": {"list": [1.5, Infinity, {"x": -Infinity}]}}
{"text": "c", "id": 123456789012345678901234567890, "big": 1e400, "long": %s}
{"text": 5, "score": NaN}
""" % (b"9" * 5000)


@pytest.mark.parametrize("output", ["jsonl", "parquet"])
@pytest.mark.parametrize("carry", [None, ["score", "deep", "id", "big", "long"]])
def test_numbers_that_json_lacks_are_null_and_long_ones_stay_whole(
    server: Server, tmp_path: Path, output: Any, carry: list[str] | None
) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_bytes(NUMBERS)
    summary = longshort.batch.score(str(path), str(out), server=address(server), output=output, carry=carry)
    assert (summary.rows, summary.errors) == (3, 1)
    for written in [*(out / "rows").glob("*.jsonl"), *(out / "errors").iterdir()]:
        for line in written.read_text().splitlines():
            json.loads(line, parse_constant=refuse)
    rows, (error,) = read_rows(out), read_errors(out)
    fields = [row if carry else row["fields"] for row in rows]
    if output == "parquet":
        # A column of strings has the text of other values.
        wanted = '{"list":[1.5,null,{"x":null}]}'
        fields = fields if carry else [json.loads(one, parse_constant=refuse) for one in fields]
        assert fields[1]["deep"] == (wanted if carry else json.loads(wanted))
        assert str(fields[2]["id"]) == "123456789012345678901234567890"
    else:
        assert fields[1]["deep"] == {"list": [1.5, None, {"x": None}]}
        assert fields[2]["id"] == 123456789012345678901234567890
    assert fields[0]["score"] is None
    assert (fields[2]["big"], fields[2]["long"]) == ("1e400", "9" * 5000)
    assert (error if carry else error["fields"])["score"] is None


def test_numbers_of_tables_that_json_lacks_are_null(server: Server, tmp_path: Path) -> None:
    table = pa.table(
        {"text": ["a", "b", None], "x": [math.nan, 1.5, math.inf], "l": [[math.nan], [-math.inf, 2.0], []]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    out = tmp_path / "out"
    longshort.batch.score(str(tmp_path / "a.parquet"), str(out), server=address(server), output="jsonl")
    assert [(row["x"], row["l"]) for row in read_rows(out)] == [(None, [None]), (1.5, [None, 2.0])]
    assert read_errors(out)[0]["x"] is None
