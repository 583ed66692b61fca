"""Counts what a run leaves out, for its summary: rows by the causes of their errors, and files by their names."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping

# What follows differs from row to row.
FIELDS = "; the fields are: "
# The least share of rows with results.
MIN_SUCCESS = 0.5
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_MAX_KEPT = 1000
_MAX_LISTED = 3
# Beginnings of names that programs use for their own files beside data, such as _SUCCESS. Readers of folders skip them.
HIDDEN = (".", "_")
# What a link to a folder above it is counted as, behind its name.
LOOP = " (a link to a folder above it)"
_MAX_LABELS = 100
_MAX_PRINTED = 10


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


def described_errors(causes: Mapping[str, int]) -> str:
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


class LeftOut:
    """Counts files and folders that a run does not read, by their name or by the ending of their names."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        """`name`: of a file, or of a folder with "/" at its end."""
        label = _label(name.rpartition("/")[2] or f"{name.rstrip('/').rpartition('/')[2]}/")
        self.counts[label if label in self.counts or len(self.counts) < _MAX_LABELS else "others"] += 1

    def add_loop(self, name: str) -> None:
        self.counts[name + LOOP] += 1


def described_files(counts: Mapping[str, int]) -> str:
    """The counts in words: "2 *.json, 1 _SUCCESS"."""
    first = sorted(counts.items(), key=lambda one: -one[1])
    rest = sum(count for _, count in first[_MAX_PRINTED:])
    named = [f"{count} {label}" for label, count in first[:_MAX_PRINTED]]
    return ", ".join([*named, *([f"and {rest} others"] if rest else [])])


def _label(name: str) -> str:
    begin = name[:1] if name.startswith(HIDDEN) else ""
    stem, ending = os.path.splitext(name[len(begin) :])
    return f"{begin}*{ending.lower()}" if stem and ending else name
