"""Reads the files of torch.save (PyTorch 1.6 and later) with numpy alone, and runs no code that they name.

Such a file is a zip archive: one pickle, `<root>/data.pkl`, that refers to storages `<root>/data/<key>`, which contain
raw little-endian numbers. The reader accepts only plain values, argparse.Namespace and tensors in the pickle: a subset
of what torch.load(weights_only=True) allows. The pickle builds only immutable objects (tuples) and plain data, so that
no opcode can change the set of known names. A storage is read when a tensor in it is read, so an optimizer's state
costs nothing.
"""

from __future__ import annotations

import collections
import io
import math
import pickle
import pickletools
import struct
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longshort_convert.errors import ConvertError

_PICKLE_LIMIT_BYTES = 256 << 20

# The exceptions of reading a broken zip file or pickle.
_BROKEN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)


class ElementType(NamedTuple):
    """A tensor's type: its name in PyTorch, and the numpy type of its bits (uint16 for bfloat16, which numpy lacks)."""

    name: str
    bits: str


# The opcodes that torch.save writes (pickle protocol 2). None of them takes more memory than the pickle's length.
_OPCODES = frozenset(
    [
        "PROTO",
        "STOP",
        "MARK",
        "GLOBAL",
        "REDUCE",
        "NEWOBJ",
        "BUILD",
        "BINPERSID",
        "BINPUT",
        "LONG_BINPUT",
        "BINGET",
        "LONG_BINGET",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG1",
        "BINFLOAT",
        "BINUNICODE",
        "EMPTY_TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "TUPLE",
        "EMPTY_LIST",
        "APPEND",
        "APPENDS",
        "EMPTY_DICT",
        "SETITEM",
        "SETITEMS",
    ]
)

_STORAGE_TYPES = {
    "FloatStorage": ElementType("float32", "<f4"),
    "HalfStorage": ElementType("float16", "<f2"),
    "BFloat16Storage": ElementType("bfloat16", "<u2"),
    "DoubleStorage": ElementType("float64", "<f8"),
    "LongStorage": ElementType("int64", "<i8"),
    "IntStorage": ElementType("int32", "<i4"),
    "ShortStorage": ElementType("int16", "<i2"),
    "CharStorage": ElementType("int8", "i1"),
    "ByteStorage": ElementType("uint8", "u1"),
    "BoolStorage": ElementType("bool", "?"),
}


class Namespace:
    """Stands for argparse.Namespace: the values it was saved with."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise pickle.UnpicklingError("the content of a Namespace is not a dict")
        self.values = state


class _Storage(NamedTuple):
    archive: Path
    member: str
    type: ElementType
    elements: int

    def read(self) -> NDArray[Any]:
        numpy_type = np.dtype(self.type.bits)
        with zipfile.ZipFile(self.archive) as archive:
            stored = _read_member(archive, self.member, self.elements * numpy_type.itemsize)
        if len(stored) != self.elements * numpy_type.itemsize:
            raise ConvertError(f"{self.archive}: {self.member} has {len(stored)} bytes, not {self.elements} elements")
        return np.frombuffer(stored, numpy_type)


class Tensor(NamedTuple):
    """A tensor of the checkpoint, whose numbers are still in the file."""

    storage: _Storage
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


class _RebuildTensor:
    """Stands for torch._utils._rebuild_tensor_v2."""

    __slots__ = ()

    def __call__(self, storage: object, offset: object, shape: object, stride: object, *_: object) -> Tensor:
        if not isinstance(storage, _Storage):
            raise pickle.UnpicklingError("a tensor has no storage")
        sizes, steps = _naturals(shape), _naturals(stride)
        (start,) = _naturals((offset,))
        if len(sizes) != len(steps):
            raise pickle.UnpicklingError(f"a tensor has {len(sizes)} dimensions and {len(steps)} strides")
        last = start + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        if start > storage.elements or (0 not in sizes and last >= storage.elements):
            raise pickle.UnpicklingError(f"a tensor reaches beyond its storage, {storage.member}")
        if math.prod(sizes) > storage.elements:
            raise pickle.UnpicklingError(f"a tensor has more elements than its storage, {storage.member}")
        return Tensor(storage, start, sizes, steps)


class _RebuildParameter:
    """Stands for torch._utils._rebuild_parameter: a tensor that is trained."""

    __slots__ = ()

    def __call__(self, tensor: object, *_: object) -> Tensor:
        if not isinstance(tensor, Tensor):
            raise pickle.UnpicklingError("a parameter is not a tensor")
        return tensor


_KNOWN_GLOBALS: dict[tuple[str, str], Any] = {
    ("argparse", "Namespace"): Namespace,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    **{("torch", name): type_ for name, type_ in _STORAGE_TYPES.items()},
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, archive: Path, root: str) -> None:
        super().__init__(file)
        self._archive = archive
        self._root = root

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN_GLOBALS.get((module, name))
        if known is None:
            raise ConvertError(f"{self._archive}: refers to {module}.{name}, which the converter does not run")
        return known

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("a persistent reference is not to a storage")
        _, type_, key, _, elements = pid
        if not isinstance(type_, ElementType) or not isinstance(key, str):
            raise pickle.UnpicklingError("a storage has an unknown type or an invalid name")
        return _Storage(self._archive, f"{self._root}data/{key}", type_, *_naturals((elements,)))


def read_checkpoint(path: Path) -> Any:
    """The saved object, with Tensor and Namespace for tensors and namespaces.

    Raises ConvertError for a file that is not a checkpoint, is broken, or contains any other type.
    """
    if not path.is_file():
        raise ConvertError(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            pickled = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(pickled) != 1:
                raise ConvertError(f"{path}: contains {len(pickled)} pickles named data.pkl, not 1")
            root = pickled[0].removesuffix("data.pkl")
            _check_byte_order(archive, f"{root}byteorder", path)
            content = _read_member(archive, pickled[0], _PICKLE_LIMIT_BYTES)
            _check_opcodes(content)
            return _Unpickler(io.BytesIO(content), path, root).load()
    except zipfile.BadZipFile as error:
        raise ConvertError(
            f"{path}: not a checkpoint of PyTorch 1.6 or later, which is a zip file ({error})"
        ) from error
    except _BROKEN as error:
        raise ConvertError(f"{path}: broken checkpoint: {error}") from error


def _naturals(numbers: object) -> tuple[int, ...]:
    if not isinstance(numbers, tuple) or not all(type(number) is int and number >= 0 for number in numbers):
        raise pickle.UnpicklingError("a size, stride or offset is not a non-negative integer")
    return numbers


def _check_opcodes(pickled: bytes) -> None:
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"its pickle has opcode {opcode.name}, which torch.save never writes")
        if opcode.name == "LONG_BINPUT" and argument > len(pickled):
            raise pickle.UnpicklingError(f"its pickle has memo index {argument}, which exceeds its length")


def _check_byte_order(archive: zipfile.ZipFile, member: str, path: Path) -> None:
    if member in archive.namelist() and (order := _read_member(archive, member, 16)) != b"little":
        raise ConvertError(f"{path}: numbers are stored in byte order {order!r}, not little")


def _read_member(archive: zipfile.ZipFile, member: str, limit_bytes: int) -> bytes:
    """The content of a member. Members are not compressed, so none can be larger than the file."""
    try:
        info = archive.getinfo(member)
    except KeyError as error:
        raise ConvertError(f"{archive.filename}: {member} is missing") from error
    if info.compress_type != zipfile.ZIP_STORED:
        raise ConvertError(f"{archive.filename}: {member} is compressed, which torch.save never does")
    if info.file_size > limit_bytes:
        raise ConvertError(f"{archive.filename}: {member} has {info.file_size} bytes, more than {limit_bytes}")
    try:
        return archive.read(info)
    except (*_BROKEN, zipfile.BadZipFile, OSError) as error:
        raise ConvertError(f"{archive.filename}: {member} is broken: {error}") from error
