"""Converts values of Arrow columns to Python, also where a column of strings is not UTF-8."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]


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


def not_utf8(batch: pa.RecordBatch, names: Sequence[str]) -> dict[int, tuple[str, NotUtf8]]:
    """By the index of a row in the batch: the first of these columns that is not UTF-8 in this row."""
    found: dict[int, tuple[str, NotUtf8]] = {}
    for name in names:
        column = batch.column(name)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            for place, scalar in enumerate(column):
                with contextlib.suppress(OverflowError, ValueError):  # times that Python cannot represent
                    if isinstance(value := _value(scalar), NotUtf8):
                        found.setdefault(place, (name, value))
    return found


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
