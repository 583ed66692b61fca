"""The cost of the ends of texts that the cache keeps, so that other texts can continue there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

KINDS = ("window", "segment", "open_chunk")


@dataclass(frozen=True)
class KeptEnds:
    """By kind of page; from the server's metrics while nothing runs and no session is parked."""

    # Ends that are kept.
    count: int
    # Pages that one of them keeps, on average.
    pages: dict[str, float]
    page_bytes: dict[str, int]
    # Pages of the whole cache.
    capacity: dict[str, int]

    @classmethod
    def from_metrics(cls, metric: Callable[..., float]) -> KeptEnds | None:
        """`metric` is as ServerProcess.metric. None if no end is kept."""
        count = int(metric("longshort_cache_ends"))
        if count == 0:
            return None
        return cls(
            count,
            {kind: metric("longshort_cache_pages", kind=kind, state="kept") / count for kind in KINDS},
            {kind: int(metric("longshort_cache_page_bytes", kind=kind)) for kind in KINDS},
            {kind: int(metric("longshort_cache_pages", kind=kind)) for kind in KINDS},
        )

    @property
    def bytes_of_one(self) -> float:
        return sum(self.pages[kind] * self.page_bytes[kind] for kind in KINDS)

    @property
    def cache_bytes(self) -> int:
        return sum(self.capacity[kind] * self.page_bytes[kind] for kind in KINDS)

    @property
    def scarcest(self) -> str:
        """The kind of page that is used up first, as more and more ends are kept."""
        kinds = [kind for kind in KINDS if self.pages[kind] > 0]
        return min(kinds, key=lambda kind: self.capacity[kind] / self.pages[kind])

    @property
    def most(self) -> int:
        """How many such ends the cache could hold if nothing else were in it."""
        return int(self.capacity[self.scarcest] / self.pages[self.scarcest])
