"""Memory stays below --memory, whatever the inputs hold, and does not grow with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from integration.server_process import Server
from longshort.batch.inputs.memory import DEFAULT_MEMORY

from clients.python.batch.corpus import read_errors, read_rows, write_jsonl
from clients.python.conftest import address

MEASURED = """
import re, sys
import longshort.batch
summary = longshort.batch.classify(sys.argv[1], sys.argv[2], server=sys.argv[3], model="one", truncate=True)
assert summary.errors == 0, summary
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_memory_does_not_grow_with_the_input(classifiers: Server, tmp_path: Path, kind: str) -> None:
    """Inputs of 20 and of 200 documents of 1 MiB, in row groups of 8 documents."""
    peaks = []
    for count in (20, 200):
        texts = [f"{i} ".ljust(1 << 20, "x") for i in range(count)]
        path = tmp_path / f"{count}.{kind}"
        if kind == "jsonl":
            write_jsonl(path, ({"text": text} for text in texts))
        else:
            pq.write_table(pa.table({"text": texts}), path, row_group_size=8, compression="none", use_dictionary=False)
        del texts
        command = [sys.executable, "-c", MEASURED, path, tmp_path / f"out{count}", address(classifiers)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) << 10)
    print(f"{peaks[0] >> 20} MiB, then {peaks[1] >> 20} MiB")
    assert peaks[1] - peaks[0] < 60 << 20


def peak_of(path: Path, out: Path, server: Server, carry: list[str] | None) -> int:
    """The most bytes of memory that a run's process has had."""
    code = f"""
import re, sys
import longshort.batch
longshort.batch.score(sys.argv[1], sys.argv[2], server=sys.argv[3], carry={carry})
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""
    command = [sys.executable, "-c", code, path, out, address(server)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout) << 10


def repeated_string(path: Path) -> list[str] | None:
    """A file of less than 1 KB with 1 GB of carried text."""
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"text": ["a"] * 1000, "blob": words}), path, compression="zstd")
    assert path.stat().st_size < 2000
    return None


def images(path: Path) -> list[str] | None:
    """The usual set of images, in row groups of 100, of 250 KB each."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    with pq.ParquetWriter(path, pa.schema([("text", pa.string()), ("image", kind)]), compression="none") as writer:
        for _ in range(3):
            rows = [{"bytes": os.urandom(250_000), "path": "p.jpg"} for _ in range(100)]
            writer.write_table(pa.table({"text": ["caption"] * 100, "image": pa.array(rows, kind)}))
    return ["image"]


def long_after_short(path: Path) -> list[str] | None:
    """Rows that become 100,000 times as long within a row group."""
    words = ["short"] * 2000 + ["x" * 5_000_000] * 40
    table = pa.table({"text": ["a"] * len(words), "blob": words})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_batch_size=1)
    return None


def nested_lists(path: Path) -> list[str] | None:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), pa.array(["x" * 100_000]))
    lists = pa.ListArray.from_arrays(pa.array(range(0, 4001, 20), pa.int32()), words)
    pq.write_table(pa.table({"text": ["a"] * 200, "blob": lists}), path, compression="zstd")
    return None


@pytest.mark.parametrize("make", [repeated_string, images, long_after_short, nested_lists])
def test_carried_columns_do_not_take_more_than_the_memory(server: Server, tmp_path: Path, make: Any) -> None:
    carry = make(tmp_path / "a.parquet")
    peak = peak_of(tmp_path / "a.parquet", tmp_path / "out", server, carry)
    print(f"{make.__name__}: {peak >> 20} MiB")
    assert peak < DEFAULT_MEMORY
    column = "image" if carry else "blob"
    rows = pq.read_table(tmp_path / "out/rows", columns=["ordinal"]).num_rows
    assert rows == pq.ParquetFile(tmp_path / "a.parquet").metadata.num_rows
    # A shard ends with the row with which it has 2 MiB of carried values. pyarrow counts their offsets, too.
    shards = sorted((tmp_path / "out/rows").iterdir())
    assert len(shards) > 20
    for shard in shards:
        values = pq.read_table(shard, columns=[column])
        assert values.slice(0, values.num_rows - 1).nbytes < (2 << 20) + 8 * values.num_rows
        assert shard == shards[-1] or values.nbytes >= 2 << 20


def test_large_columns_of_bytes_are_carried_only_if_they_are_named(server: Server, tmp_path: Path) -> None:
    image = pa.array([{"bytes": os.urandom(3000), "path": str(place)} for place in range(8)])
    table = pa.table({"text": ["x"] * 8, "image": image, "id": [b"id"] * 8})
    pq.write_table(table, tmp_path / "a.parquet")
    for carry, names in ((None, {"id"}), (["image"], {"image"})):
        out = tmp_path / f"out{carry}"
        summary = longshort.batch.score(str(tmp_path / "a.parquet"), str(out), server=address(server), carry=carry)
        assert names == {"image", "id"} & set(read_rows(out)[0])
        assert ('not carried, since such large columns must be named (--carry): "image" (3' in str(summary)) == (
            not carry
        )
    assert read_rows(out)[7]["image"] == image[7].as_py()


def test_a_picture_of_many_rows_is_large_in_each(server: Server, tmp_path: Path) -> None:
    """A dictionary of one picture of 250 KB: 250 bytes a row in the file, and 250 MB in the results."""
    picture = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array([os.urandom(250_000)]))
    ids = pa.array([b"id"] * 1000)
    pq.write_table(pa.table({"text": ["x"] * 1000, "image": picture, "id": ids}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 300_000
    summary = longshort.batch.score(str(tmp_path / "a.parquet"), str(tmp_path / "out"), server=address(server))
    assert dict(summary.not_carried) == {"image": "250004 bytes a value"}
    assert "id" in read_rows(tmp_path / "out")[0]


def test_pages_that_do_not_fit_are_found_before_the_first_row(server: Server, tmp_path: Path) -> None:
    """pyarrow can only read whole pages. This one has 40 MB in 2 KB."""
    words = pa.array(["x" * 10_000_000 + str(place) for place in range(4)])
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a"] * 4, "blob": words}), path, compression="zstd")
    with pytest.raises(longshort.batch.Refused) as caught:
        longshort.batch.score(path, str(tmp_path / "out"), server=address(server), carry=["blob"])
    assert 'a.parquet: the column "blob" has a page of 40000' in str(caught.value)
    assert "at most 33554432 are read with this --memory. Give at least --memory=611MB" in str(caught.value)
    with pytest.raises(longshort.batch.Refused, match='the column "blob" has a page'):
        longshort.batch.score(path, str(tmp_path / "out"), server=address(server), text="blob")
    summary = longshort.batch.score(path, str(tmp_path / "out"), server=address(server))
    assert dict(summary.not_carried) == {"blob": "a page of 40000020 bytes"} and summary.rows == 4
    large = longshort.batch.score(
        path, str(tmp_path / "large"), server=address(server), carry=["blob"], memory=611 << 20, shard_bytes=1000
    )
    assert (large.rows, large.shards) == (4, 4)


def test_a_row_that_does_not_fit_is_an_error(server: Server, tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b"], "blob": ["x", "x" * 9_000_000]})
    pq.write_table(table, tmp_path / "a.parquet")
    path, out = str(tmp_path / "a.parquet"), str(tmp_path / "out")
    longshort.batch.score(path, out, server=address(server), memory=256 << 20)
    (error,) = read_errors(out)
    assert error["message"] == "the row has 9000001 bytes; at most 8388608 are read: give more --memory"
    assert [row["ordinal"] for row in read_rows(out)] == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": 1 << 20}, "memory is 1048576 bytes; it must be at least 268435456"),
        ({"shard_bytes": 1 << 30}, "shard_bytes is 1073741824; with memory=536870912 they must be at most"),
        ({"shard_rows": 10**6}, "shard_rows is 1000000 and shard_bytes is 2097152; with memory=536870912"),
    ],
)
def test_shards_that_do_not_fit_are_refused(tmp_path: Path, options: Any, message: str) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"text": "x"}])
    with pytest.raises(ValueError, match=message):
        longshort.batch.score(str(tmp_path / "a.jsonl"), str(tmp_path / "out"), server="127.0.0.1:1", **options)
