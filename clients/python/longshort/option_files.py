"""Files that options name: tokens, certificates, keys. One that is not there, or no file, never blocks a program."""

from __future__ import annotations

import os
import select
import stat
import time

# How long a FIFO's writer has.
_WAIT_SECONDS = 10.0
_MAX_BYTES = 1 << 20
_KINDS = {stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
# What was read of FIFOs, by device and inode: a shell's <(command) can be read only once.
_read_fifos: dict[tuple[int, int], bytes] = {}


def read_option_file(file: str | os.PathLike[str], option: str) -> bytes:
    """Reads a regular file; or a FIFO to its end, in 10 seconds at most and once in a process. Raises ValueError, which
    names the option and the file."""
    name = f"{option}={os.fspath(file)}"
    try:
        # Without O_NONBLOCK, opening a FIFO waits for its writer.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _read(descriptor, name)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from error


def _read(descriptor: int, name: str) -> bytes:
    status = os.fstat(descriptor)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        return _content(descriptor, name, float("inf"))
    if kind != stat.S_IFIFO:
        raise ValueError(f"{name} is {_KINDS.get(kind, 'a device')}; it must be a regular file or a FIFO")
    key = (status.st_dev, status.st_ino)
    if key not in _read_fifos:
        _read_fifos[key] = _content(descriptor, name, time.monotonic() + _WAIT_SECONDS)
    return _read_fifos[key]


def _content(descriptor: int, name: str, end: float) -> bytes:
    """The content up to the end of the file. `end`: the time by which a FIFO's writer has closed it."""
    content = b""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while len(content) <= _MAX_BYTES:
        left = end - time.monotonic()
        if left < float("inf") and not waiting.poll(max(0.0, left) * 1000):
            raise ValueError(
                f"{name} is a FIFO that no program has written to its end within {_WAIT_SECONDS:g} s: write it to a"
                " file, or give <(COMMAND) to a command that ends sooner"
            )
        if not (part := os.read(descriptor, _MAX_BYTES)):
            return content
        content += part
    raise ValueError(f"{name} has more than {_MAX_BYTES} bytes, which is the limit")
