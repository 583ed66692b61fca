"""The columns of results, and their values as Arrow arrays and as JSON."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

_CLASS = pa.struct([("index", pa.int32()), ("label", pa.string()), ("probability", pa.float32())])
SCORE_COLUMNS = pa.schema(
    [
        ("log_likelihood", pa.float64()),
        ("token_count", pa.int64()),
        ("scored_token_count", pa.int64()),
        ("bits_per_byte", pa.float64()),
        ("bits_per_character", pa.float64()),
    ]
)
REGION_COLUMN = pa.field("region_bits", pa.list_(pa.float64()))
CLASS_COLUMNS = pa.schema(
    [
        ("label", pa.string()),
        ("class_index", pa.int32()),
        ("probability", pa.float32()),
        ("classes", pa.list_(_CLASS)),
        ("token_count", pa.int64()),
        ("truncated", pa.bool_()),
    ]
)
EMBED_COLUMNS = pa.schema(
    [("embedding", pa.list_(pa.float32())), ("token_count", pa.int64()), ("truncated", pa.bool_())]
)


def columns(command: str, region_tokens: int) -> pa.Schema:
    """The columns of a run's results, without keys and carried columns."""
    if command == "embed":
        return EMBED_COLUMNS
    if command == "classify":
        return CLASS_COLUMNS
    return SCORE_COLUMNS.append(REGION_COLUMN) if region_tokens else SCORE_COLUMNS


def column(field: pa.Field, values: Sequence[Any]) -> Any:
    """The values of a column of results as an Arrow array."""
    if not values or not isinstance(values[0], array):
        return pa.array(values, field.type)
    numbers = pa.Array.from_buffers(
        pa.float32(), sum(map(len, values)), [None, pa.py_buffer(b"".join(one.tobytes() for one in values))]
    )
    return pa.ListArray.from_arrays(pa.array(itertools.accumulate(map(len, values), initial=0), pa.int32()), numbers)


def json_values(found: dict[str, Any]) -> dict[str, Any]:
    """The same values for a JSON line. Nine digits identify a 32-bit number."""
    return {
        name: [float(f"{one:.9g}") for one in value] if isinstance(value, array) else value
        for name, value in found.items()
    }
