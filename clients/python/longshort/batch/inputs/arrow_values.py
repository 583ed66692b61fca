"""Values of Arrow columns: their sizes, and their conversion to other types and to Python, also where a column of
strings is not UTF-8."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from longshort.batch.inputs.column_types import has_list_view, is_kind, plain


@dataclass(frozen=True, slots=True)
class NotUtf8:
    """A value of a column of strings that is not UTF-8, or that contains such a string."""

    # The first wrong byte of the string, and its index.
    place: int
    byte: int

    def __str__(self) -> str:
        return f"byte {self.place} is {self.byte:#04x}"


def values(column: Any) -> list[Any]:
    """The values of an array of strings, bytes or numbers, or lists of such. Invalid UTF-8 is a NotUtf8."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(one) for one in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return NotUtf8(error.start, error.object[error.start])


def not_utf8(column: Any) -> dict[int, NotUtf8]:
    """The values that are not UTF-8, by their index."""
    try:
        column.validate(full=True)
        return {}
    except pa.ArrowInvalid:
        found: dict[int, NotUtf8] = {}
        for place, scalar in enumerate(column):
            with contextlib.suppress(OverflowError, ValueError):  # times that Python cannot represent
                if isinstance(value := _value(scalar), NotUtf8):
                    found[place] = value
        return found


def without_views(column: Any) -> Any:
    """A column of list views, or with list views, as lists. pyarrow's conversion of them makes invalid arrays."""
    return pa.array(shown(column), plain(column.type)) if has_list_view(column.type) else column


def converted(column: Any, type: pa.DataType) -> Any:
    """The column with another type. Text represents everything: strings as they are, other values as JSON. Of the other
    types, a value becomes null that the type does not have, such as 2^53 + 1 in a column of doubles."""
    have = plain(column.type)
    if is_kind(type, "string") and not is_kind(have, "string", "null"):
        return pa.array([as_text(value) for value in shown(column)], pa.string())
    try:
        return column.cast(type)
    except pa.ArrowInvalid:
        return pa.concat_arrays([_converted_value(column.slice(place, 1), type) for place in range(len(column))])


def _converted_value(column: Any, type: pa.DataType) -> Any:
    try:
        return column.cast(type)
    except pa.ArrowInvalid:
        # pyarrow refuses all integers beyond 2^53, also those that a double has.
        number = column[0].as_py() if is_kind(column.type, "integer") and is_kind(type, "floating") else None
        return pa.array([float(number) if number is not None and float(number) == number else None], type)


def value_bytes(array: Any) -> Any:
    """The bytes of each value of an array, decoded: an Int64Array. Dictionaries are not decoded for it."""
    type = array.type
    if isinstance(array, pa.ExtensionArray):
        return value_bytes(array.storage)
    if is_kind(type, "dictionary"):
        return pc.fill_null(value_bytes(array.dictionary).take(array.indices), 0)
    if is_kind(type, "string", "large_string", "binary", "large_binary"):
        return pc.cast(pc.fill_null(pc.binary_length(array), 0), pa.int64())
    if is_kind(type, "string_view", "binary_view"):
        return value_bytes(array.cast(plain(type)))
    if is_kind(type, "struct"):
        return _sum(array.flatten(), len(array))
    if is_kind(type, "fixed_size_list"):
        offsets = [type.list_size * (array.offset + place) for place in range(len(array) + 1)]
        return _sums(array.values, pa.array(offsets, pa.int64()))
    if is_kind(type, "list", "large_list"):
        return _sums(array.values, array.offsets)
    if is_kind(type, "map"):
        return pc.add(_sums(array.keys, array.offsets), _sums(array.items, array.offsets))
    width = 0 if is_kind(type, "null") else -(-type.bit_width // 8)
    return pa.array([width] * len(array), pa.int64())


def _sum(arrays: Any, length: int) -> Any:
    total = pa.array([0] * length, pa.int64())
    for array in arrays:
        total = pc.add(total, value_bytes(array))
    return total


def _sums(values: Any, offsets: Any) -> Any:
    """The bytes of the values between consecutive offsets."""
    offsets = offsets.cast(pa.int64())
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    each = value_bytes(values.slice(first, last - first))
    before = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(each)])
    ends = before.take(pc.subtract(offsets, first))
    return pc.subtract(ends.slice(1), ends.slice(0, len(ends) - 1))


def shown(column: Any) -> list[Any]:
    """Values of an array for a JSON line. Values that Python cannot represent become text; invalid UTF-8 is escaped."""
    try:
        return list(column.to_pylist())
    except Exception:  # Python's errors for strings, times and time zones
        return [_shown(one) for one in column]


def _shown(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except Exception:
        if isinstance(scalar, pa.DictionaryScalar):
            return _shown(scalar.value)
        if isinstance(scalar, pa.StructScalar):
            return {name: _shown(scalar[name]) for name in scalar}
        if isinstance(scalar, pa.ListScalar):  # maps and all kinds of lists
            return [_shown(one) for one in scalar.values]
        if hasattr(scalar, "as_buffer"):
            return scalar.as_buffer().to_pybytes().decode("utf-8", "backslashreplace")
    try:
        return scalar.cast(pa.string()).as_py()
    except pa.ArrowException:
        return f"a value of {scalar.type}"


def as_text(value: Any) -> str | None:
    """A value as a string of a column: strings as they are, others as JSON."""
    if value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (bool, int, float, list, dict)):
        return json_text(value)
    text = value if isinstance(value, str) else plain_json(value)
    return text.encode("utf-8", "backslashreplace").decode()


def json_text(value: Any) -> str:
    """Keeps unpaired surrogates as JSON's escapes. NaN and infinity, which JSON does not have, become null."""
    try:
        return json.dumps(value, separators=(",", ":"), default=plain_json, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), default=plain_json, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def plain_json(value: Any) -> str:
    """Converts a value of a Parquet type that JSON does not have."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
