"""Counts the errors of rows by their cause, so that a summary can name the most frequent one."""

from __future__ import annotations

import re
from collections.abc import Mapping

# What follows differs from row to row.
FIELDS = "; the fields are: "
# The least share of rows with results.
MIN_SUCCESS = 0.5
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_MAX_KEPT = 1000
_MAX_LISTED = 3


def cause(message: str) -> str:
    """What equal messages have in common: the text without numbers."""
    return _NUMBER.sub("N", message.partition(FIELDS)[0])[:200]


class Causes:
    """Thread: one."""

    def __init__(self) -> None:
        # The first message of each cause, and how many rows have it.
        self._examples: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add(self, message: str, count: int = 1) -> None:
        key = cause(message)
        if key not in self._counts and len(self._counts) >= _MAX_KEPT:
            return
        self._examples.setdefault(key, message)
        self._counts[key] = self._counts.get(key, 0) + count

    def merge(self, counts: Mapping[str, int]) -> None:
        for message, count in counts.items():
            self.add(message, count)

    def most_frequent(self) -> dict[str, int]:
        """The first messages of the most frequent causes, and how many rows have them."""
        keys = sorted(self._counts, key=lambda key: -self._counts[key])[:_MAX_LISTED]
        return {self._examples[key]: self._counts[key] for key in keys}


def described(causes: Mapping[str, int]) -> str:
    """The most frequent cause in words; empty if there is none."""
    for message, count in causes.items():
        return f"The most frequent error ({count} row{'s' if count > 1 else ''}): {message}."
    return ""


def too_few(rows: int, errors: int, min_success: float) -> str:
    """Says that too few rows have results; empty if they are enough.

    min_success  the least share of rows with results, from 0 to 1. Above 0, at least one row must have one
    """
    if errors == 0 or min_success <= 0 or (rows > 0 and rows >= min_success * (rows + errors)):
        return ""
    which = f"only {rows}" if rows else "none"
    return f"{which} of {rows + errors} rows {'have results' if rows > 1 else 'has a result'}"
