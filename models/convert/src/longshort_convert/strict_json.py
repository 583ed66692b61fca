"""JSON as the server reads it: no repeated keys, no numbers beyond JSON's, no half surrogate pairs, and within limits.

base/strict_json.h is the server's reader. A Node is a value of the document with its path, which errors name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longshort_convert.errors import ConvertError

_MAX_DEPTH = 16
_MAX_ELEMENTS = 1 << 22
_SHOWN = 100
_KINDS: tuple[tuple[type, str], ...] = ((dict, "object"), (list, "a list"), (type(None), "null"))


def parse_object(text: str, name: str) -> dict[str, Any]:
    """All of the text as one object. Raises ConvertError, which begins with `name`."""
    try:
        found = json.loads(
            text, object_pairs_hook=_members, parse_constant=_not_a_number, parse_float=_finite, parse_int=_integer
        )
        text.encode()
        _check_size(found)
    except UnicodeEncodeError as error:
        raise ConvertError(f"{name}: a string has half of a surrogate pair") from error
    except (ValueError, RecursionError) as error:
        raise ConvertError(f"{name}: not JSON that the server reads: {error}") from error
    if not isinstance(found, dict):
        raise ConvertError(f"{name}: not a JSON object")
    return found


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"repeats key {quoted(key)}")
        members[key] = value
    return members


def _not_a_number(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"number {digits[:_SHOWN]} is out of range")
    return number


def _integer(digits: str) -> int | float:
    """The server reads an integer of more than 64 bits as a fraction, and an id may not have a sign: -0 is none."""
    return int(digits) if digits != "-0" and len(digits) <= len(str(1 << 63)) else _finite(digits)


def _check_size(document: object) -> None:
    level, depth, elements = [document], 0, 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH + 1:
            raise ValueError(f"is nested more than {_MAX_DEPTH} levels deep")
        elements += len(level)
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                elements += len(value)
                for key in value:
                    key.encode()
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str):
                value.encode()
        if elements > _MAX_ELEMENTS:
            raise ValueError(f"has more than {_MAX_ELEMENTS} keys and values")
        level = below


def quoted(text: str) -> str:
    """The text in single quotes, cut after 100 characters."""
    return f"'{text[:_SHOWN]}{'...' if len(text) > _SHOWN else ''}'"


@dataclass(frozen=True)
class Node:
    """A value of a file, and its path in errors: "model.vocab". All readers raise ConvertError."""

    value: Any
    path: str
    name: str  # the file's

    @property
    def is_null(self) -> bool:
        return self.value is None

    def wrong(self, wanted: str) -> ConvertError:
        return ConvertError(f"{self.name}: {self.path} is {self._found()}; it must be {wanted}")

    def __getitem__(self, field: str) -> Node:
        """A field of an object; null if it is absent."""
        value = self.value.get(field) if isinstance(self.value, dict) else None
        return Node(value, f"{self.path}.{field}" if self.path else field, self.name)

    def at(self, index: int) -> Node:
        return Node(self.value[index], f"{self.path}[{index}]", self.name)

    def items(self) -> list[Node]:
        return [self.at(index) for index in range(len(self.list("a list")))]

    def check_fields(self, known: Sequence[str]) -> None:
        """Whether it is an object with no other fields."""
        for field in self.object("an object"):
            if field not in known:
                of = f" of {self.path}" if self.path else ""
                raise ConvertError(f"{self.name}: unknown field {quoted(field)}{of}; the fields are {', '.join(known)}")

    def object(self, wanted: str) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong(wanted)
        return self.value

    def list(self, wanted: str) -> list[Any]:
        if not isinstance(self.value, list):
            raise self.wrong(wanted)
        return self.value

    def boolean(self, if_absent: bool | None = None) -> bool:
        if self.is_null and if_absent is not None:
            return if_absent
        if type(self.value) is not bool:
            raise self.wrong("true or false")
        return self.value

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def id(self, vocabulary_size: int) -> int:
        if type(self.value) is not int or not 0 <= self.value < vocabulary_size:
            raise self.wrong(
                f"an id in 0..{vocabulary_size - 1}, since the model's vocabulary_size is {vocabulary_size}"
            )
        return self.value

    def _found(self) -> str:
        if isinstance(self.value, str):
            return quoted(self.value)
        return next((kind for type_, kind in _KINDS if isinstance(self.value, type_)), json.dumps(self.value))
