"""Reads and writes safetensors files with numpy: 8 bytes of header length, a JSON header, then the values."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "U8": np.uint8}
_NAMES = {np.dtype(numpy_type): name for name, numpy_type in _TYPES.items()}


def read(path: Path) -> dict[str, NDArray]:
    """All tensors of the file by name."""
    content = path.read_bytes()
    (header_length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + header_length])
    header.pop("__metadata__", None)
    values = memoryview(content)[8 + header_length :]
    return {
        name: np.frombuffer(values[slice(*entry["data_offsets"])], _TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def write(path: Path, tensors: Mapping[str, NDArray]) -> None:
    """Writes the tensors in the order given, without gaps."""
    header: dict[str, object] = {}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())
