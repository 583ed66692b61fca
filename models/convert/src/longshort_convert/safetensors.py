"""Writes the safetensors format: a JSON header, then the tensors' bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longshort_convert.fairseq import Weight

_TYPE_NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


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
