"""Reads and writes safetensors files with the safetensors library. numpy has no bfloat16, so its bits are uint16."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from longshort_convert.errors import ConvertError
from longshort_convert.weights import Weight

# The names of the format's types in PyTorch, and numpy's types of their bits; None for those that numpy lacks.
_TYPES: dict[str, tuple[str, str | None]] = {
    "BOOL": ("bool", "?"),
    "U8": ("uint8", "u1"),
    "I8": ("int8", "i1"),
    "U16": ("uint16", "<u2"),
    "I16": ("int16", "<i2"),
    "U32": ("uint32", "<u4"),
    "I32": ("int32", "<i4"),
    "U64": ("uint64", "<u8"),
    "I64": ("int64", "<i8"),
    "F16": ("float16", "<f2"),
    "BF16": ("bfloat16", "<u2"),
    "F32": ("float32", "<f4"),
    "F64": ("float64", "<f8"),
    "C64": ("complex64", "<c8"),
    "F8_E4M3": ("float8_e4m3fn", None),
    "F8_E5M2": ("float8_e5m2", None),
    "F8_E8M0": ("float8_e8m0fnu", None),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", None),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", None),
    "F6_E2M3": ("float6_e2m3fn", None),
    "F6_E3M2": ("float6_e3m2fn", None),
    "F4": ("float4_e2m1fn", None),
}


@dataclass(frozen=True)
class FileTensor:
    """A tensor of a file."""

    type_name: str
    shape: tuple[int, ...]
    content: bytes
    bits: str | None  # numpy's type

    def read(self) -> NDArray[Any]:
        """The numbers, row-major, little-endian (for bfloat16: the bits). Raises ConvertError if numpy has no such."""
        if self.bits is None:
            raise ConvertError(f"a tensor has type {self.type_name}, whose numbers the converter cannot read")
        return np.frombuffer(self.content, self.bits).reshape(self.shape)


def is_safetensors(path: Path) -> bool:
    """Whether the file begins with the length of a JSON object."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def read_safetensors(path: Path) -> dict[str, FileTensor]:
    """All tensors by name. Raises ConvertError for a broken file."""
    try:
        found = safetensors.deserialize(path.read_bytes())
    except safetensors.SafetensorError as error:
        raise ConvertError(f"{path}: {error}") from error
    tensors = {}
    for name, entry in found:
        type_name, bits = _TYPES.get(entry["dtype"], (entry["dtype"], None))
        tensors[name] = FileTensor(type_name, tuple(entry["shape"]), entry["data"], bits)
    return tensors


def write_safetensors(path: Path, weights: Mapping[str, Weight]) -> None:
    """Writes tensors with wider elements first, so that each is aligned."""
    # The library reads through addresses, so these arrays must outlive the call.
    arrays = {name: np.require(weight.values, requirements="C") for name, weight in weights.items()}
    tensors = {
        name: safetensors.TensorSpec(
            dtype=weights[name].type_name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in arrays.items()
    }
    safetensors.serialize_file(tensors, path)
