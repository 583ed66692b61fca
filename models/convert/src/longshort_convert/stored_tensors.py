"""Tensors of a file of torch.save, whose numbers stay in the file until they are read."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class ElementType(NamedTuple):
    """A tensor's type: its name in PyTorch, and the numpy type of its bits (uint16 for bfloat16, which numpy lacks)."""

    name: str
    bits: str

    @property
    def size_bytes(self) -> int:
        return np.dtype(self.bits).itemsize


STORAGE_TYPES = {
    "FloatStorage": ElementType("float32", "<f4"),
    "HalfStorage": ElementType("float16", "<f2"),
    "BFloat16Storage": ElementType("bfloat16", "<u2"),
    "DoubleStorage": ElementType("float64", "<f8"),
    "ComplexFloatStorage": ElementType("complex64", "<c8"),
    "ComplexDoubleStorage": ElementType("complex128", "<c16"),
    "LongStorage": ElementType("int64", "<i8"),
    "IntStorage": ElementType("int32", "<i4"),
    "ShortStorage": ElementType("int16", "<i2"),
    "CharStorage": ElementType("int8", "i1"),
    "ByteStorage": ElementType("uint8", "u1"),
    "BoolStorage": ElementType("bool", "?"),
}


class Storage(NamedTuple):
    """The numbers that tensors share. `content` reads their bytes and raises ConvertError if the file has others."""

    name: str
    type: ElementType
    elements: int
    content: Callable[[], bytes]

    @property
    def size_bytes(self) -> int:
        return self.elements * self.type.size_bytes

    def read(self) -> NDArray[Any]:
        return np.frombuffer(self.content(), np.dtype(self.type.bits))


class Tensor(NamedTuple):
    """A tensor of the checkpoint, whose numbers are still in the file."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def type_name(self) -> str:
        return self.storage.type.name

    def read(self) -> NDArray[Any]:
        """The numbers, row-major, little-endian (for bfloat16: the bits)."""
        values = self.storage.read()
        strides = tuple(step * values.itemsize for step in self.stride)
        view = np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, strides, writeable=False)
        return np.ascontiguousarray(view).reshape(self.shape)


def rebuild_tensor(storage: Storage, offset: object, shape: object, stride: object) -> Tensor:
    """Raises UnpicklingError if the tensor reaches beyond its storage."""
    sizes, steps = naturals(shape), naturals(stride)
    (start,) = naturals((offset,))
    if len(sizes) != len(steps):
        raise pickle.UnpicklingError(f"a tensor has {len(sizes)} dimensions and {len(steps)} strides")
    last = start + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    if start > storage.elements or (0 not in sizes and last >= storage.elements):
        raise pickle.UnpicklingError(f"a tensor reaches beyond its storage, {storage.name}")
    if math.prod(sizes) > storage.elements:
        raise pickle.UnpicklingError(f"a tensor has more elements than its storage, {storage.name}")
    return Tensor(storage, start, sizes, steps)


def naturals(numbers: object) -> tuple[int, ...]:
    """The numbers, which must be a tuple of non-negative integers."""
    if not isinstance(numbers, tuple) or not all(type(number) is int and number >= 0 for number in numbers):
        raise pickle.UnpicklingError("a size, stride or offset is not a non-negative integer")
    return numbers
