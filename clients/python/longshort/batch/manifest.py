"""What a run is, and what of it is done: the files in which an output folder says so.

    manifest/run.json                what the run is of: model, options. Written first.
    manifest/inputs.jsonl            its inputs, in order: name, format, bytes, hash.
    manifest/shard-NAME.json         a shard that is done. Written when its output is safe; it alone says so.
    manifest/complete-I-of-N.json    all shards of this part are done, and how many shards and rows there are.

Each is put whole. Entries and marks have a checksum of themselves, so that one that a broken disk has changed does not
count.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longshort.batch import marks
from longshort.batch.checked import json_line, with_check, without_check
from longshort.batch.failures import ModelChanged, Refused
from longshort.batch.files import UNFINISHED, Folder
from longshort.batch.inputs import Input
from longshort.batch.marks import Mark
from longshort.batch.shards import shard_name

FOLDER = "manifest"
RUN = f"{FOLDER}/run.json"
INPUTS = f"{FOLDER}/inputs.jsonl"
ROWS = "rows"
ERRORS = "errors"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Written:
    """A file of output."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A shard that is done."""

    source: int
    shard: int
    # The input file; of several text files the first.
    input: str
    # Its rows in the source, and where they stand there (RawRow.begin).
    first_row: int
    rows: int
    begin: int
    end: int
    # Of the rows: results, and errors.
    scored: int
    errors: int
    # That the server has read.
    tokens: int
    # BLAKE2b of all rows' keys and texts, in order.
    rows_hash: str
    files: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is of. Equal runs have equal rows in equal shards."""

    # "score" or "classify".
    command: str
    # Name, version, fingerprint, precision and what else decides on results.
    model: dict[str, Any]
    options: dict[str, Any]
    inputs: Sequence[Input]


class Manifest:
    """Thread: any, as long as each shard has one writer."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def begin(self, run: Run) -> None:
        """Begins the run, or goes on with it. Raises Refused if the folder has another run, naming each difference."""
        told = self._folder.read(RUN)
        if told is None and not self._has_strange_files():
            self._folder.put(INPUTS, b"".join(_lines_of_inputs(run.inputs)))
            self._folder.put(RUN, json_line(_described(run)))
        # Another part may have begun the run meanwhile.
        told = self._folder.read(RUN)
        if told is None:
            raise Refused(f"{self._folder.name} is not empty and holds no run: give an empty folder, or one of a run")
        differences = [*_differences(_parsed(told, self._folder.name), _described(run))]
        changed_model = any(difference.startswith("model.") for difference in differences)
        differences += self._input_differences(run.inputs)
        if differences:
            raise (ModelChanged if changed_model else Refused)(
                f"{self._folder.name} holds a run that this one cannot go on with: {'; '.join(differences)}. Give what"
                " the run was begun with, or another folder"
            )

    def inputs(self) -> list[Input] | None:
        """Of the run; None if the list is not whole."""
        content = self._folder.read(INPUTS)
        try:
            return None if content is None else [Input(**json.loads(line)) for line in content.splitlines()]
        except (ValueError, TypeError):
            return None

    def files(self) -> dict[str, int]:
        """Bytes of each file of results and errors, by name; entries or not."""
        return {
            f"{folder}/{name}": size for folder in (ROWS, ERRORS) for name, size in self._folder.sizes(folder).items()
        }

    def done(self, files: Mapping[str, int]) -> dict[tuple[int, int], Entry]:
        """The shards that are done, by source and number: their entry is whole, and their files are there."""
        return {
            (entry.source, entry.shard): entry
            for entry in self.entries()
            if all(files.get(file.name) == file.bytes for file in entry.files)
        }

    def entries(self) -> Iterator[Entry]:
        """All that are whole, in the order of their rows."""
        return (entry for _, entry in self.all_entries() if entry is not None)

    def all_entries(self) -> Iterator[tuple[str, Entry | None]]:
        """With the names of their files; None for one that is not whole, or not of this name."""
        for name, content in self._folder.read_all(FOLDER, "shard-"):
            entry = _entry(content)
            yield f"{FOLDER}/{name}", entry if entry is not None and name == _entry_name(entry) else None

    def add(self, entry: Entry) -> None:
        """The shard is done. Its files must be safe before."""
        self._folder.put(f"{FOLDER}/{_entry_name(entry)}", with_check(dataclasses.asdict(entry)))

    def finish(self, mark: Mark) -> None:
        """All shards of the part are done."""
        self._folder.put(f"{FOLDER}/{mark.name}", mark.content())

    def all_marks(self) -> Iterator[tuple[str, Mark | None]]:
        """With the names of their files; None for one that is not whole."""
        for name, content in self._folder.read_all(FOLDER, marks.BEGIN):
            yield f"{FOLDER}/{name}", marks.mark_of(name, content)

    def _has_strange_files(self) -> bool:
        strange = [name for name in self._folder.sizes("") if name != UNFINISHED]
        return bool(strange or self._folder.sizes(ROWS) or self._folder.sizes(ERRORS))

    def _input_differences(self, inputs: Sequence[Input]) -> list[str]:
        """The first few."""
        before = (self._folder.read(INPUTS) or b"").splitlines()
        if len(before) != len(inputs):
            return [f"the number of input files was {len(before)} and is {len(inputs)}"]
        found: list[str] = []
        for line, now in zip(before, _lines_of_inputs(inputs), strict=True):
            if line != now.rstrip(b"\n"):
                found.append(_input_difference(json.loads(line), json.loads(now)))
        return [*found[:3], *([f"and {len(found) - 3} more inputs"] if len(found) > 3 else [])]


def _described(run: Run) -> dict[str, Any]:
    return {"version": VERSION, "command": run.command, "model": run.model, "options": run.options}


def _differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*now, *(key for key in before if key not in now)]:
            yield from _differences(before.get(key), now.get(key), f"{place}.{key}" if place else key)
    elif before != now:
        yield f"{place} was {json.dumps(before)} and is {json.dumps(now)}"


def _input_difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    if before["name"] != now["name"]:
        return f"an input was {before['name']} and is {now['name']}"
    if before["bytes"] != now["bytes"]:
        return f"the input {now['name']} has changed: it had {before['bytes']} bytes and has {now['bytes']}"
    if before["digest"] != now["digest"]:
        return f"the input {now['name']} has changed: its content is another (by its first and last 64 KiB)"
    return f"the input {now['name']} was read as {before['format']} and is read as {now['format']}"


def _lines_of_inputs(inputs: Sequence[Input]) -> Iterator[bytes]:
    for one in inputs:
        yield json_line(dataclasses.asdict(one))


def _entry_name(entry: Entry) -> str:
    return f"shard-{shard_name(entry.source, entry.shard)}.json"


def _entry(content: bytes) -> Entry | None:
    """None for what is no whole entry."""
    told = without_check(content)
    try:
        return None if told is None else Entry(**told | {"files": tuple(Written(**file) for file in told["files"])})
    except (KeyError, TypeError):
        return None


def _parsed(content: bytes, folder: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise Refused(f"{folder}/{RUN} is damaged: begin anew in another folder") from None
