"""Finds the input files of a run by paths, folders and patterns, and identifies them by size and hash."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from longshort.batch.inputs.compression import ENDINGS
from longshort.batch.inputs.files import is_local, local_path, open_input
from longshort.batch.inputs.finding import expand
from longshort.batch.inputs.zstd_frames import check_frame
from longshort.batch.report.counts import LeftOut
from longshort.batch.report.failures import Refused
from longshort.inputs import HTML, mistaken

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
    *((end, "text") for end in (".txt", ".text", ".md", ".rst", ".tex", ".html", ".htm", ".xml")),
)
# How compressed files begin, and by what program.
_COMPRESSED = {
    "gz": (b"\x1f\x8b\x08", "gzip"),
    "zst": (b"\x28\xb5\x2f\xfd", "zstd"),
    "bz2": (b"BZh", "bzip2"),
    "xz": (b"\xfd7zXZ\0", "xz"),
}
_PLAIN_TEXT, _PARQUET = "plain text", "a Parquet file"
# Beginnings of files that are no text.
_MAGICS = (
    *((magic, f"compressed by {program}") for magic, program in _COMPRESSED.values()),
    (b"\x04\x22\x4d\x18", "compressed by lz4"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"PAR1", _PARQUET),
    (b"%PDF-", "a PDF file"),
)
# What a file of a format may be.
_CONTENTS: dict[Format, tuple[str, ...]] = {
    "jsonl": (_PLAIN_TEXT,),
    "parquet": (_PARQUET,),
    "text": (_PLAIN_TEXT, HTML),
}
# Bytes that text does not have, and in how many bytes of a file they are looked for.
_CONTROLS = set(range(9))
_SHOWING_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Input:
    """One file."""

    # The path as given or found. It is part of each row's key.
    name: str
    format: Format
    # "gz", "zst", "bz2", "xz" or "".
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


def find(arguments: Sequence[str], format: Format | None = None, left_out: LeftOut | None = None) -> list[Input]:
    """Finds the files of paths, folders and patterns (local, or fsspec URLs), in this order. The files of a folder
    (without hidden ones) or pattern are sorted by name. `format` is the format of all files; by default, the end of its
    name determines each file's.

    left_out  counts the files of folders and patterns that are not read, since their names are hidden or have no ending
              of a format

    Errors: Refused if a file is missing, found twice, or cannot be read.
    """
    counted = left_out if left_out is not None else LeftOut()
    names: list[str] = []
    for argument in arguments:
        names += expand(argument, lambda name: format is not None or _format_of(name) is not None, counted)
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


def sources_of(inputs: Sequence[Input]) -> list[Source]:
    """Consecutive text files are one source. Any other file is a source of its own."""
    found: list[Source] = []
    for is_text, files in itertools.groupby(inputs, lambda one: one.format == "text" and not one.compression):
        together = tuple(files)
        groups = [together] if is_text else [(file,) for file in together]
        found += [Source(len(found) + place, group) for place, group in enumerate(groups)]
    return found


def _format_of(name: str) -> Format | None:
    """The format by the end of the name; None if there is none."""
    stem = name.lower().removesuffix(_compressed_end(name))
    return next((format for end, format in _ENDS if stem.endswith(end)), None)


def _compressed_end(name: str) -> str:
    return next((end for end in ENDINGS if name.lower().endswith(end)), "")


def _inspect(name: str, format: Format | None) -> Input:
    try:
        size, digest, head = _fingerprint(name)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror or error}") from error
    known = format or _format_of(name)
    if known is None:
        raise Refused(
            f"{name} is not read, since its name has none of these endings: {', '.join(end for end, _ in _ENDS)} (also"
            f" {', '.join(ENDINGS)}). Set --format (format=) to one of {', '.join(FORMATS)} to read it"
        )
    found = Input(name, known, ENDINGS.get(_compressed_end(name), ""), size, digest)
    _check_content(found, head)
    return found


def _check_content(file: Input, head: bytes) -> None:
    """Raises Refused for a file whose beginning shows that it would be read as something else than it is."""
    name, compression = file.name, file.compression
    if file.format == "parquet" and compression:
        raise Refused(f"{name}: a Parquet file compresses its columns, so it must not be compressed by {compression}")
    if file.format == "text" and compression:
        raise Refused(f"{name}: a text file must be uncompressed. If it holds JSON lines, set format=jsonl")
    if compression == "zst":
        try:
            check_frame(head)
        except ValueError as error:
            raise Refused(f"{name} is not read: {error}") from None
    content, wanted = _content(head), str(file.format)
    right: Collection[str] | None = _CONTENTS.get(file.format)
    if compression:
        program = _COMPRESSED[compression][1]
        wanted, right = f"{wanted} in {program}", (f"compressed by {program}",)
    # warcio reads uncompressed records under the name of compressed ones.
    if content and right is not None and content not in right and (file.format, compression) != ("warc", "gz"):
        raise Refused(f"{name} is not read as {wanted}: its content is {content}. Give it the name of what it is")


def _content(head: bytes) -> str:
    """What a file is, by its first bytes; empty if they do not show it."""
    if what := next((what for magic, what in _MAGICS if head.startswith(magic)), mistaken(head)):
        return what
    return _PLAIN_TEXT if head and not _CONTROLS & set(head[:_SHOWING_BYTES]) else ""


def _fingerprint(name: str) -> tuple[int, str, bytes]:
    """Size of the file, the hash of its head and tail, and its head. Raises OSError."""
    with open_input(name) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(HASHED_BYTES)
        hashed = hashlib.sha256(head)
        if size > HASHED_BYTES:
            file.seek(max(HASHED_BYTES, size - HASHED_BYTES))
            hashed.update(file.read(HASHED_BYTES))
    return size, hashed.hexdigest(), head


def check_unchanged(file: Input) -> None:
    """Raises Refused if the file has changed since the run began."""
    try:
        same = _fingerprint(file.name)[:2] == (file.bytes, file.digest)
    except OSError as error:
        raise Refused(f"the input {file.name} can no longer be read: {error.strerror or error}") from error
    if not same:
        raise changed(file)


def changed(file: Input) -> Refused:
    return Refused(
        f"the input {file.name} has changed while the run read it. The results so far are of the old content: start"
        " again with another folder"
    )
