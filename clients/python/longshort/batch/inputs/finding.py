"""Finds files by paths, folders and patterns, local or fsspec URLs, and counts those that are left out."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

import fsspec  # type: ignore[import-untyped]

from longshort.batch.inputs.files import is_local, local_path
from longshort.batch.report.counts import HIDDEN, LOOP, LeftOut, described_files
from longshort.batch.report.failures import Refused

# Endings of files that are not written completely.
_UNFINISHED = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".swp", ".bak", ".lock", "~")
_MAGIC = re.compile(r"[*?[]")


def expand(argument: str, is_read: Callable[[str], bool], left_out: LeftOut) -> list[str]:
    """The files of a path, folder or pattern, by name. A path of a file is itself, whatever its name.

    is_read  whether the name of a file in a folder or of a pattern is one that is read

    Errors: Refused if there are none, or if a folder cannot be read.
    """
    if is_local(argument):
        path = local_path(argument)
        if os.path.isdir(path):
            found = _of_folder(path, left_out)
        elif os.path.lexists(path) or not _MAGIC.search(path):
            return [path]
        else:
            found = _of_pattern(path, left_out)
    else:
        filesystem, path = fsspec.core.url_to_fs(argument)
        try:
            if not _MAGIC.search(path) and not filesystem.isdir(path):
                if not filesystem.exists(path):
                    raise Refused(f"{argument}: there is no such file")
                return [filesystem.unstrip_protocol(path)]
            found = _of_url(filesystem, path, left_out)
        except Refused:
            raise
        except Exception as error:  # each store has its own errors
            raise Refused(f"{argument} cannot be read: {error}") from error
    kept: list[str] = []
    before = Counter(left_out.counts)
    for name in sorted(found):
        if is_read(name) and not name.lower().endswith(_UNFINISHED):
            kept.append(name)
        else:
            left_out.add(name)
    if not kept and (counts := left_out.counts - before):
        raise Refused(
            f"{argument}: none of its files is read: {described_files(counts)}. Set --format (format=) to read files of"
            " other names"
        )
    if not kept:
        raise Refused(f"{argument}: there is no such file")
    return kept


def finds(argument: str, file: str) -> bool:
    """Whether the argument would find the file, once it is there. Links are followed in the paths themselves only."""
    if is_local(argument) != is_local(file):
        return False
    parts = _parts(file)
    if _MAGIC.search(argument) and not (is_local(argument) and os.path.lexists(local_path(argument))):
        return _matches(_parts(argument), parts)
    folder = _parts(argument)
    below = parts[len(folder) :]
    return parts[: len(folder)] == folder and bool(below) and not any(part.startswith(HIDDEN) for part in below)


def _parts(name: str) -> list[str]:
    return (os.path.realpath(local_path(name)) if is_local(name) else name.rstrip("/")).split("/")


def _matches(pattern: list[str], parts: list[str]) -> bool:
    """Whether glob finds the path by the pattern."""
    if not pattern or not parts:
        return not pattern and not parts
    is_hidden = parts[0].startswith(HIDDEN) and not pattern[0].startswith(HIDDEN)
    if pattern[0] == "**":
        ends = len(pattern) == len(parts) == 1
        return _matches(pattern[1:], parts) or (not is_hidden and (ends or _matches(pattern, parts[1:])))
    return not is_hidden and fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(pattern[1:], parts[1:])


def _of_folder(top: str, left_out: LeftOut) -> Iterator[str]:
    """Follows links. A link to a folder above itself is left out. Raises Refused for a folder that is found twice:
    a few links may lead to it in a million ways."""
    folders: list[tuple[str, frozenset[tuple[int, int]]]] = [(top, frozenset())]
    seen: dict[tuple[int, int], str] = {}
    while folders:
        folder, above = folders.pop()
        try:
            own = os.stat(folder)
            with os.scandir(folder) as opened:
                entries = list(opened)
        except OSError as error:
            raise Refused(f"the folder {folder} cannot be read: {error.strerror or error}") from error
        if (own.st_dev, own.st_ino) in above:
            left_out.add_loop(folder)
            continue
        if (also := seen.setdefault((own.st_dev, own.st_ino), folder)) != folder:
            raise Refused(f"the folder {folder} is given twice (also as {also}): its rows would be scored twice")
        for entry in entries:
            is_folder = os.path.isdir(entry.path)
            if entry.name.startswith(HIDDEN):
                left_out.add(entry.name + ("/" if is_folder else ""))
            elif is_folder:
                folders.append((entry.path, above | {(own.st_dev, own.st_ino)}))
            else:
                yield entry.path


def _of_pattern(pattern: str, left_out: LeftOut) -> Iterator[str]:
    _check_loops_of(pattern)
    _check_folders_of(pattern)
    for name in glob.iglob(pattern, recursive=True):
        if os.path.isdir(name):
            if "**" not in pattern:
                left_out.add(f"{name.rstrip('/')}/")
        elif _is_hidden_match(name, pattern):
            left_out.add(name)
        else:
            yield name


def _is_hidden_match(name: str, pattern: str) -> bool:
    """Whether the file or a folder that the pattern does not name is hidden. A part of the pattern that begins like
    hidden names means them."""
    magic = _MAGIC.search(pattern)
    fixed = pattern[: magic.start() if magic else None].rpartition("/")[0].lstrip("/")
    meant = {part[0] for part in pattern.split("/") if part.startswith(HIDDEN)}
    parts = name.lstrip("/").removeprefix(fixed).split("/")
    return any(part.startswith(HIDDEN) and part[0] not in meant for part in parts)


def _check_loops_of(pattern: str) -> None:
    """Raises Refused for a link that `**` would follow again and again."""
    above, recursive, _ = f"/{pattern}/".partition("/**/")
    if not recursive:
        return
    for top in filter(os.path.isdir, glob.iglob(above[1:] or ("/" if pattern.startswith("/") else "."))):
        found = LeftOut()
        deque(_of_folder(top, found), maxlen=0)
        if loop := next((name for name in found.counts if name.endswith(LOOP)), None):
            raise Refused(f"{pattern} would never end: {loop}. Give the folder {top} itself")


def _check_folders_of(pattern: str) -> None:
    """Raises Refused for a folder in which the pattern cannot search. glob passes over it."""
    folder, name = os.path.split(pattern)
    while name:
        if _MAGIC.search(name):
            for place in glob.iglob(folder or ".", recursive=True):
                try:
                    if stat.S_ISDIR(os.stat(place).st_mode):
                        os.scandir(place).close()
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise Refused(f"the folder {place} cannot be read: {error.strerror or error}") from error
        folder, name = os.path.split(folder)


def _of_url(store: Any, path: str, left_out: LeftOut) -> Iterator[str]:
    is_pattern = bool(_MAGIC.search(path))
    top = path.rstrip("/")
    for name, entry in (store.glob if is_pattern else store.find)(path, detail=True).items():
        if entry["type"] == "directory":
            if "**" not in path:
                left_out.add(f"{name.rstrip('/')}/")
        elif _is_hidden_match(name, path) if is_pattern else _is_hidden_below(name, top):
            left_out.add(name)
        else:
            yield store.unstrip_protocol(name)


def _is_hidden_below(name: str, top: str) -> bool:
    return any(part.startswith(HIDDEN) for part in name.removeprefix(top).strip("/").split("/"))
