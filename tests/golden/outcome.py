"""The result of a case."""

from __future__ import annotations

import math
from dataclasses import dataclass


class CaseError(Exception):
    """The case cannot be judged: something is missing, unknown or contradictory, or the program under test failed."""


@dataclass(frozen=True)
class Outcome:
    """The largest absolute difference for each way of running a case, and what is allowed."""

    differences: dict[str, float]
    tolerance: float

    @property
    def largest(self) -> float:
        """NaN if any difference is."""
        values = self.differences.values()
        return math.nan if any(math.isnan(value) for value in values) else max(values)

    @property
    def holds(self) -> bool:
        return self.largest <= self.tolerance
