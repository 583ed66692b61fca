"""Rows of a Parquet column of lists: how many values the longest has. Repetition levels say where rows begin."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from longshort.batch.inputs.pages import UNKNOWN, Page, ReadRanges

_LENGTH_BYTES = 4
# The most runs of levels that are read of a page. Usual pages have 1 MiB.
_MAX_RUNS = 1 << 20


class _Run(NamedTuple):
    """Values of which 0, or more, begin a row."""

    # How many stand before the first that begins a row: all if none does.
    before: int
    # From the last that begins a row on; None if none does.
    after: int | None = None
    # The longest row that begins and ends in the run.
    within: int = 0


def longest_row(pages: Sequence[Page], read: ReadRanges, codec: str, max_level: int) -> int:
    """How many values the longest row of a chunk has; where levels cannot be read, an upper bound.

    codec      as the chunk names its compression
    max_level  the column's maximum repetition level

    Raises OSError.
    """
    longest = current = 0
    for page in pages:
        if page.rows == 0:  # a dictionary
            continue
        (content,) = read([page.content])
        for run in _runs_of_page(page, content, codec, max_level):
            longest = max(longest, current + run.before, run.within)
            current = current + run.before if run.after is None else run.after
    return max(longest, current)


def _runs_of_page(page: Page, content: bytes, codec: str, max_level: int) -> Iterator[_Run]:
    left = page.values
    try:
        for count, run in _runs(_levels(page, content, codec), max_level.bit_length(), left):
            yield run
            left -= count
    except (pa.ArrowException, IndexError, OSError, ValueError):
        pass
    if left > 0:
        yield _Run(left)


def _levels(page: Page, content: bytes, codec: str) -> bytes:
    """The encoded levels. Raises pyarrow's errors and ValueError."""
    if page.level_bytes == UNKNOWN:
        raise ValueError("the encoding of levels is not read")
    if page.level_bytes is not None:
        return content[: page.level_bytes]
    if codec != "UNCOMPRESSED":
        name = "lz4_raw" if codec == "LZ4" else codec.lower()
        content = pa.Codec(name).decompress(content, page.bytes, asbytes=True)
    size = int.from_bytes(content[:_LENGTH_BYTES], "little")
    return content[_LENGTH_BYTES : _LENGTH_BYTES + size]


def _runs(levels: bytes, width: int, left: int) -> Iterator[tuple[int, _Run]]:
    """Runs of Parquet's hybrid encoding, and how many levels each has. Raises IndexError at the end of the bytes."""
    place = 0
    for _ in range(_MAX_RUNS):
        if left == 0:
            return
        head, place = _varint(levels, place)
        size = (head >> 1) * width if head & 1 else -(-width // 8)
        content = levels[place : place + size]
        place += size
        count = min(left, (head >> 1) * 8 if head & 1 else head >> 1)
        if count == 0 or len(content) < size:
            raise ValueError("a run is damaged")
        left -= count
        if head & 1:
            yield count, _packed(content, width, count)
        else:
            yield count, _Run(count) if any(content) else _Run(0, 1, 1)


def _packed(content: bytes, width: int, count: int) -> _Run:
    bits = pa.Array.from_buffers(pa.bool_(), count * width, [None, pa.py_buffer(content)])
    levels = pa.FixedSizeListArray.from_arrays(bits, width)
    continues = functools.reduce(pc.or_, [pc.list_element(levels, place) for place in range(width)])
    begins = pc.indices_nonzero(pc.invert(continues))
    if len(begins) == 0:
        return _Run(count)
    within = pc.max(pc.pairwise_diff(begins.cast(pa.int64()))).as_py() or 0
    return _Run(begins[0].as_py(), count - begins[len(begins) - 1].as_py(), within)


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("the number is too long")
