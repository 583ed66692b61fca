"""Output folders, local or in an object store. A file in them is complete, or does not exist.

- A local file is written under a temporary name, fsynced and renamed. Then its folder is fsynced.
- A file of an object store (any fsspec path, such as s3://bucket/folder) is put atomically.
- In both, a file counts only if the manifest lists it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from typing import Any, Protocol, TextIO, cast

import fsspec  # type: ignore[import-untyped]

from longshort.batch.inputs.files import is_local, local_path
from longshort.batch.report.failures import BatchError, InUse

# Subfolder of a local output folder for locks and for files that are being written.
UNFINISHED = ".unfinished"
# How many files of an object store are read in one request.
_FILES_PER_READ = 256


class Folder(Protocol):
    """Thread: any. Names are paths relative to the folder, with "/" as separator."""

    # As the user gave it.
    name: str

    def put(self, name: str, content: bytes) -> None:
        """Writes the file, and replaces an older one. Once this returns, a crash of the machine does not lose it.
        Raises BatchError if it cannot be written."""

    def read(self, name: str) -> bytes | None:
        """The content of the file; None if it does not exist. Raises BatchError."""

    def read_all(self, folder: str, begin: str) -> Iterator[tuple[str, bytes]]:
        """Name and content of each file in a subfolder whose name starts with `begin`, by name. Raises BatchError."""

    def remove(self, name: str) -> None:
        """Removes the file, if it exists. Raises BatchError."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Bytes of each file in a subfolder, by its name there; empty if there is no such subfolder."""

    def lock(self, part: int, parts: int) -> Any:
        """Locks the part against other processes until the result is closed. Raises InUse if another holds the lock.
        Object stores have no locks."""


def open_folder(name: str) -> Folder:
    """Opens a path, or an fsspec URL. Raises BatchError."""
    if is_local(name):
        return LocalFolder(local_path(name))
    filesystem, path = fsspec.core.url_to_fs(name)
    return ObjectFolder(name, filesystem, path.rstrip("/"))


class LocalFolder:
    """A folder of this machine, or a mounted one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: set[str] = set()
        # Prefix of this process's temporary files: no two processes write to the same one.
        self._own = f"{os.getpid()}-{secrets.token_hex(4)}"

    def put(self, name: str, content: bytes) -> None:
        target = os.path.join(self.name, name)
        temporary = os.path.join(self.name, UNFINISHED, f"{self._own}-{name.replace('/', '-')}")
        try:
            self._make(os.path.dirname(target))
            self._make(os.path.dirname(temporary))
            try:
                _write_synced(temporary, content)
                os.replace(temporary, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            _sync_folder(os.path.dirname(target))
        except OSError as error:
            raise BatchError(
                f"{target} cannot be written: {error.strerror or error}. The results so far stay valid: free space on"
                " the disk or repair the folder, and run the same command again"
            ) from error

    def read(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self.name, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BatchError(f"{self.name}/{name} cannot be read: {error.strerror or error}") from error

    def read_all(self, folder: str, begin: str) -> Iterator[tuple[str, bytes]]:
        for name in sorted(self.sizes(folder)):
            if name.startswith(begin) and (content := self.read(f"{folder}/{name}")) is not None:
                yield name, content

    def remove(self, name: str) -> None:
        try:
            os.unlink(os.path.join(self.name, name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise BatchError(f"{self.name}/{name} cannot be removed: {error.strerror or error}") from error

    def sizes(self, folder: str) -> dict[str, int]:
        sizes = {}
        try:
            with os.scandir(os.path.join(self.name, folder)) as found:
                for entry in found:
                    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                        if entry.is_file():
                            sizes[entry.name] = entry.stat().st_size
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BatchError(f"{self.name}/{folder} cannot be read: {error.strerror or error}") from error
        return sizes

    def lock(self, part: int, parts: int) -> Any:
        """Part 0 of 1 locks the folder exclusively; other parts share it."""
        folder = os.path.join(self.name, UNFINISHED)
        try:
            self._make(folder)
            with contextlib.ExitStack() as locks:
                whole = locks.enter_context(_open_lock(os.path.join(folder, "lock")))
                _take(whole, fcntl.LOCK_EX if parts == 1 else fcntl.LOCK_SH, f"{self.name} is in use by another run")
                if parts > 1:
                    own = locks.enter_context(_open_lock(os.path.join(folder, f"lock-{part}-of-{parts}")))
                    _take(own, fcntl.LOCK_EX, f"part {part} of {parts} of {self.name} is in use by another run")
                    self._sweep(f"{part}-of-{parts}-")
                    self._own = f"{part}-of-{parts}-{self._own}"
                else:
                    self._sweep("")
                return locks.pop_all()
        except OSError as error:
            raise BatchError(f"{self.name} cannot be written: {error.strerror or error}") from error

    def _sweep(self, begin: str) -> None:
        """Removes temporary files of killed runs. `begin` is a prefix that no running process uses."""
        folder = os.path.join(self.name, UNFINISHED)
        for entry in os.listdir(folder):
            if entry.startswith(begin) and not entry.startswith("lock"):
                os.unlink(os.path.join(folder, entry))

    def _make(self, folder: str) -> None:
        """Makes the folder, and fsyncs its parents."""
        if folder in self._made:
            return
        missing = []
        place = os.path.abspath(folder)
        while not os.path.isdir(place):
            missing.append(place)
            place = os.path.dirname(place)
        for place in reversed(missing):
            with contextlib.suppress(FileExistsError):  # made by another part meanwhile
                os.mkdir(place)
            _sync_folder(os.path.dirname(place))
        self._made.add(folder)


def _open_lock(path: str) -> TextIO:
    return open(path, "a+")  # NFS locks a file for sharing only if it can be read


def _take(file: Any, how: int, refusal: str) -> None:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise InUse(f"{refusal}: wait until it ends, or stop it") from None
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
        # A mounted file system without locks has none, as an object store.


def _write_synced(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ObjectFolder:
    """A folder of an object store, by fsspec. A put is atomic there."""

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        self.name = name
        self._filesystem = filesystem
        self._path = path

    def put(self, name: str, content: bytes) -> None:
        try:
            self._filesystem.pipe_file(f"{self._path}/{name}", content)
        except Exception as error:  # each store has its own errors
            raise BatchError(
                f"{self.name}/{name} cannot be written: {error}. The results so far stay valid: once it can be written,"
                " run the same command again"
            ) from error

    def read(self, name: str) -> bytes | None:
        try:
            return cast(bytes, self._filesystem.cat_file(f"{self._path}/{name}"))
        except FileNotFoundError:
            return None
        except Exception as error:
            raise BatchError(f"{self.name}/{name} cannot be read: {error}") from error

    def read_all(self, folder: str, begin: str) -> Iterator[tuple[str, bytes]]:
        """Reads many files in one request, since each takes a store some milliseconds."""
        names = [name for name in sorted(self.sizes(folder)) if name.startswith(begin)]
        for first in range(0, len(names), _FILES_PER_READ):
            some = {name: f"{self._path}/{folder}/{name}" for name in names[first : first + _FILES_PER_READ]}
            try:
                contents = self._filesystem.cat(list(some.values()))
            except Exception as error:
                raise BatchError(f"{self.name}/{folder} cannot be read: {error}") from error
            yield from ((name, contents[path]) for name, path in some.items())

    def remove(self, name: str) -> None:
        try:
            self._filesystem.rm_file(f"{self._path}/{name}")
        except FileNotFoundError:
            return
        except Exception as error:
            raise BatchError(f"{self.name}/{name} cannot be removed: {error}") from error

    def sizes(self, folder: str) -> dict[str, int]:
        self._filesystem.invalidate_cache()
        try:
            found = self._filesystem.ls(f"{self._path}/{folder}", detail=True)
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise BatchError(f"{self.name}/{folder} cannot be read: {error}") from error
        return {one["name"].rpartition("/")[2]: int(one["size"] or 0) for one in found if one["type"] == "file"}

    def lock(self, part: int, parts: int) -> Any:
        return contextlib.ExitStack()
