"""Reads the checkpoint that the user names: a file of torch.save or safetensors, or several with an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longshort_convert.checkpoint import read_checkpoint
from longshort_convert.errors import ConvertError
from longshort_convert.input_files import read_json_object, refuse_other_formats
from longshort_convert.safetensors_file import is_safetensors, read_safetensors

_INDEX_SUFFIX = ".index.json"
# The files that stand for a directory, in this order.
_FILES_OF_DIRECTORIES = (
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)


def read_weights_files(path: Path) -> Any:
    """The content of the checkpoint. Raises ConvertError naming the file, or OSError."""
    if path.is_dir():
        return read_weights_files(_file_of_directory(path))
    if path.name.endswith(_INDEX_SUFFIX):
        return _read_shards(path)
    if (index := _index_of_shard(path)) is not None:
        return _read_shards(index)
    return _read_file(path)


def _read_file(path: Path) -> Any:
    refuse_other_formats(path)
    return read_safetensors(path) if is_safetensors(path) else read_checkpoint(path)


def _file_of_directory(path: Path) -> Path:
    for name in _FILES_OF_DIRECTORIES:
        if (path / name).is_file():
            return path / name
    raise ConvertError(f"{path}: is a directory without {' or '.join(_FILES_OF_DIRECTORIES)}; name a file in it")


def _index_of_shard(path: Path) -> Path | None:
    """The index beside the file that names it as one of several. The index of a missing file is not looked for."""
    if not path.is_file() or "-of-" not in path.name:
        return None
    for index in sorted(path.parent.glob(f"*{_INDEX_SUFFIX}")):
        if path.name in _weight_map(index).values():
            return index
    raise ConvertError(f"{path}: is one of several files by its name, but no *{_INDEX_SUFFIX} beside it names it")


def _weight_map(index: Path) -> dict[str, str]:
    found = read_json_object(index).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise ConvertError(f"{index}: has no weight_map of tensors and files")
    for tensor, name in found.items():
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\\" in name:
            raise ConvertError(f"{index}: tensor {tensor!r} is in {name!r}, which is not the name of a file beside it")
    return found


def _read_shards(index: Path) -> dict[str, Any]:
    weight_map = _weight_map(index)
    tensors: dict[str, Any] = {}
    for name in sorted(set(weight_map.values())):
        shard = index.with_name(name)
        if not shard.is_file():
            raise ConvertError(f"{shard}: no such file, but {index.name} names it")
        content = _read_file(shard)
        if not isinstance(content, dict):
            raise ConvertError(f"{shard}: contains a {type(content).__name__}, not tensors")
        for tensor, value in content.items():
            if weight_map.get(tensor) != name:
                raise ConvertError(f"{shard}: contains tensor {tensor!r}, which {index.name} does not place there")
            tensors[tensor] = value
    for tensor, name in weight_map.items():
        if tensor not in tensors:
            raise ConvertError(f"{index.with_name(name)}: tensor {tensor!r} is missing, but {index.name} names it")
    return tensors
