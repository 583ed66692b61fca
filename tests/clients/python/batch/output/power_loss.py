"""A disk that loses what was not fsynced: what is left of files after each of the calls by which they were written.

Stands in the place of the module `os` in longshort.batch.output.folders, makes every call, and keeps a record of it.
From the record it says what a power cut behind any call may leave:

- of a file that was not fsynced since it was written: all, any part of it, or zeros;
- of a folder that was not fsynced: the names that were made or moved since may be as before. Each by itself: a disk
  keeps no order.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any


class Disk:
    """The calls that matter, recorded."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: dict[int, Path] = {}
        # Names of calls with their paths, and what was written.
        self.record: list[tuple[str, Path, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        self._open[descriptor] = Path(os.path.abspath(path))
        if flags & os.O_CREAT:
            self._note("create", self._open[descriptor])
        return descriptor

    def write(self, descriptor: int, content: Any) -> int:
        written = os.write(descriptor, content)
        self._note("write", self._open[descriptor], bytes(content[:written]))
        return written

    def fsync(self, descriptor: int) -> None:
        self._note("fsync", self._open[descriptor])

    def replace(self, old: str, new: str) -> None:
        os.replace(old, new)
        self._note("replace", Path(os.path.abspath(old)), Path(os.path.abspath(new)))

    def mkdir(self, path: str) -> None:
        os.mkdir(path)
        self._note("mkdir", Path(os.path.abspath(path)))

    def _note(self, call: str, path: Path, more: Any = None) -> None:
        self.record.append((call, path, more))

    def left_behind(self, calls: int, draw: random.Random, into: Path) -> None:
        """Writes below `into` what a power cut after so many calls may leave of what stood below the root."""
        files = _Files(draw)
        for call, path, more in self.record[:calls]:
            files.apply(call, path, more)
        into.mkdir()
        for path, content in files.after_the_cut().items():
            target = into / path.relative_to(self._root)
            if content is None:
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


class _Files:
    """Contents by number; names as they are, as they surely are on disk, and what may have changed since."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._now: dict[Path, int | None] = {}  # None: a folder
        self._sure: dict[Path, int | None] = {}
        self._written: list[bytes] = []
        self._synced: list[bytes] = []

    def apply(self, call: str, path: Path, more: Any) -> None:
        if call == "create":
            self._now[path] = len(self._written)
            self._written.append(b"")
            self._synced.append(b"")
        elif call == "write":
            number = self._now[path]
            assert number is not None
            self._written[number] += more
        elif call == "replace":
            self._now[more] = self._now.pop(path)
        elif call == "mkdir":
            self._now[path] = None
        elif path in self._now and self._now[path] is not None:
            number = self._now[path]
            assert number is not None
            self._synced[number] = self._written[number]
        else:
            # A folder: its names are sure now.
            for names in (self._sure, self._now):
                for name in [name for name in names if name.parent == path]:
                    if names is self._sure and name not in self._now:
                        del self._sure[name]
                    elif names is self._now:
                        self._sure[name] = self._now[name]

    def after_the_cut(self) -> dict[Path, bytes | None]:
        found: dict[Path, bytes | None] = {}
        for name in sorted({*self._sure, *self._now}):
            choices = [names[name] for names in (self._sure, self._now) if name in names]
            absent = name not in self._sure or name not in self._now
            number = self._draw.choice([*choices, *(["absent"] if absent else [])])  # type: ignore[list-item]
            if number == "absent" or (name.parent not in found and name.parent in {*self._now, *self._sure}):
                continue
            found[name] = None if number is None else self._content(number)  # type: ignore[arg-type]
        return found

    def _content(self, number: int) -> bytes:
        written, synced = self._written[number], self._synced[number]
        if written == synced:
            return written
        lost = len(written) - len(synced)
        kept = self._draw.randrange(lost + 1)
        return self._draw.choice([synced, written, written[: len(synced) + kept], synced + bytes(lost)])
