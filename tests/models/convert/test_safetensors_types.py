"""Every type of numbers that the format safetensors has is known by its name in PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from longshort_convert.errors import ConvertError
from longshort_convert.safetensors_file import read_safetensors

# The types of safetensors 0.8, with their names in PyTorch and their bits.
_TYPES = {
    "BOOL": ("bool", 8),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F4": ("float4_e2m1fn", 4),
    "F6_E2M3": ("float6_e2m3fn", 6),
    "F6_E3M2": ("float6_e3m2fn", 6),
    "I16": ("int16", 16),
    "U16": ("uint16", 16),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "I32": ("int32", 32),
    "U32": ("uint32", 32),
    "F32": ("float32", 32),
    "C64": ("complex64", 64),
    "F64": ("float64", 64),
    "I64": ("int64", 64),
    "U64": ("uint64", 64),
}


def _write(path: Path, type_: str, bits: int) -> None:
    content = bytes(4 * bits // 8)
    header = json.dumps({"one": {"dtype": type_, "shape": [2, 2], "data_offsets": [0, len(content)]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content)


@pytest.mark.parametrize("type_", _TYPES)
def test_a_type_is_known(type_: str, tmp_path: Path) -> None:
    name, bits = _TYPES[type_]
    _write(tmp_path / "one.safetensors", type_, bits)
    tensor = read_safetensors(tmp_path / "one.safetensors")["one"]
    assert (tensor.type_name, tensor.shape) == (name, (2, 2))
    if type_.startswith(("F8_", "F6_", "F4")):
        with pytest.raises(ConvertError, match=name):
            tensor.read()
    else:
        assert np.array_equal(tensor.read(), np.zeros((2, 2)))
        assert tensor.read().itemsize == bits // 8


def test_an_unknown_type_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "one.safetensors", "F128", 128)
    with pytest.raises(ConvertError, match="F128"):
        read_safetensors(tmp_path / "one.safetensors")
