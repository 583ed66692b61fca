"""How many rows of a Parquet file are read at a time, and what it costs to find out, also in an object store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from longshort.batch.inputs import reading, sources
from longshort.batch.inputs.finding import LeftOut, expand
from longshort.batch.inputs.footers import read_footer
from longshort.batch.inputs.pages import Page, largest_rows, read_pages
from longshort.batch.inputs.parquet_layout import MAX_BATCH_ROWS, Layout
from longshort.batch.inputs.rows import Columns
from longshort.batch.inputs.shards import Position

from clients.python.batch.inputs.test_memory import long_after_short


class CountedStore(MemoryFileSystem):  # type: ignore[misc]
    """An object store that counts its requests, and the bytes of ranges that are read alone."""

    protocol = "counted"
    asked_for_folders = 0
    ranges: list[int] = []  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("counted://")))

    def isdir(self, path: str) -> bool:
        CountedStore.asked_for_folders += 1
        return bool(super().isdir(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        content: bytes = super().cat_file(path, start, end, **kwargs)
        CountedStore.ranges.append(len(content))
        return content


@pytest.fixture
def store() -> Iterator[CountedStore]:
    fsspec.register_implementation("counted", CountedStore, clobber=True)
    opened = CountedStore()
    CountedStore.asked_for_folders, CountedStore.ranges = 0, []
    yield opened
    opened.store.clear()


def layout(path: Path, columns: Columns = Columns()) -> Layout:  # noqa: B008
    with path.open("rb") as stored:
        return Layout(str(path), read_footer(str(path), stored, columns.memory), columns)


def test_wide_tables_are_read_many_rows_at_a_time(tmp_path: Path) -> None:
    """48 MB in pages of 1 MB, each with thousands of rows: fewer rows at a time would not bound memory further."""
    words = pa.array([os.urandom(100).hex() for _ in range(5000)])
    table = pa.table({"text": ["a"] * 5000} | {f"column{place}": words for place in range(48)})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    assert layout(tmp_path / "a.parquet").batch_rows == [MAX_BATCH_ROWS]


def test_long_rows_are_read_few_at_a_time(tmp_path: Path) -> None:
    long_after_short(tmp_path / "a.parquet")
    assert layout(tmp_path / "a.parquet").batch_rows == [4]
    # One row of each page is long.
    table = pa.table({"text": ["a"] * 6000, "blob": (["x" * 1_000_000] + ["y"] * 99) * 60})
    pq.write_table(table, tmp_path / "b.parquet", use_dictionary=False, write_batch_size=100)
    assert layout(tmp_path / "b.parquet").batch_rows == [MAX_BATCH_ROWS]
    # Values of fixed size are decoded, also from a small dictionary.
    table = pa.table({"text": ["a"] * 500, "blob": pa.array([bytes(1 << 20)] * 500, pa.binary(1 << 20))})
    pq.write_table(table, tmp_path / "c.parquet", compression="zstd")
    assert layout(tmp_path / "c.parquet", Columns(carry=("blob",))).batch_rows == [16]


@pytest.mark.parametrize(
    ("rows", "largest"),
    [(1, 7), (2, 12), (3, 13), (4, 13), (5, 16), (1000, 16)],
)
def test_the_largest_rows_are_found_in_pages_that_follow_each_other(rows: int, largest: int) -> None:
    """Of a dictionary, and pages of 10, 2, 1 and 5 rows."""
    pages = [Page(0, 100), Page(10, 3), Page(2, 1), Page(1, 7), Page(5, 5)]
    assert largest_rows(pages, rows) == largest


@pytest.mark.parametrize("page_bytes", [4 << 10, 64 << 10, 1 << 20])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_are_found_with_few_requests(page_bytes: int, version: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    words = pa.array([os.urandom(500).hex() for _ in range(12_000)])
    pq.write_table(
        pa.table({"text": words, "other": words}),
        path,
        use_dictionary=False,
        compression="none",
        data_page_size=page_bytes,
        write_batch_size=4,
        data_page_version=version,
    )
    content = path.read_bytes()
    calls: list[int] = []

    def read(ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        calls.append(sum(end - begin for begin, end in ranges))
        return [content[begin:end] for begin, end in ranges]

    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(0), group.column(1)]
    for pages, chunk in zip(read_pages(chunks, [False, False], read), chunks, strict=True):
        assert sum(page.rows for page in pages) == 12_000
        # The rest are headers, with statistics: two values.
        assert 2000 < (chunk.total_uncompressed_size - sum(page.bytes for page in pages)) / len(pages) < 2100
        assert max(page.bytes for page in pages) < page_bytes + 5000
    # Both columns at the same time: 12 MB each.
    assert len(calls) < 40 and sum(calls) < (300_000 if page_bytes == 1 << 20 else len(content) + (2 << 20))


def test_a_damaged_chunk_ends_the_search(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["x" * 1000] * 5000}), path, use_dictionary=False, compression="none")
    group = pq.ParquetFile(path).metadata.row_group(0)
    whole = path.read_bytes()
    for place, damage in ((4, bytes(100)), (4, b"\xff" * 100), (4, b"\x1c" * 100), (len(whole), b"")):
        content = (whole[:place] + damage + whole[place + len(damage) :])[: 2_000_000 if place > 4 else None]

        def read(ranges: Sequence[tuple[int, int]], content: bytes = content) -> list[bytes]:
            return [content[begin:end] for begin, end in ranges]

        (pages,) = read_pages([group.column(0)], [False], read)
        assert sum(page.rows for page in pages) < 5000


def test_files_of_an_object_store_are_not_read_twice(store: CountedStore, tmp_path: Path) -> None:
    words = pa.array([os.urandom(500).hex() for _ in range(50_000)])
    pq.write_table(pa.table({"text": words}), tmp_path / "a.parquet", use_dictionary=False, compression="none")
    store.pipe_file("/corpus/a.parquet", (tmp_path / "a.parquet").read_bytes())
    (source,) = sources.sources_of(sources.find(["counted:///corpus/*.parquet"]))
    (reader,) = reading.open_readers([source], Columns())
    assert len(CountedStore.ranges) < 100 and sum(CountedStore.ranges) < 500_000 < source.bytes / 100
    assert next(reader.rows(Position())).row == 0


def test_a_pattern_of_an_object_store_asks_for_no_file_alone(store: CountedStore) -> None:
    for place in range(50):
        store.pipe_file(f"/corpus/{place}.jsonl", b"")
    store.pipe_file("/corpus/more/a.jsonl", b"")
    left_out = LeftOut()
    assert len(expand("counted:///corpus/*", lambda name: True, left_out)) == 50
    assert left_out.counts == {"more/": 1} and CountedStore.asked_for_folders < 3
