"""Collects the fields of a classifier's config.json: the user gives some, and the others follow from the tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from longshort_convert.errors import ConvertError


class Fields:
    """The fields that the user gave. Every reader raises ConvertError naming a field that is missing or invalid."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)

    def settle(self, derived: Mapping[str, Any]) -> None:
        """Adds fields that follow from the tensors. Raises ConvertError if the user gave a field another value."""
        for name, value in derived.items():
            if name in self.values and self.values[name] != value:
                raise ConvertError(f"{name} is {self.values[name]!r}, but by the checkpoint's tensors it is {value!r}")
            self.values[name] = value

    def default(self, defaults: Mapping[str, Any]) -> None:
        self.values = {**defaults, **self.values}

    def require(self, *names: str) -> None:
        """Raises ConvertError naming all of these fields that are missing."""
        missing = [name for name in names if name not in self.values]
        if len(missing) > 1:
            raise ConvertError(
                f"fields {', '.join(missing)} are missing: the checkpoint does not contain them; give them with "
                f"--preset, --config or --set {missing[0]}=VALUE"
            )
        for name in missing:
            self._value(name)

    def refuse_unknown(self, known: Sequence[str]) -> None:
        for name in self.values:
            if name not in known:
                raise ConvertError(f"field {name!r} is unknown; there are: {', '.join(known)}")

    def ordered(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.values[name] for name in names if name in self.values}

    def positive(self, name: str) -> int:
        return self._integer(name, 1)

    def natural(self, name: str) -> int:
        return self._integer(name, 0)

    def switch(self, name: str) -> bool:
        value = self._value(name)
        if type(value) is not bool:
            raise ConvertError(f"{name} is {value!r}, not true or false")
        return value

    def text(self, name: str) -> str:
        value = self._value(name)
        if type(value) is not str:
            raise ConvertError(f"{name} is {value!r}, not a string")
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        value = self._value(name)
        if value not in choices:
            raise ConvertError(f"{name} is {value!r}, not one of {', '.join(choices)}")
        return value

    def integers(self, name: str, count: int, minimum: int) -> list[int]:
        value = self._value(name)
        if not isinstance(value, list) or len(value) != count or not all(_is_integer(item, minimum) for item in value):
            raise ConvertError(f"{name} is {value!r}, not a list of {count} integers of at least {minimum}")
        return value

    def number(self, name: str) -> float:
        value = self._value(name)
        if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
            raise ConvertError(f"{name} is {value!r}, not a positive number")
        return value

    def _integer(self, name: str, minimum: int) -> int:
        value = self._value(name)
        if not _is_integer(value, minimum):
            raise ConvertError(f"{name} is {value!r}, not an integer of at least {minimum}")
        return value

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise ConvertError(
                f"field {name} is missing: the checkpoint does not contain it; give it with --preset, "
                f"--config or --set {name}=VALUE"
            )
        return self.values[name]


def _is_integer(value: object, minimum: int) -> bool:
    return type(value) is int and value >= minimum


def rename_official(
    official: Mapping[str, Any], names: Mapping[str, str], without_effect: Sequence[str]
) -> dict[str, Any]:
    """Renames official hyperparameters to the names of config.json. Raises ConvertError for an unknown name."""
    for name in official:
        if name not in names and name not in without_effect:
            raise ConvertError(f"hyperparameter {name!r} is unknown")
    return {names[name]: value for name, value in official.items() if name in names}


def default_preprocessing(image_size: int) -> dict[str, Any]:
    """The official evaluation's: resizes the shorter side to image_size / 0.875, crops the centre, and normalises."""
    return {
        "resize_shorter_side": int(image_size / 0.875),
        "crop_height": image_size,
        "crop_width": image_size,
        "mean": [0.485, 0.456, 0.406],
        "standard_deviation": [0.229, 0.224, 0.225],
    }
