"""Corpora for runs, and the output of runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from longshort.batch.output.verifying import entries_of


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Writes a line for each row: a JSON value, or bytes unchanged."""
    with path.open("wb") as file:
        for row in rows:
            file.write((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n")
    return path


def documents(count: int) -> list[dict[str, Any]]:
    """Documents of many lengths. Each id occurs twice."""
    return [{"id": i // 2, "text": f"document {i} " * (1 + i * 7 % 23)} for i in range(count)]


def read_rows(out: Path | str) -> list[dict[str, Any]]:
    """All results that the manifest lists, in the order of the inputs."""
    found: list[dict[str, Any]] = []
    for entry in entries_of(str(out)):
        for file in entry.files:
            path = Path(out) / file.name
            assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
            if file.name.startswith("rows/") and file.name.endswith(".parquet"):
                found += pq.read_table(path).to_pylist()
            elif file.name.startswith("rows/"):
                found += [json.loads(line) for line in path.read_text().splitlines()]
    return found


def read_errors(out: Path | str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for entry in entries_of(str(out)):
        for file in entry.files:
            if file.name.startswith("errors/"):
                found += [json.loads(line) for line in (Path(out) / file.name).read_text().splitlines()]
    return found


def hashes(out: Path | str) -> dict[str, str]:
    """The hash of every file of results and errors, by name."""
    return {
        f"{folder}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in ("rows", "errors")
        for path in sorted((Path(out) / folder).glob("*"))
    }
