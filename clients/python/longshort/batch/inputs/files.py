"""Opens and reads input files, local or of an object store."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import BinaryIO, cast

import fsspec  # type: ignore[import-untyped]


def is_local(name: str) -> bool:
    return "://" not in name or name.startswith("file://")


def local_path(name: str) -> str:
    return name.removeprefix("file://")


def open_input(name: str) -> BinaryIO:
    """Opens an input file for reading; it is seekable. Raises OSError, also for what is no regular file: a FIFO would
    wait for its writer, and cannot be read twice."""
    if is_local(name):
        # Without O_NONBLOCK, opening a FIFO waits.
        descriptor = os.open(local_path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, f"it is {_kind(mode)}; inputs must be regular files: write it to a file first")
        return open(descriptor, "rb")
    filesystem, path = fsspec.core.url_to_fs(name)
    return cast(BinaryIO, filesystem.open(path, "rb"))


def read_ranges(name: str, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
    """Reads the bytes from the beginning to the end of each range, or of the file; from an object store at the same
    time. Raises OSError."""
    if is_local(name):
        with open_input(name) as file:
            return [os.pread(file.fileno(), end - begin, begin) for begin, end in ranges]
    filesystem, path = fsspec.core.url_to_fs(name)
    begins, ends = [begin for begin, _ in ranges], [end for _, end in ranges]
    return cast(list[bytes], filesystem.cat_ranges([path] * len(ranges), begins, ends, on_error="raise"))


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
    return kinds.get(stat.S_IFMT(mode), "a device")
