"""Rows of a Parquet column of lists: how many values they have. Repetition levels say where rows begin."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from longshort.batch.inputs.pages import UNKNOWN, Page, ReadRanges

_LENGTH_BYTES = 4
# The most runs of levels that are read of a page. Usual pages have 1 MiB.
_MAX_RUNS = 1 << 20


class LongRows(NamedTuple):
    """What the rows of a chunk have."""

    # The most values of a row that has at most as many as were asked for.
    longest: int
    # The indices of the other rows; None if levels cannot be read, so that they are not known.
    longer: list[int] | None


class _Begins(NamedTuple):
    """The values of a run that begin a row."""

    number: int
    # Their first and last index in the run.
    first: int
    last: int
    # How many values the rows have that begin and end in the run; None for one each.
    lengths: Any = None


def long_rows(pages: Sequence[Page], read: ReadRanges, codec: str, max_level: int, most: int) -> LongRows:
    """Finds rows with more than `most` values. Where levels cannot be read, `longest` is an upper bound of all rows.

    codec      as the chunk names its compression
    max_level  the column's maximum repetition level

    Raises OSError.
    """
    rows = _Rows(most)
    is_known = True
    for page in pages:
        if page.rows == 0:  # a dictionary
            continue
        (content,) = read([page.content])
        left = page.values
        try:
            for count, begins in _runs(_levels(page, content, codec), max_level.bit_length(), left):
                rows.add(count, begins)
                left -= count
        except (pa.ArrowException, IndexError, OSError, ValueError):
            pass
        if left > 0:
            is_known = False
            rows.add(left, None)
    rows.end_row()
    return LongRows(rows.longest, rows.longer) if is_known else LongRows(max(rows.longest, rows.length), None)


class _Rows:
    """Counts the values of rows, run by run."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.longest = 0
        self.longer: list[int] = []
        # The index of the current row, and how many of its values were counted.
        self._row = -1
        self.length = 0

    def add(self, count: int, begins: _Begins | None) -> None:
        """Adds a run of `count` values. `begins`: None if none of them begins a row."""
        if begins is None:
            self.length += count
            return
        self.length += begins.first
        self.end_row()
        if begins.number > 1:
            self.longest = max(self.longest, 1)
        if begins.lengths is not None:
            are_longer = pc.greater(begins.lengths, self._most)
            self.longer += [self._row + 1 + place.as_py() for place in pc.indices_nonzero(are_longer)]
            self.longest = max(self.longest, pc.max(begins.lengths.filter(pc.invert(are_longer))).as_py() or 0)
        self._row += begins.number
        self.length = count - begins.last

    def end_row(self) -> None:
        if self.length > self._most:
            self.longer.append(self._row)
        else:
            self.longest = max(self.longest, self.length)


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


def _runs(levels: bytes, width: int, left: int) -> Iterator[tuple[int, _Begins | None]]:
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
            yield count, None if any(content) else _Begins(count, 0, count - 1)


def _packed(content: bytes, width: int, count: int) -> _Begins | None:
    bits = pa.Array.from_buffers(pa.bool_(), count * width, [None, pa.py_buffer(content)])
    levels = pa.FixedSizeListArray.from_arrays(bits, width)
    continues = functools.reduce(pc.or_, [pc.list_element(levels, place) for place in range(width)])
    begins = pc.indices_nonzero(pc.invert(continues)).cast(pa.int64())
    if len(begins) == 0:
        return None
    return _Begins(len(begins), begins[0].as_py(), begins[-1].as_py(), pc.pairwise_diff(begins).drop_null())


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("the number is too long")
