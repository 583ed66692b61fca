"""Which files clang-tidy has found clean, by the content of all that it read of this project."""

from __future__ import annotations

import hashlib
import re
import shlex
from functools import cache
from pathlib import Path

INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class CleanFiles:
    """Remembers keys of files in a folder, an empty file for each.

    Two files have one key only if they and all headers of the project that they include, directly or not, have the same
    content and names, and if the compiler's arguments and `tools`, what else a result depends on, are the same.
    """

    def __init__(self, folder: Path, root: Path, tools: str) -> None:
        self._folder = folder
        self._root = root
        self._tools = tools
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, key: str) -> bool:
        return (self._folder / key).exists()

    def add(self, key: str) -> None:
        (self._folder / key).touch()

    def key(self, command: dict[str, str]) -> str:
        """`command` is an entry of compile_commands.json. Names are taken relative to the checkout, so that another
        checkout finds what this one added."""
        arguments = shlex.split(command["command"])
        build = Path(command["directory"])
        folders = [build / word[2:] for word in arguments if word.startswith("-I")]
        folders += [build / after for word, after in zip(arguments, arguments[1:], strict=False) if word == "-isystem"]
        own = [folder for folder in folders if is_own(folder, self._root)]
        parts = [self._tools, *(word.replace(str(self._root), ".") for word in arguments)]
        for path in sorted(with_includes(build / command["file"], tuple(own))):
            parts += [str(path.relative_to(self._root)), digest(path)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_own(folder: Path, root: Path) -> bool:
    return folder.is_relative_to(root) and ".venv" not in folder.relative_to(root).parts


def with_includes(path: Path, folders: tuple[Path, ...]) -> set[Path]:
    """The file and every header below these folders that it includes, whatever the preprocessor's conditions say."""
    found, left = set(), [path.resolve()]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += included(path, folders)
    return found


@cache
def included(path: Path, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    names = [name.decode() for name in INCLUDE.findall(path.read_bytes())]
    candidates = (folder / name for name in names for folder in (path.parent, *folders))
    return tuple(candidate.resolve() for candidate in candidates if candidate.is_file())


@cache
def digest(path: Path) -> str:
    """Of the content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
