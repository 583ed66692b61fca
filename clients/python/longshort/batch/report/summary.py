"""The summary of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longshort.batch.report.counts import described_errors, described_files

# How many input files without rows are named in the text; `without_rows` has all.
_MAX_NAMED = 5


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
    # Columns that are not carried since they are large and were not named; with the reason.
    not_carried: Mapping[str, str] = field(default_factory=dict)
    # For all calls: how many rows lack a field that is named to be carried, by its name.
    lacking: dict[str, int] = field(default_factory=dict)
    # For all calls: how many carried values are null, since the type of their column in the run does not have them, by
    # its name.
    lost: dict[str, int] = field(default_factory=dict)
    # Files of the inputs' folders and patterns that are not read, by name or ending, and how many.
    left_out: dict[str, int] = field(default_factory=dict)
    # Input files without a row.
    without_rows: tuple[str, ...] = ()
    # For all calls: the most frequent errors, and how many rows have them.
    causes: dict[str, int] = field(default_factory=dict)
    # "score", "classify" or "embed".
    command: str = "score"

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
        wrong = (
            f" {self.all_errors} rows have errors: {self.out}/errors. {described_errors(self.causes)}"
            if self.all_errors
            else ""
        )
        if not (self.all_rows or self.all_errors):
            wrong = " There were no rows."
        done = {"score": "scored", "classify": "classified", "embed": "embedded"}[self.command]
        for name, count in self.lacking.items():
            wrong += f' {count} row{"s have" if count > 1 else " has"} no "{name}" to carry.'
        for name, count in self.lost.items():
            wrong += f' {count} value{"s are" if count > 1 else " is"} null in "{name}": its type there lacks them.'
        if self.without_rows:
            wrong += f" {_without_rows(self.without_rows)}"
        not_read = f" Not read: {described_files(self.left_out)}." if self.left_out else ""
        left = f"\n{not_carried_note(self.not_carried)}" if self.not_carried else ""
        return (
            f"{self.rows} rows {done} and {self.errors} errors in {self.seconds:.1f} s"
            f" ({self.rows_per_second:.1f} rows/s, {self.tokens_per_second:.0f} tokens/s),"
            f" model {self.model}/{self.version}.{before} {self.out} has {self.all_rows} rows.{wrong}{not_read}{left}"
        )


def _without_rows(names: Sequence[str]) -> str:
    count = f"{len(names)} input files have" if len(names) > 1 else "1 input file has"
    hidden = len(names) - _MAX_NAMED
    more = f" and {hidden} more" if hidden > 0 else ""
    return f"{count} no rows: {', '.join(names[:_MAX_NAMED])}{more}."


def not_carried_note(columns: Mapping[str, str]) -> str:
    named = ", ".join(f'"{name}" ({reason})' for name, reason in columns.items())
    return f"not carried, since such large columns must be named (--carry): {named}"
