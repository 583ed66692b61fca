"""What was measured on one machine, kept in a file case by case."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bench.load.bench import processor


class Keyed(Protocol):
    @property
    def key(self) -> str: ...


_Case = TypeVar("_Case", bound=Keyed)


class Results:
    """The file of what was measured on this machine. Errors: SystemExit if it is another machine's."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, Any] = {}
        if path.exists():
            written = json.loads(path.read_text())
            if written["machine"] != processor():
                raise SystemExit(
                    f"{path} is of {written['machine']}, and this machine has {processor()}: use another --out"
                )
            self._found = written["cases"]

    def of(self, cases: Iterable[_Case]) -> dict[_Case, dict[str, Any]]:
        """The complete ones."""
        return {case: self._found[case.key] for case in cases if case.key in self._found}

    def add(self, case: Keyed, found: dict[str, Any]) -> None:
        self._found[case.key] = found
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps({"machine": processor(), "cases": self._found}, indent=1) + "\n")
        part.rename(self._path)
