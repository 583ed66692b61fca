"""The mark of a part that is done. It says what there is to be, so that what is lost later is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longshort.batch.checked import with_check, without_check
from longshort.batch.shards import Part

BEGIN = "complete-"


class Extent(NamedTuple):
    """How many shards and rows a source has, those of all parts."""

    shards: int
    rows: int


@dataclass(frozen=True, slots=True)
class Mark:
    """All shards of the part are done."""

    part: Part
    # Of every source, in order.
    extents: tuple[Extent, ...]

    @property
    def name(self) -> str:
        return f"{BEGIN}{self.part.index}-of-{self.part.count}.json"

    def content(self) -> bytes:
        return with_check({"part": self.part.index, "parts": self.part.count, "sources": self.extents})


def mark_of(name: str, content: bytes) -> Mark | None:
    """None for what is no whole mark of this name."""
    told = without_check(content)
    if told is None:
        return None
    try:
        mark = Mark(Part(told["part"], told["parts"]), tuple(Extent(*one) for one in told["sources"]))
    except (KeyError, TypeError, ValueError):
        return None
    return mark if mark.name == name else None


def are_all(marks: Sequence[Mark]) -> bool:
    """Whether all parts are done, of any number of them."""
    done = {(mark.part.index, mark.part.count) for mark in marks}
    return any(all((index, count) in done for index in range(count)) for _, count in done)
