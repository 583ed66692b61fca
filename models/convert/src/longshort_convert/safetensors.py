"""The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longshort_convert.errors import ConvertError
from longshort_convert.weights import Weight

_TYPE_NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
_BITS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
_READ_NAMES = {stored: name for name, stored in _TYPE_NAMES.items()}
_METADATA = "__metadata__"


class FileTensor(NamedTuple):
    """A tensor of a file, whose numbers are still in it."""

    path: Path
    type_name: str
    bits: str
    shape: tuple[int, ...]
    start: int  # byte of the file

    def read(self) -> NDArray[Any]:
        """The numbers, row-major, little-endian (of bfloat16: the bits)."""
        values = np.fromfile(self.path, np.dtype(self.bits), math.prod(self.shape), offset=self.start)
        return values.reshape(self.shape)


def is_safetensors(path: Path) -> bool:
    """Whether the file begins with the length of a JSON object."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def read_safetensors(path: Path) -> dict[str, FileTensor]:
    """Every tensor by name. Raises ConvertError for a file that is broken, naming the tensor."""
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > size - 8:
            raise ConvertError(f"{path}: its header has {length} bytes, more than the file")
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise ConvertError(f"{path}: broken header: {error}") from error
    return {
        name: _file_tensor(path, name, entry, 8 + length, size) for name, entry in header.items() if name != _METADATA
    }


def write_safetensors(path: Path, weights: Mapping[str, Weight]) -> None:
    """Tensors lie in the order given, those with wider elements first, so that each is aligned."""
    order = sorted(weights.items(), key=lambda item: -item[1].values.itemsize)
    header: dict[str, Any] = {}
    offset = 0
    for name, weight in order:
        end = offset + weight.values.nbytes
        shape = list(weight.values.shape)
        header[name] = {"dtype": _TYPE_NAMES[weight.type_name], "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for _, weight in order:
            file.write(weight.values.tobytes())


def _file_tensor(path: Path, name: str, entry: object, data_start: int, size: int) -> FileTensor:
    try:
        stored_type, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        bits = _BITS[stored_type]
        bytes_wanted = math.prod(shape) * np.dtype(bits).itemsize
    except (KeyError, TypeError, ValueError) as error:
        raise ConvertError(f"{path}: tensor {name!r} has a broken entry: {error!r}") from error
    natural = all(type(number) is int and number >= 0 for number in (*shape, start, end))
    if not natural or end - start != bytes_wanted or data_start + end > size:
        raise ConvertError(f"{path}: tensor {name!r} of shape {list(shape)} does not lie in bytes {start} to {end}")
    return FileTensor(path, _READ_NAMES.get(stored_type, stored_type), bits, shape, data_start + start)
