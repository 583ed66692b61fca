"""Values of Arrow's columns as Python has them, also where a column breaks its type's promise."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class NotUtf8:
    """A value of a column of strings that is none, or that has such within it."""

    # Of the string.
    place: int
    byte: int

    def __str__(self) -> str:
        return f"byte {self.place} of it is {self.byte:#04x}"


def values(column: Any) -> list[Any]:
    """Of an array of strings, bytes or numbers, or lists of such; a NotUtf8 for what is not UTF-8."""
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
    """By a row's place in the batch: the first of these columns that is not UTF-8 there, if any is not."""
    found: dict[int, tuple[str, NotUtf8]] = {}
    for name in names:
        column = batch.column(name)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            for place, scalar in enumerate(column):
                with contextlib.suppress(OverflowError, ValueError):  # times that Python does not have
                    if isinstance(value := _value(scalar), NotUtf8):
                        found.setdefault(place, (name, value))
    return found


def shown(column: Any) -> list[Any]:
    """Values of an array for a JSON line. What Python does not have is written out, and what is not UTF-8 escaped."""
    try:
        return list(column.to_pylist())
    except Exception:  # Python's own errors, of strings, times and their zones
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
