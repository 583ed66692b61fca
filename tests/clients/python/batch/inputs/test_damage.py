"""Damaged and truncated input files: the rows before the damage are scored, then follows one error, and the run
continues with the next input. The result does not depend on how often the run is resumed."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from pathlib import Path
from typing import Any

import grpc
import longshort.batch
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from integration.server_process import Server
from longshort.batch.inputs import parquet
from longshort.batch.inputs.shards import Position, ShardLimits

from clients.python.batch.corpus import read_errors, read_rows, write_jsonl
from clients.python.batch.inputs.test_inputs import rows_of, write_warc
from clients.python.conftest import address

DRAW = random.Random(1)
# Without pattern, so that compressed lines are nearly as long as plain ones: 1.4 MB.
LINES = b"".join(json.dumps({"text": DRAW.randbytes(100).hex()}).encode() + b"\n" for _ in range(6000))
ROWS = 2000


def good_rows(path: Path, start: Position = Position()) -> int:  # noqa: B008
    """The number of good rows, which are in order. One error at the file's end follows them."""
    rows = [row for shard in rows_of(path, ShardLimits(), start) for row in shard.rows]
    assert [row.ordinal for row in rows] == list(range(start.row, start.row + len(rows)))
    assert [row.error.code for row in rows if row.error is not None] == [grpc.StatusCode.DATA_LOSS] and rows[
        -1
    ].error is not None
    return len(rows) - 1


@pytest.mark.parametrize("members", [1, 7])
def test_all_whole_lines_before_the_cut_of_a_gzip_file_are_read(tmp_path: Path, members: int) -> None:
    size = -(-len(LINES) // members)
    parts = [gzip.compress(LINES[begin : begin + size], 1) for begin in range(0, len(LINES), size)]
    whole, path = b"".join(parts), tmp_path / "a.jsonl.gz"
    for cut in (15, 1000, len(whole) // 2, len(whole) - len(parts[-1]) + 3, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:cut])
        there, left = b"", whole[:cut]
        while left:
            member = zlib.decompressobj(31)
            there += member.decompress(left)
            left = member.unused_data
        assert good_rows(path) == there.count(b"\n"), cut
    # Some programs fill the last block of a tape with zeros.
    path.write_bytes(whole + bytes(5000))
    assert sum(len(shard.rows) for shard in rows_of(path, ShardLimits())) == 6000


def write_parquet(path: Path, compression: str, checksums: bool = False) -> Path:
    """Writes two row groups with pages of about 60 rows."""
    table = pa.table({"text": [DRAW.randbytes(30).hex() for _ in range(ROWS)], "n": list(range(ROWS))})
    pq.write_table(
        table,
        path,
        compression=compression,
        row_group_size=ROWS // 2,
        data_page_size=4000,
        write_batch_size=20,
        use_dictionary=False,
        write_page_checksum=checksums,
    )
    return path


def damage(path: Path, group: int, length: int) -> None:
    """Damages the middle of the row group's texts."""
    content = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(group).column(0)
    begin = column.data_page_offset + column.total_compressed_size // 2
    content[begin : begin + length] = b"\xff" * length
    path.write_bytes(content)


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip"])
def test_rows_before_a_damaged_page_are_read(tmp_path: Path, compression: str) -> None:
    path = write_parquet(tmp_path / "a.parquet", compression)
    wanted = [row.text_hash for shard in rows_of(path, ShardLimits()) for row in shard.rows]
    damage(path, 1, 3000)
    good = good_rows(path)
    # All pages before that in the middle of the second group; batches of 256 rows end elsewhere.
    assert 1400 < good < 1520 and good % 256 > 0
    assert [row.text_hash for shard in rows_of(path, ShardLimits()) for row in shard.rows][:good] == wanted[:good]
    # A run that goes on finds the same, from wherever it does.
    for row in (5, 1100, good - 3, good):
        assert good_rows(path, Position(1, row, row)) == good - row
    assert rows_of(path, ShardLimits(), Position(1, good + 1, good + 1)) == []


def test_a_page_that_is_not_what_its_checksum_says_is_damaged(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", "none", checksums=True)
    content = path.read_bytes()
    text = pq.read_table(path).column("text")[700].as_py().encode()
    path.write_bytes(content.replace(text, b"x" * len(text)))
    assert 600 < good_rows(path) <= 700


def test_damaged_inputs_stop_nothing_and_come_to_the_same_again(server: Server, tmp_path: Path) -> None:
    damage(write_parquet(tmp_path / "a.parquet", "snappy"), 0, 3000)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(LINES)[:20_000])
    (tmp_path / "c.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(LINES)[:100_000])
    for name in ("d.warc", "e.warc.gz"):
        whole = write_warc(tmp_path / name, name.endswith(".gz")).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    write_jsonl(tmp_path / "f.jsonl", [{"text": "good"}])
    inputs = [str(path) for path in sorted(tmp_path.iterdir())]
    out = tmp_path / "out"
    for again in range(3):
        if again == 2:
            # The shards with the damage are done again.
            for path in (out / "errors").iterdir():
                (out / f"manifest/shard-{path.stem}.json").unlink()
        summary = longshort.batch.score(inputs, str(out), server=address(server), carry=[], shard_rows=100)
        assert summary.all_errors == 5, again
        assert summary.shards == (0 if again == 1 else 5) or again == 0
        assert longshort.batch.verify(str(out)).complete
    errors = {error["input"]: error for error in read_errors(out)}
    assert list(errors) == inputs[:5]
    for name, error in errors.items():
        assert error["code"] == "DATA_LOSS" and "damaged from here on" in error["message"]
        rows = [row["ordinal"] for row in read_rows(out) if row["input"] == name]
        assert rows == list(range(error["ordinal"])) and rows
    assert read_rows(out)[-1]["input"] == inputs[5]


class Failing:
    """A file on a disk that fails in a range of offsets."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> Any:
        if 30_000 < self._file.tell() < 70_000:
            raise OSError(5, "Input/output error")
        return self._file.read(size)

    def __enter__(self) -> Failing:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_disk_that_fails_is_no_damage(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the run, since the same command may be able to read the file later."""
    path = write_parquet(tmp_path / "a.parquet", "snappy")
    opened = parquet.open_input
    monkeypatch.setattr(parquet, "open_input", lambda name: Failing(opened(name)))
    monkeypatch.setattr(parquet, "_BUFFER_BYTES", 4000)
    with pytest.raises(longshort.batch.BatchError, match="cannot be read: Input/output error") as failed:
        longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server), shard_rows=50)
    assert type(failed.value) is longshort.batch.BatchError and "run the same command again" in str(failed.value)
    monkeypatch.undo()
    summary = longshort.batch.score(str(path), str(tmp_path / "out"), server=address(server), shard_rows=50)
    assert (summary.all_rows, summary.all_errors) == (ROWS, 0)


def test_rows_from_one_on_whose_lists_are_too_large_are_errors(server: Server, tmp_path: Path) -> None:
    """10 million numbers take 80 MB unpacked. What is behind them in the row group cannot be read, and is not null."""
    ends = pa.array([0, 1, 10_000_000, 10_000_002, 10_000_003], pa.int32())
    lists = pa.ListArray.from_arrays(ends, pa.array([1] * 10_000_003, pa.int32()))
    table = pa.table({"text": ["a b", "c d", "e f", "g h"], "n": lists})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    out = tmp_path / "out"
    summary = longshort.batch.score(str(tmp_path / "a.parquet"), str(out), server=address(server))
    assert [(row["ordinal"], row["n"]) for row in read_rows(out)] == [(0, [1]), (3, [1])]
    large, behind = read_errors(out)
    assert large["ordinal"] == 1 and large["message"].startswith('the lists of "n" take up to ')
    assert behind["ordinal"] == 2
    assert behind["message"] == f"it cannot be read, since it is behind a row of which {large['message']}"
    assert summary.lost == {} and longshort.batch.verify(str(out)).complete
