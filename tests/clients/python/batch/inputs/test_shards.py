"""Which rows form a shard, and which part processes it."""

from __future__ import annotations

import pytest
from longshort.batch.inputs.shards import Part, Position, RawRow, ShardLimits, cut, shard_name
from longshort.batch.run.long_documents import region_bits


def raw(sizes: list[int], first_row: int = 0) -> list[RawRow]:
    """Rows of these sizes in bytes, from offset 0 on."""
    rows, offset = [], 0
    for row, size in enumerate(sizes):
        rows.append(RawRow(row, offset, offset + size, size, None))
        offset += size
    return rows[first_row:]


def test_a_shard_ends_with_the_row_that_fills_it() -> None:
    shards = list(cut(0, raw([1, 1, 1, 100, 1, 10, 1]), ShardLimits(rows=3, bytes=10)))
    assert [[row.row for row in shard.rows] for shard in shards] == [[0, 1, 2], [3], [4, 5], [6]]
    assert [shard.number for shard in shards] == [0, 1, 2, 3]


def test_no_rows_are_no_shard() -> None:
    assert list(cut(0, [], ShardLimits())) == []


def test_shards_are_the_same_from_any_shard_on() -> None:
    sizes = [(i * 37) % 50 for i in range(500)]
    limits = ShardLimits(rows=7, bytes=120)
    whole = list(cut(3, raw(sizes), limits))
    for shard in whole[:-1]:
        start = shard.next
        rest = list(cut(3, raw(sizes, start.row), limits, start))
        assert [one.rows for one in rest] == [one.rows for one in whole[start.shard :]]
        assert rest[0].number == start.shard and rest[0].rows[0].begin == start.offset


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_every_shard_is_had_by_exactly_one_part(count: int) -> None:
    parts = [Part(index, count) for index in range(count)]
    owners = [[part.has(source, shard) for part in parts].count(True) for source in range(70) for shard in range(70)]
    assert set(owners) == {1}


@pytest.mark.parametrize("numbers", [[(0, shard) for shard in range(1000)], [(source, 0) for source in range(1000)]])
def test_parts_have_about_as_much_of_one_large_file_as_of_many_small_ones(numbers: list[tuple[int, int]]) -> None:
    for count in (2, 3, 16):
        each = [sum(Part(index, count).has(*number) for number in numbers) for index in range(count)]
        assert max(each) - min(each) <= 1


@pytest.mark.parametrize(("index", "count"), [(-1, 2), (2, 2), (0, 0)])
def test_there_is_no_such_part(index: int, count: int) -> None:
    with pytest.raises(ValueError, match=f"part {index} of {count}"):
        Part(index, count)


def test_names_sort_as_rows_do() -> None:
    names = [shard_name(source, shard) for source in (0, 1, 999_999) for shard in (0, 9, 10, 12_345_678)]
    assert names == sorted(names)
    assert Position() == (0, 0, 0)


def test_regions_add_up_to_the_document() -> None:
    # Token 0 costs nothing, token i costs i bits: regions of 4 of 10 tokens are 0 to 3, 4 to 7, 8 and 9.
    log2 = 0.6931471805599453
    found = region_bits([-log2 * token for token in range(1, 10)], 4)
    assert found == pytest.approx([0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9])
    assert region_bits([-log2], 2) == pytest.approx([1.0])
    assert region_bits([-log2 * token for token in range(1, 8)], 4) == pytest.approx([6, 22])
    assert region_bits([-log2], 1) == pytest.approx([0.0, 1.0])
    assert region_bits([], 4) == [0.0]
