"""The summary of a run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of one call of `score` or `classify`, and of the output folder."""

    # The output folder.
    out: str
    # For this call: rows with results, rows with errors, tokens that servers have read, seconds.
    rows: int
    errors: int
    tokens: int
    seconds: float
    # For all calls for this folder and part: rows with results and with errors.
    all_rows: int
    all_errors: int
    # Shards of this call, and those of earlier calls.
    shards: int
    shards_before: int
    # Name, version and fingerprint of the model.
    model: str
    version: int
    fingerprint: str

    @property
    def rows_per_second(self) -> float:
        return (self.rows + self.errors) / self.seconds if self.seconds > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        rates = {"rows_per_second": self.rows_per_second, "tokens_per_second": self.tokens_per_second}
        return dataclasses.asdict(self) | rates

    def __str__(self) -> str:
        before = f" {self.shards_before} shards were done before." if self.shards_before else ""
        wrong = f" {self.all_errors} rows have errors: {self.out}/errors." if self.all_errors else ""
        return (
            f"{self.rows} rows scored and {self.errors} errors in {self.seconds:.1f} s"
            f" ({self.rows_per_second:.1f} rows/s, {self.tokens_per_second:.0f} tokens/s),"
            f" model {self.model}/{self.version}.{before} {self.out} has {self.all_rows} rows.{wrong}"
        )
