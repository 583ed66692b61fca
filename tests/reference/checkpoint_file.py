"""Reads and writes the files of torch.save with numpy alone: a zip of one pickle and one member for each storage.

Only what a fairseq checkpoint holds is known here: plain Python values, argparse.Namespace and contiguous tensors.
"""

from __future__ import annotations

import argparse
import collections
import pickle
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_STORAGES = {
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "DoubleStorage": np.float64,
    "LongStorage": np.int64,
}


def read(path: Path) -> dict[str, Any]:
    """The saved dict, with its tensors as arrays of the stored type."""
    with zipfile.ZipFile(path) as archive:
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        with archive.open(pickled) as file:
            return _Reader(file, archive, pickled.removesuffix("data.pkl")).load()


def write(path: Path, checkpoint: dict[str, Any], protocol: int = 2) -> None:
    """Saves the dict; arrays become tensors, and arrays over the same memory share a storage."""
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("archive/data.pkl", "w") as file:
            writer = _Writer(file, protocol)
            writer.dump(checkpoint)
        archive.writestr("archive/byteorder", "little")
        for storage in writer.storages.values():
            archive.writestr(f"archive/data/{storage.key}", np.ascontiguousarray(storage.values).tobytes())
        archive.writestr("archive/version", "3\n")


def write_legacy(path: Path, checkpoint: dict[str, Any], protocol: int = 2) -> None:
    """Saves the dict as PyTorch did before 1.6, and does with _use_new_zipfile_serialization=False."""
    sizes = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    with path.open("wb") as file:
        for value in (0x1950A86A20F9469CFC6C, 1001, sizes):
            pickle.dump(value, file, protocol=protocol)
        writer = _Writer(file, protocol, view=(None,))
        writer.dump(checkpoint)
        pickle.dump([storage.key for storage in writer.storages.values()], file, protocol=protocol)
        for storage in writer.storages.values():
            file.write(storage.values.size.to_bytes(8, "little"))
            file.write(np.ascontiguousarray(storage.values).tobytes())


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(file)
        self._archive = archive
        self._root = root

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        known = {
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("argparse", "Namespace"): argparse.Namespace,
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"the checkpoint asks for {module}.{name}")
        return known[module, name]

    def persistent_load(self, pid: Any) -> NDArray:
        _, numpy_type, key, _, count = pid
        values = np.frombuffer(self._archive.read(f"{self._root}data/{key}"), numpy_type)
        if values.size != count:
            raise pickle.UnpicklingError(f"storage {key} has {values.size} values, not {count}")
        return values


def _rebuild_tensor(storage: NDArray, offset: int, shape: tuple, stride: tuple, *_: object) -> NDArray:
    strides = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, strides)


class _Global:
    """A global of the reading program, written by its name; never called here."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:
        raise NotImplementedError


class _Storage(NamedTuple):
    key: str
    values: NDArray


class _Writer(pickle._Pickler):  # the pickler in Python: the one in C would import torch to check its names
    dispatch = dict(pickle._Pickler.dispatch)
    _REBUILD = _Global("torch._utils", "_rebuild_tensor_v2")
    _TYPES = {np.dtype(numpy_type): _Global("torch", name) for name, numpy_type in _STORAGES.items()}

    def __init__(self, file: Any, protocol: int, view: tuple = ()) -> None:
        super().__init__(file, protocol)
        self._view = view  # the end of a reference to a storage, which only the older form has
        self.storages: dict[int, _Storage] = {}  # by address

    def save_by_name(self, entry: _Global) -> None:
        if self.proto >= 4:
            self.save(entry.module)
            self.save(entry.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{entry.module}\n{entry.name}\n".encode())
        self.memoize(entry)

    dispatch[_Global] = save_by_name

    def reducer_override(self, value: object) -> Any:
        if not isinstance(value, np.ndarray):
            return NotImplemented
        address = value.__array_interface__["data"][0]
        storage = self.storages.setdefault(address, _Storage(str(len(self.storages)), value))
        strides = tuple(step // value.itemsize for step in value.strides)
        return self._REBUILD, (storage, 0, value.shape, strides, False, collections.OrderedDict())

    def persistent_id(self, value: object) -> Any:
        if not isinstance(value, _Storage):
            return None
        return ("storage", self._TYPES[value.values.dtype], value.key, "cpu", value.values.size, *self._view)
