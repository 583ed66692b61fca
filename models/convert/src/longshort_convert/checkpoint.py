"""Reads the files of torch.save with numpy alone, and runs no code that they name.

Since PyTorch 1.6, such a file is a zip archive: one pickle, `<root>/data.pkl`, that refers to storages
`<root>/data/<key>`, which contain raw little-endian numbers. Before, it was a row of pickles (a magic number, a
version, the machine's sizes, the object, the storages' keys), followed by each storage: its number of elements as
int64, and its numbers. A storage is read when a tensor in it is read, so an optimizer's state costs nothing.
"""

from __future__ import annotations

import mmap
import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any

from longshort_convert.errors import ConvertError
from longshort_convert.input_files import refuse_other_formats
from longshort_convert.plain_pickle import BROKEN, Placeholder, load, placeholder_type
from longshort_convert.stored_tensors import ElementType, Storage, naturals

_PICKLE_LIMIT_BYTES = 256 << 20
_LEGACY_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_LEGACY_VERSION = 1001


def read_checkpoint(path: Path) -> Any:
    """The saved object, with Tensor, Namespace and Placeholder for tensors, namespaces and unknown types.

    Raises ConvertError for a file that is not a checkpoint, is broken, or is hostile.
    """
    refuse_other_formats(path)
    try:
        if _is_zip(path):
            return _read_zip(path)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _LegacyFile(path, content).read()
    except ConvertError as error:
        raise error if str(path) in str(error) else ConvertError(f"{path}: {error}") from error
    except zipfile.BadZipFile as error:
        raise ConvertError(f"{path}: broken checkpoint: {error}; it may be cut off: copy it again") from error
    except BROKEN as error:
        raise ConvertError(f"{path}: broken checkpoint: {error}") from error


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" or zipfile.is_zipfile(path)


def _read_zip(path: Path) -> Any:
    archive = zipfile.ZipFile(path)  # stays open for the storages, which hold it
    members = archive.namelist()
    pickled = [name for name in members if name.endswith("/data.pkl")]
    if any(name.endswith("/constants.pkl") for name in members):
        raise ConvertError(f"{path}: is a TorchScript program, not a checkpoint; save its state_dict() instead")
    if len(pickled) != 1:
        raise ConvertError(f"{path}: contains {len(pickled)} pickles named data.pkl, not 1")
    root = pickled[0].removesuffix("data.pkl")
    _check_byte_order(archive, f"{root}byteorder", path)

    def storage(pid: tuple[Any, ...]) -> Storage | Placeholder:
        type_, key, elements = _reference(pid)
        if type_ is None:
            return placeholder_type("torch.storage")()
        size = elements * type_.size_bytes
        member = f"{root}data/{key}"
        return Storage(member, type_, elements, lambda: _read_storage(archive, member, size))

    return load(_read_member(archive, pickled[0], _PICKLE_LIMIT_BYTES), storage)


class _LegacyFile:
    """A file of torch.save before PyTorch 1.6."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self._path = path
        self._content = content
        self._storages: dict[str, Storage] = {}
        self._offsets: dict[str, int] = {}  # of the numbers, by key

    def read(self) -> Any:
        if not self._is_legacy():
            raise ConvertError(f"{self._path}: not a checkpoint: neither a file of torch.save nor one of safetensors")
        for _ in range(2):  # the magic number and the version
            self._next_pickle()
        sizes = self._next_pickle()
        if isinstance(sizes, dict) and sizes.get("little_endian") is False:
            raise ConvertError(f"{self._path}: numbers are stored in byte order b'big', not little")
        checkpoint = self._next_pickle()
        self._find_storages(self._next_pickle())
        return checkpoint

    def _is_legacy(self) -> bool:
        try:
            found = self._next_pickle(), self._next_pickle()
        except (*BROKEN, ConvertError):
            return False
        finally:
            self._content.seek(0)
        return found == (_LEGACY_MAGIC_NUMBER, _LEGACY_VERSION)

    def _next_pickle(self) -> Any:
        start = self._content.tell()
        for _ in pickletools.genops(self._content):
            if self._content.tell() - start > _PICKLE_LIMIT_BYTES:
                raise pickle.UnpicklingError(f"a pickle has more than {_PICKLE_LIMIT_BYTES} bytes")
        return load(self._content[start : self._content.tell()], self._storage)

    def _storage(self, pid: tuple[Any, ...]) -> Storage:
        type_, key, elements = _reference(pid)
        if type_ is None:
            raise pickle.UnpicklingError(f"storage {key} has an unknown type of elements")
        if len(pid) > 5 and pid[5] is not None:
            raise pickle.UnpicklingError(f"storage {key} is a view of another, which only PyTorch before 0.4 wrote")
        storage = Storage(key, type_, elements, lambda: self._read_numbers(key))
        return self._storages.setdefault(key, storage)

    def _find_storages(self, keys: object) -> None:
        if not isinstance(keys, list) or any(key not in self._storages for key in keys):
            raise pickle.UnpicklingError("its list of storages names an unknown one")
        offset = self._content.tell()
        for key in keys:
            storage = self._storages[key]
            elements = int.from_bytes(self._content[offset : offset + 8], "little")
            self._offsets[key] = offset + 8
            offset += 8 + storage.size_bytes
            if elements != storage.elements or offset > len(self._content):
                raise pickle.UnpicklingError(f"storage {key} does not have its {storage.elements} elements")
        if offset != len(self._content) or len(self._offsets) != len(self._storages):
            raise pickle.UnpicklingError("its storages are not those that its tensors need")

    def _read_numbers(self, key: str) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._offsets[key])
            content = file.read(self._storages[key].size_bytes)
        if len(content) != self._storages[key].size_bytes:
            raise ConvertError(f"{self._path}: storage {key} is cut off")
        return content


def _reference(pid: tuple[Any, ...]) -> tuple[ElementType | None, str, int]:
    """Element type (None: unknown), key and number of elements of a persistent reference to a storage."""
    _, type_, key, _, elements = pid[:5]
    unknown = isinstance(type_, type) and issubclass(type_, Placeholder)
    if not (unknown or isinstance(type_, ElementType)) or not isinstance(key, str):
        raise pickle.UnpicklingError("a storage has an unknown type or an invalid name")
    return None if unknown else type_, key, naturals((elements,))[0]


def _check_byte_order(archive: zipfile.ZipFile, member: str, path: Path) -> None:
    if member in archive.namelist() and (order := _read_member(archive, member, 16)) != b"little":
        raise ConvertError(f"{path}: numbers are stored in byte order {order!r}, not little")


def _read_storage(archive: zipfile.ZipFile, member: str, size_bytes: int) -> bytes:
    stored = _read_member(archive, member, size_bytes)
    if len(stored) != size_bytes:
        raise ConvertError(f"{archive.filename}: {member} has {len(stored)} bytes, not {size_bytes}")
    return stored


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
    except (*BROKEN, zipfile.BadZipFile, OSError) as error:
        raise ConvertError(f"{archive.filename}: {member} is broken: {error}") from error
