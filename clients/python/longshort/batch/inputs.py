"""Finds the input files of a run by paths, folders and patterns, and identifies them by size and hash."""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import fsspec  # type: ignore[import-untyped]

from longshort.batch.failures import Refused
from longshort.batch.files import is_local, local_path, open_input

Format = Literal["jsonl", "parquet", "warc", "text"]
FORMATS: tuple[Format, ...] = ("jsonl", "parquet", "warc", "text")
# How many bytes of the file's head, and of its tail, are hashed.
HASHED_BYTES = 64 << 10
_ENDS: tuple[tuple[str, Format], ...] = (
    (".jsonl", "jsonl"),
    (".ndjson", "jsonl"),
    (".parquet", "parquet"),
    (".warc", "warc"),
    (".wet", "warc"),
)


@dataclass(frozen=True, slots=True)
class Input:
    """One file."""

    # The path as given or found. It is part of each row's key.
    name: str
    format: Format
    # "gz", "zst" or "".
    compression: str
    # Size of the file as it is stored.
    bytes: int
    # SHA-256 of the first and the last 64 KiB, in hex.
    digest: str


@dataclass(frozen=True, slots=True)
class Source:
    """What is cut into shards: a file with many rows, or consecutive text files, each of which is one row."""

    # Index among all sources of the run.
    index: int
    files: tuple[Input, ...]

    @property
    def format(self) -> Format:
        return self.files[0].format

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def find(arguments: Sequence[str], format: Format | None = None) -> list[Input]:
    """Finds the files of paths, folders and patterns (local, or fsspec URLs), in this order. The files of a folder
    (without hidden ones) or pattern are sorted by name. `format` is the format of all files; by default, the end of its
    name determines each file's.

    Errors: Refused if a file is missing, found twice, or cannot be read.
    """
    names: list[str] = []
    for argument in arguments:
        names += _expand(argument)
    seen: dict[str, str] = {}
    for name in names:
        place = os.path.realpath(local_path(name)) if is_local(name) else name
        if place in seen:
            also = f" (also as {seen[place]})" if seen[place] != name else ""
            raise Refused(f"the input {name} is given twice{also}: its rows would be scored twice")
        seen[place] = name
    if not names:
        raise Refused("no input is given")
    return [_inspect(name, format) for name in names]


def sources(inputs: Sequence[Input]) -> list[Source]:
    """Consecutive text files are one source. Any other file is a source of its own."""
    found: list[Source] = []
    for is_text, files in itertools.groupby(inputs, lambda one: one.format == "text" and not one.compression):
        together = tuple(files)
        groups = [together] if is_text else [(file,) for file in together]
        found += [Source(len(found) + place, group) for place, group in enumerate(groups)]
    return found


def _expand(argument: str) -> list[str]:
    if not is_local(argument):
        return _expand_url(argument)
    path = local_path(argument)
    if os.path.isdir(path):
        found = sorted(_of_folder(path))
    elif os.path.exists(path) or not re.search(r"[*?[]", path):
        return [path]
    else:
        found = [name for name in sorted(glob.glob(path, recursive=True)) if not os.path.isdir(name)]
    if not found:
        raise Refused(f"{argument}: there is no such file")
    return found


def _of_folder(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(place, name) for name in names if not name.startswith("."))


def _expand_url(argument: str) -> list[str]:
    filesystem, path = fsspec.core.url_to_fs(argument)
    try:
        if re.search(r"[*?[]", path):
            found = [name for name in filesystem.glob(path) if not filesystem.isdir(name)]
        elif filesystem.isdir(path):
            found = filesystem.find(path)
        else:
            found = [path] if filesystem.exists(path) else []
    except OSError as error:
        raise Refused(f"{argument} cannot be read: {error}") from error
    if not found:
        raise Refused(f"{argument}: there is no such file")
    return [filesystem.unstrip_protocol(name) for name in sorted(found)]


def _inspect(name: str, format: Format | None) -> Input:
    stem, compression = name.lower(), ""
    for end, kind in ((".gz", "gz"), (".zst", "zst")):
        if stem.endswith(end):
            stem, compression = stem.removesuffix(end), kind
    known: Format = next((one for end, one in _ENDS if stem.endswith(end)), "text")
    try:
        size, digest = _fingerprint(name)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror or error}") from error
    found = Input(name, format or known, compression, size, digest)
    if found.format == "parquet" and compression:
        raise Refused(f"{name}: a Parquet file compresses its columns, so it must not be compressed by {compression}")
    if found.format == "warc" and compression == "zst":
        raise Refused(f"{name}: a WARC file must be uncompressed, or compressed by gzip")
    if found.format == "text" and compression:
        raise Refused(f"{name}: a text file must be uncompressed. If it holds JSON lines, set format=jsonl")
    return found


def _fingerprint(name: str) -> tuple[int, str]:
    """Size of the file, and the hash of its head and tail. Raises OSError."""
    with open_input(name) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        hashed = hashlib.sha256(file.read(HASHED_BYTES))
        if size > HASHED_BYTES:
            file.seek(max(HASHED_BYTES, size - HASHED_BYTES))
            hashed.update(file.read(HASHED_BYTES))
    return size, hashed.hexdigest()


def check_unchanged(file: Input) -> None:
    """Raises Refused if the file has changed since the run began."""
    try:
        same = _fingerprint(file.name) == (file.bytes, file.digest)
    except OSError as error:
        raise Refused(f"the input {file.name} can no longer be read: {error.strerror or error}") from error
    if not same:
        raise Refused(
            f"the input {file.name} has changed while the run read it. The results so far are of the old content: start"
            " again with another folder"
        )
