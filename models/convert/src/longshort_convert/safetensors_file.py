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

_NUMPY_TYPES = {"float32": "<f4", "float16": "<f2", "bfloat16": "<u2"}
_TYPE_NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True)
class FileTensor:
    """A tensor of a file. Only tensors of weight types can be read."""

    type_name: str
    shape: tuple[int, ...]
    content: bytes

    def read(self) -> NDArray[Any]:
        """The numbers, row-major, little-endian (for bfloat16: the bits)."""
        return np.frombuffer(self.content, _NUMPY_TYPES[self.type_name]).reshape(self.shape)


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
    return {
        name: FileTensor(_TYPE_NAMES.get(entry["dtype"], entry["dtype"]), tuple(entry["shape"]), entry["data"])
        for name, entry in found
    }


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
