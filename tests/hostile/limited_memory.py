"""A cgroup that limits the memory of a server, where this machine allows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def _own_group(controllers: str) -> Path | None:
    """This process's group in the hierarchy of these controllers; v2 has none."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, found, path = line.split(":", 2)
        if controllers in found.split(","):
            return ROOT / controllers / path.lstrip("/")
    return None


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path | None]:
    """A group below the own one, so that every limit of that one holds, too. Its processes must have ended at the end.
    None if this machine allows none: the server's budgets are then shares of the whole machine's memory."""
    for parent, file in ((_own_group("memory"), "memory.limit_in_bytes"), (_own_group(""), "memory.max")):
        if parent is None:
            continue
        group = parent / f"longshort-hostile-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
        try:
            with (group / file).open("r+") as limit:  # which only a cgroup has
                limit.write(str(limit_bytes))
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        try:
            yield group
        finally:
            group.rmdir()
        return
    yield None
