"""Columns of Parquet: every encoding of strings, bytes and lists is read, unsuitable columns are refused before the
first row, and all shards of a run have one schema."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.server_process import Server
from longshort.batch.inputs.arrow_values import value_bytes
from longshort.batch.inputs.column_types import NoCommonType, common, plain

from clients.python.batch.corpus import read_errors, read_rows, write_jsonl
from clients.python.conftest import address

VIEW = pa.array(["a b", None, "c"], pa.string_view())
STRINGS = {
    "large_string": pa.array(["a b", None, "c"], pa.large_string()),
    "string_view": VIEW,
    "categories": pa.array(["a b", None, "c"]).cast(pa.dictionary(pa.int8(), pa.string())),
    "large categories": pa.array(["a b", None, "c"]).cast(pa.dictionary(pa.int64(), pa.large_string())),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["a b", None, "c"])),
    "binary": pa.array([b"a b", None, b"c"]),
    "large_binary": pa.array([b"a b", None, b"c"], pa.large_binary()),
    "binary_view": pa.array([b"a b", None, b"c"], pa.binary_view()),
    "bytes as categories": pa.array([b"a b", None, b"c"]).dictionary_encode(),
}
IDS = {
    "list": pa.array([[5, 6], None, [7, 8]], pa.list_(pa.uint16())),
    "large_list": pa.array([[5, 6], None, [7, 8]], pa.large_list(pa.int32())),
    "fixed_size_list": pa.array([[5, 6], None, [7, 8]], pa.list_(pa.int64(), 2)),
    "list_view": pa.array([[5, 6], None, [7, 8]], pa.list_view(pa.int64())),
    "large_list_view": pa.array([[5, 6], None, [7, 8]], pa.large_list_view(pa.int8())),
}


def run(tables: dict[str, Any], folder: Path, server: Server, **options: Any) -> Path:
    """Scores files of these names: tables, or lists of JSON objects."""
    for name, table in tables.items():
        if isinstance(table, pa.Table):
            pq.write_table(table, folder / name)
        else:
            write_jsonl(folder / name, table)
    inputs = [str(folder / name) for name in tables]
    options = {"server": address(server)} | options
    longshort.batch.score(inputs, str(folder / "out"), **options)
    assert longshort.batch.verify(str(folder / "out")).complete
    return folder / "out"


@pytest.mark.parametrize("name", [*STRINGS, *IDS])
def test_every_encoding_of_a_document_is_read(server: Server, tmp_path: Path, name: str) -> None:
    column = (STRINGS | IDS)[name]
    plain_column = ["a b", None, "c"] if name in STRINGS else [[5, 6], None, [7, 8]]
    out = run(
        {"a.parquet": pa.table({"text": column}), "b.parquet": pa.table({"text": plain_column})}, tmp_path, server
    )
    rows = read_rows(out)
    assert [(row["ordinal"], row["text_hash"]) for row in rows[:2]] == [
        (row["ordinal"], row["text_hash"]) for row in rows[2:]
    ]
    assert [error["message"] for error in read_errors(out)] == ['there is no "text"'] * 2


@pytest.mark.parametrize("output", ["parquet", "jsonl"])
@pytest.mark.parametrize("name", [*STRINGS, *IDS])
def test_every_encoding_is_carried(server: Server, tmp_path: Path, name: str, output: str) -> None:
    column = (STRINGS | IDS)[name]
    table = pa.table(
        {"text": ["x", "y", "z"], "column": column, "struct": pa.StructArray.from_arrays([column], ["in"])}
    )
    out = run({"a.parquet": table}, tmp_path, server, output=output)
    wanted = column.to_pylist()
    if output == "jsonl":
        wanted = [value.decode() if isinstance(value, bytes) else value for value in wanted]
    rows = read_rows(out)
    assert [row["column"] for row in rows] == wanted
    assert [row["struct"] for row in rows] == [{"in": value} for value in wanted]


def test_a_fixed_number_of_bytes_is_a_document(server: Server, tmp_path: Path) -> None:
    table = pa.table({"text": pa.array([b"ab", b"cd"], pa.binary(2)), "n": [1, 2]})
    assert [row["n"] for row in read_rows(run({"a.parquet": table}, tmp_path, server))] == [1, 2]


TWICE = pa.Table.from_arrays([pa.array(["x"])] * 3, names=["text", "a", "a"])
TEXT_TWICE = pa.Table.from_arrays([pa.array(["x"])] * 2, names=["text", "text"])
STRUCT_TWICE = pa.table({"text": ["x"], "s": pa.StructArray.from_arrays([pa.array([1])] * 2, ["in", "in"])})


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (TWICE, {}, 'b.parquet has 2 columns of the name "a": rename one, or name the columns to carry'),
        (TWICE, {"carry": ["a"]}, 'b.parquet has 2 columns of the name "a"'),
        (TEXT_TWICE, {}, 'b.parquet has 2 columns of the name "text": rename one'),
        (STRUCT_TWICE, {}, 'b.parquet: the column "s" of type struct<in: int64, in: int64> has two fields of the name'),
        (pa.table({"text": [1.5]}), {}, 'b.parquet: the column "text" has type double; it must have strings, bytes'),
        (pa.table({"text": [[1.5]]}), {}, 'b.parquet: the column "text" has type list<element: double>; it must'),
        (pa.table({"text": [{"a": "x"}]}), {}, 'b.parquet: the column "text" has type struct<a: string>; it must'),
        (pa.table({"text": [Decimal("1.5")]}), {}, 'b.parquet: the column "text" has type decimal128(2, 1); it must'),
        (pa.table({"body": ["x"]}), {}, 'b.parquet has no column "text"'),
    ],
)
def test_columns_of_every_input_are_checked_before_the_first_row(
    server: Server, tmp_path: Path, table: pa.Table, options: Any, message: str
) -> None:
    first = pa.table({"text": ["good"], "a": ["x"]})
    with pytest.raises(longshort.batch.Refused) as caught:
        run({"a.parquet": first, "b.parquet": table}, tmp_path, server, **options)
    assert message in str(caught.value)
    assert not (tmp_path / "out/rows").exists()


def test_double_names_do_not_matter_where_they_are_not_carried(server: Server, tmp_path: Path) -> None:
    assert len(read_rows(run({"a.parquet": TWICE}, tmp_path, server, carry=[]))) == 1


LANGUAGES = {
    "null then text": ([pa.nulls(1), ["en"]], pa.string(), [None, "en"]),
    "int then float": ([[3], [2.5]], pa.float64(), [3.0, 2.5]),
    "small then large int": ([pa.array([3], pa.int8()), [2**40]], pa.int64(), [3, 2**40]),
    "signed and unsigned": ([pa.array([3], pa.uint32()), pa.array([-1], pa.int8())], pa.int64(), [3, -1]),
    "text then int": ([["en"], [3], [2.5], [True]], pa.string(), ["en", "3", "2.5", "true"]),
    "list and text": ([[["a"]], ["b"]], pa.string(), ['["a"]', "b"]),
    "categories": ([pa.array(["en"]).dictionary_encode(), pa.array(["de"], pa.large_string()), VIEW[:1]],
                   pa.string(), ["en", "de", "a b"]),
    "structs": ([[{"a": 1}], [{"b": "x", "a": 2.5}]], pa.struct([("a", pa.float64()), ("b", pa.string())]),
                [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}]),
    "empty lists": ([pa.array([[]], pa.list_(pa.null())), [["x"]]], pa.list_(pa.string()), [[], ["x"]]),
    "times": ([pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("ns"))], pa.timestamp("ns"), None),
    "int, text and bytes": ([[3], ["x"], [b"y"]], pa.string(), ["3", "x", "y"]),
    "text and bytes": ([["a"], [b"\xff"]], pa.binary(), [b"a", b"\xff"]),
    "missing": ([None, ["en"], None], pa.string(), [None, "en", None]),
}  # fmt: skip


@pytest.mark.parametrize("kind", LANGUAGES)
def test_shards_of_a_run_have_one_schema(server: Server, tmp_path: Path, kind: str) -> None:
    """As the documentation reads them: all shards by one call."""
    columns, type, wanted = LANGUAGES[kind]
    tables = {}
    for place, column in enumerate(columns):
        table = pa.table({"text": ["x"]})
        tables[f"{place}.parquet"] = table if column is None else table.append_column("lang", pa.array(column))
    tables["z.jsonl"] = [{"text": "x", "lang": "it"}]
    out = run(tables, tmp_path, server)
    table = pq.read_table(out / "rows")
    schemas = {str(pq.read_schema(path)) for path in (out / "rows").iterdir()}
    assert len(schemas) == 1 and table.num_rows == len(tables) and read_errors(out) == []
    assert table.schema.field("lang").type == type
    assert table.column("fields").to_pylist() == [None] * len(columns) + ['{"lang":"it"}']
    if wanted is not None:
        assert table.column("lang").to_pylist() == [*wanted, None]


def test_a_number_that_the_common_type_does_not_have_is_null_and_counted(server: Server, tmp_path: Path) -> None:
    """A carried value never costs its document's score. 2^62 is a double, 2^53 + 1 is none."""
    whole = pa.table({"text": ["x", "y", "z", "u"], "n": [2**53 + 1, 5, 2**62, None]})
    nested = whole.append_column("s", pa.StructArray.from_arrays([whole["n"].combine_chunks()], ["in"]))
    halves = pa.table({"text": ["v"], "n": [0.5], "s": [{"in": 0.5}]})
    out = run({"a.parquet": nested, "b.parquet": halves}, tmp_path, server)
    assert [row["n"] for row in read_rows(out)] == [None, 5.0, 2.0**62, None, 0.5] and read_errors(out) == []
    assert [row["s"] for row in read_rows(out)] == [None, {"in": 5.0}, None, {"in": None}, {"in": 0.5}]
    # The same command again counts those of the shards that are done.
    inputs = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    summary = longshort.batch.score(inputs, str(out), server=address(server))
    assert summary.lost == {"n": 1, "s": 2} and summary.shards == 0
    assert '1 value is null in "n": its type there lacks them. 2 values are null in "s": its type' in str(summary)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (pa.decimal128(5, 2), pa.decimal128(8, 4), pa.decimal128(8, 4)),
        (pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal256(76, 38)),
        (pa.float16(), pa.float32(), pa.float32()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.date32(), pa.date64(), pa.date64()),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int64())),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int8(), 3), pa.list_(pa.int8())),
        (pa.uint64(), pa.int64(), None),
        (pa.timestamp("s", "UTC"), pa.timestamp("s"), None),
        (pa.bool_(), pa.int8(), None),
        (pa.binary(), pa.int8(), None),
    ],
)
def test_the_common_type_holds_both(one: pa.DataType, other: pa.DataType, wanted: pa.DataType | None) -> None:
    if wanted is None:
        with pytest.raises(NoCommonType):
            common(one, other)
    else:
        assert common(one, other) == common(other, one) == wanted


def test_sizes_are_those_of_the_decoded_values() -> None:
    words = pa.array(["abc", None, "de", "abc"]).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 4], pa.int32()), words)
    assert value_bytes(words).to_pylist() == [3, 0, 2, 3]
    assert value_bytes(lists).to_pylist() == [3, 0, 5] and value_bytes(lists.slice(1)).to_pylist() == [0, 5]
    structs = pa.StructArray.from_arrays([words, pa.array([1, 2, 3, 4], pa.int32())], ["a", "b"])
    assert value_bytes(structs.slice(2)).to_pylist() == [6, 7]
    fixed = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2))
    assert value_bytes(fixed.slice(1)).to_pylist() == [4, 4]
    maps = pa.array([[("k", "value")], None, []], pa.map_(pa.string(), pa.string()))
    assert value_bytes(maps).to_pylist() == [6, 0, 0]
    for name, column in (STRINGS | IDS).items():
        if "list" not in name:
            assert value_bytes(column).to_pylist() == [3, 0, 1], name
        assert plain(column.type) in (pa.string(), pa.binary()) or pa.types.is_integer(plain(column.type).value_type)
