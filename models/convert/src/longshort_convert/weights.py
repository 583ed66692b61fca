"""Checks the tensors of a checkpoint against the names and shapes that the hyperparameters give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longshort_convert.errors import ConvertError

WEIGHT_TYPES = ("float32", "float16", "bfloat16")
# Tensors of these types are a module's counters, indices and masks, never its weights.
_BUFFER_TYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
Shapes = dict[str, tuple[int, ...]]


class StoredTensor(Protocol):
    """A tensor whose numbers are still in the file."""

    @property
    def type_name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def read(self) -> NDArray[Any]:
        """The numbers, row-major (for bfloat16: the bits as uint16)."""


@dataclass(frozen=True)
class Weight:
    """A tensor to store: row-major numbers (for bfloat16: the bits as uint16) and the name of their type."""

    type_name: str
    values: NDArray[Any]


def _not_finite(weight: Weight) -> int:
    if weight.type_name == "bfloat16":  # all bits of the exponent are set
        return int(np.count_nonzero((weight.values & 0x7F80) == 0x7F80))
    return int(np.count_nonzero(~np.isfinite(weight.values)))


def is_tensor(value: object) -> bool:
    return all(hasattr(value, attribute) for attribute in ("type_name", "shape", "read"))


def is_buffer(value: object) -> bool:
    """Whether it is a tensor that is no weight. A model's converter that does not know its name passes it over."""
    return is_tensor(value) and getattr(value, "type_name", None) in _BUFFER_TYPES


class StateDict:
    """The tensors of a model's checkpoint by name without `prefix`. Errors have the names in the file."""

    def __init__(self, tensors: Mapping[str, Any], prefix: str = "") -> None:
        self._tensors = dict(tensors)
        self._prefix = prefix

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __len__(self) -> int:
        return len(self._tensors)

    def names(self) -> list[str]:
        return list(self._tensors)

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        """Errors: ConvertError naming the tensor if it is missing or has another number of dimensions."""
        shape = self._tensor(name).shape
        if len(shape) != dimensions:
            raise ConvertError(
                f"tensor {self._prefix}{name} has shape {list(shape)}, not one of {dimensions} dimensions"
            )
        return shape

    def pop(self, name: str) -> StoredTensor:
        tensor = self._tensor(name)
        del self._tensors[name]
        return tensor

    def take(self, shapes: Shapes) -> dict[str, Weight]:
        """Returns exactly these tensors, except those without elements, which are only checked. Passes over buffers.

        Errors: ConvertError naming a tensor that is missing or unknown, has a wrong shape or type, or is not finite.
        """
        for name, found_tensor in self._tensors.items():
            if name not in shapes and not is_buffer(found_tensor):
                raise ConvertError(f"tensor {self._prefix + name!r} is unknown")
        weights = {}
        for name, shape in shapes.items():
            has_elements = math.prod(shape) > 0
            if not has_elements and name not in self._tensors:
                continue
            tensor = self._tensor(name)
            found = f"tensor {self._prefix}{name} has"
            if tensor.shape != shape:
                raise ConvertError(f"{found} shape {list(tensor.shape)}, the config requires {list(shape)}")
            if tensor.type_name not in WEIGHT_TYPES:
                raise ConvertError(f"{found} type {tensor.type_name}, not one of {', '.join(WEIGHT_TYPES)}")
            if has_elements:
                weights[name] = Weight(tensor.type_name, tensor.read())
                if (wrong := _not_finite(weights[name])) > 0:
                    raise ConvertError(f"{found} {wrong} values that are infinite or not a number")
        return weights

    def _tensor(self, name: str) -> StoredTensor:
        if name not in self._tensors:
            raise ConvertError(f"tensor {self._prefix}{name} is missing")
        tensor = self._tensors[name]
        if not is_tensor(tensor):
            raise ConvertError(f"{self._prefix}{name} is of type {type(tensor).__name__}, not a tensor")
        return tensor


def affine(name: str, rows: int, columns: int) -> Shapes:
    """A linear layer: weight [rows, columns] and bias [rows]."""
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def norm(name: str, width: int) -> Shapes:
    """A layer norm's gain and bias."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
