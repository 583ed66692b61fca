"""Completion markers. The marker of a part records how many shards and rows exist, so a later loss is detected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longshort.batch.inputs.shards import Part
from longshort.batch.output.checksummed_json import add_checksum, parse_checksummed

BEGIN = "complete-"


class Extent(NamedTuple):
    """How many shards and rows a source has in all parts."""

    shards: int
    rows: int


@dataclass(frozen=True, slots=True)
class CompletionMarker:
    """All shards of the part are done."""

    part: Part
    # The extent of every source, in order.
    extents: tuple[Extent, ...]

    @property
    def name(self) -> str:
        return f"{BEGIN}{self.part.index}-of-{self.part.count}.json"

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
