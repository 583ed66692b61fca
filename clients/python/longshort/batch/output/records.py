"""The files of a manifest: entries of shards that are done, and completion markers of parts.

Each is a JSON object with a checksum of itself, which detects what a broken disk has changed. The marker of a part
records how many shards and rows exist, so a later loss is detected.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longshort.batch.inputs.shards import Extent, Part, shard_name

SHARD_BEGIN = "shard-"
MARKER_BEGIN = "complete-"


def json_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def add_checksum(fields: dict[str, Any]) -> bytes:
    return json_line(fields | {"check": _checksum(fields)})


def parse_checksummed(content: bytes) -> dict[str, Any] | None:
    """The object without its checksum; None if the checksum is missing or wrong."""
    try:
        fields = json.loads(content)
        return fields if isinstance(fields, dict) and fields.pop("check") == _checksum(fields) else None
    except (ValueError, KeyError):
        return None


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json_line(fields)).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Written:
    """A file of output."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A shard that is done."""

    source: int
    shard: int
    # The input file; the first one if the source has several text files.
    input: str
    # Its rows in the source, and their offsets there (RawRow.begin).
    first_row: int
    rows: int
    begin: int
    end: int
    # How many rows have results, and errors.
    scored: int
    errors: int
    # Tokens that servers have read.
    tokens: int
    # BLAKE2b of all rows' keys and texts, in order.
    rows_hash: str
    files: tuple[Written, ...]
    # The most frequent errors, and how many rows have them.
    causes: dict[str, int] = dataclasses.field(default_factory=dict)
    # How many rows lack a field that is named to be carried, by its name.
    lacking: dict[str, int] = dataclasses.field(default_factory=dict)
    # How many carried values are null, since the type of their column in the run does not have them, by its name.
    lost: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{SHARD_BEGIN}{shard_name(self.source, self.shard)}.json"

    def content(self) -> bytes:
        return add_checksum(dataclasses.asdict(self))


def parse_entry(name: str, content: bytes) -> Entry | None:
    """Parses an entry; None if it is damaged, or belongs to another name."""
    fields = parse_checksummed(content)
    if fields is None:
        return None
    try:
        entry = Entry(**fields | {"files": tuple(Written(**one) for one in fields["files"])})
    except (KeyError, TypeError):
        return None
    return entry if entry.name == name else None


@dataclass(frozen=True, slots=True)
class CompletionMarker:
    """All shards of the part are done."""

    part: Part
    # The extent of every source, in order.
    extents: tuple[Extent, ...]

    @property
    def name(self) -> str:
        return f"{MARKER_BEGIN}{self.part.index}-of-{self.part.count}.json"

    def content(self) -> bytes:
        return add_checksum({"part": self.part.index, "parts": self.part.count, "sources": self.extents})


def parse_marker(name: str, content: bytes) -> CompletionMarker | None:
    """Parses a marker; None if it is damaged, or belongs to another name."""
    fields = parse_checksummed(content)
    if fields is None:
        return None
    try:
        extents = tuple(Extent(*one) for one in fields["sources"])
        marker = CompletionMarker(Part(fields["part"], fields["parts"]), extents)
    except (KeyError, TypeError, ValueError):
        return None
    return marker if marker.name == name else None


def cover_all_parts(markers: Sequence[CompletionMarker]) -> bool:
    """Whether all parts are done, for any number of parts."""
    done = {(marker.part.index, marker.part.count) for marker in markers}
    return any(all((index, count) in done for index in range(count)) for _, count in done)
