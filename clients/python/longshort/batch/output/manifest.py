"""The manifest of an output folder: files that describe the run and list the shards that are done.

    manifest/run.json                model and options of the run, and the hash of the list of inputs. Written first.
    manifest/inputs.jsonl            its inputs, in order: name, format, bytes, hash.
    manifest/shard-NAME.json         entry of a shard that is done. Written after the shard's files are safe.
    manifest/complete-I-of-N.json    completion marker: all shards of the part are done; counts of shards and rows.

Each file is put atomically. All but the list of inputs have a checksum of themselves, so one that a broken disk has
changed does not count.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longshort.batch.inputs.sources import Input
from longshort.batch.output.folders import Folder
from longshort.batch.output.records import (
    MARKER_BEGIN,
    SHARD_BEGIN,
    CompletionMarker,
    Entry,
    add_checksum,
    json_line,
    parse_checksummed,
    parse_entry,
    parse_marker,
)
from longshort.batch.report.counts import HIDDEN
from longshort.batch.report.failures import ModelChanged, Refused

FOLDER = "manifest"
RUN = f"{FOLDER}/run.json"
INPUTS = f"{FOLDER}/inputs.jsonl"
ROWS = "rows"
ERRORS = "errors"
# 2: carried columns count for the bytes of a shard. 3: so do those of WARC files.
VERSION = 3
_INPUTS_HASH = "inputs_sha256"
_OF_SHARD = re.compile(r"(?:rows|errors)/(\d{6,})-(\d{8,})\.(?:parquet|jsonl)")


@dataclass(frozen=True, slots=True)
class Run:
    """The description of a run. Equal runs have equal rows in equal shards."""

    # "score", "classify" or "embed".
    command: str
    # Name, version, fingerprint, precision and other properties that determine results.
    model: dict[str, Any]
    options: dict[str, Any]
    inputs: Sequence[Input]


class Manifest:
    """Thread: any, as long as each shard has one writer."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def begin(self, run: Run, alone: bool) -> None:
        """Begins or resumes the run. Raises Refused, with each difference, if the folder has another run.

        alone  no other part uses the folder: another run without any finished shard is replaced
        """
        content = self._folder.read(RUN)
        if content is not None and alone and not self._has_results():
            content = None
        if content is None and not self._has_foreign_files():
            self._folder.put(INPUTS, b"".join(_lines_of_inputs(run.inputs)))
            self._folder.put(RUN, add_checksum(_described(run)))
        # Another part may have begun the run in the meantime.
        content = self._folder.read(RUN)
        if content is None:
            raise Refused(f"{self._folder.name} is not empty and holds no run: give an empty folder, or that of a run")
        before = parse_checksummed(content)
        if before is None:
            raise Refused(f"{self._folder.name}/{RUN} is damaged: start again with another folder")
        now = _described(run)
        if before[_INPUTS_HASH] == now[_INPUTS_HASH] != _hash(self._folder.read(INPUTS) or b""):
            self._folder.put(INPUTS, b"".join(_lines_of_inputs(run.inputs)))  # repairs a damaged list
        differences = [*_differences(before | {_INPUTS_HASH: ""}, now | {_INPUTS_HASH: ""})]
        changed_model = any(difference.startswith("model.") for difference in differences)
        differences += self._input_differences(run.inputs)
        if differences:
            raise (ModelChanged if changed_model else Refused)(
                f"{self._folder.name} holds a run that this one cannot resume: {'; '.join(differences)}. Use the"
                " inputs, options and model of that run, or another folder"
            )

    def inputs(self) -> list[Input] | None:
        """The inputs of the run; None if the list is damaged."""
        content = self._folder.read(INPUTS)
        run = parse_checksummed(self._folder.read(RUN) or b"")
        if run is not None and _hash(content or b"") != run[_INPUTS_HASH]:
            return None
        try:
            return None if content is None else [Input(**json.loads(line)) for line in content.splitlines()]
        except (ValueError, TypeError, RecursionError):
            return None

    def is_damaged(self) -> bool:
        """Whether the description of the run is."""
        return parse_checksummed(self._folder.read(RUN) or b"") is None

    def files(self) -> dict[str, int]:
        """Bytes of each file of results and errors, by name, whether an entry lists it or not."""
        return {
            f"{folder}/{name}": size for folder in (ROWS, ERRORS) for name, size in self._folder.sizes(folder).items()
        }

    def done(self, files: Mapping[str, int]) -> dict[tuple[int, int], Entry]:
        """Entries of the shards that are done, by source and number: the entry is valid, and its files exist."""
        return {
            (entry.source, entry.shard): entry
            for entry in self.entries()
            if all(files.get(file.name) == file.bytes for file in entry.files)
        }

    def entries(self) -> Iterator[Entry]:
        """All valid entries, in the order of their rows."""
        return (entry for _, entry in self.all_entries() if entry is not None)

    def all_entries(self) -> Iterator[tuple[str, Entry | None]]:
        """File name and entry of each shard; None for an entry that is damaged, or that belongs to another name."""
        for name, content in self._folder.read_all(FOLDER, SHARD_BEGIN):
            yield f"{FOLDER}/{name}", parse_entry(name, content)

    def add(self, entry: Entry) -> None:
        """Records that the shard is done. REQUIRES: its files are safe."""
        self._folder.put(f"{FOLDER}/{entry.name}", entry.content())

    def finish(self, marker: CompletionMarker) -> None:
        """Records that all shards of the part are done."""
        self._folder.put(f"{FOLDER}/{marker.name}", marker.content())

    def all_markers(self) -> Iterator[tuple[str, CompletionMarker | None]]:
        """File name and content of each completion marker; None for one that is damaged."""
        for name, content in self._folder.read_all(FOLDER, MARKER_BEGIN):
            yield f"{FOLDER}/{name}", parse_marker(name, content)

    def _has_foreign_files(self) -> bool:
        return bool(self._folder.sizes("") or self._folder.sizes(ROWS) or self._folder.sizes(ERRORS))

    def _has_results(self) -> bool:
        own = self._folder.sizes(FOLDER)
        return bool(own.keys() - {_base(RUN), _base(INPUTS)} or self.files())

    def _input_differences(self, inputs: Sequence[Input]) -> list[str]:
        """Describes the first few differences of the inputs."""
        before = (self._folder.read(INPUTS) or b"").splitlines()
        if len(before) != len(inputs):
            return [f"the number of input files was {len(before)} and is {len(inputs)}"]
        found: list[str] = []
        for line, now in zip(before, _lines_of_inputs(inputs), strict=True):
            if line != now.rstrip(b"\n"):
                found.append(_input_difference(line, json.loads(now)))
        return [*found[:3], *([f"and {len(found) - 3} more inputs"] if len(found) > 3 else [])]


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _described(run: Run) -> dict[str, Any]:
    return {
        "version": VERSION,
        "command": run.command,
        "model": run.model,
        "options": run.options,
        _INPUTS_HASH: _hash(b"".join(_lines_of_inputs(run.inputs))),
    }


def _hash(inputs: bytes) -> str:
    return hashlib.sha256(inputs).hexdigest()


def _differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*now, *(key for key in before if key not in now)]:
            yield from _differences(before.get(key), now.get(key), f"{place}.{key}" if place else key)
    elif before != now:
        yield f"{place} was {json.dumps(before)} and is {json.dumps(now)}"


def _input_difference(line: bytes, now: dict[str, Any]) -> str:
    try:
        before = dataclasses.asdict(Input(**json.loads(line)))
    except (ValueError, TypeError, RecursionError):
        return f"{INPUTS} is damaged where it had {now['name']}"
    if before["name"] != now["name"]:
        return f"an input was {before['name']} and is {now['name']}"
    if before["bytes"] != now["bytes"]:
        return f"the input {now['name']} has changed: it had {before['bytes']} bytes and has {now['bytes']}"
    if before["digest"] != now["digest"]:
        return f"the input {now['name']} has changed: its first or last 64 KiB differ"
    return f"the input {now['name']} was read as {before['format']} and is read as {now['format']}"


def _lines_of_inputs(inputs: Sequence[Input]) -> Iterator[bytes]:
    for one in inputs:
        yield json_line(dataclasses.asdict(one))


def shard_of(name: str) -> tuple[int, int] | None:
    """Source and number of the shard whose file has this name; None if it is not the name of a shard's file."""
    found = _OF_SHARD.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def unlisted(names: Iterable[str], named: Iterable[str]) -> list[str]:
    """The files of a folder that are not in `named`, without hidden ones."""
    known = set(named)
    return [name for name in sorted(names) if name not in known and not name.rpartition("/")[2].startswith(HIDDEN)]


def check_no_foreign_files(out: str, names: Iterable[str]) -> None:
    """Raises Refused for files of a folder that do not have the name of a shard's file."""
    foreign = [name for name in unlisted(names, ()) if shard_of(name) is None]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise Refused(
            f"{out} has {foreign[0]}{more}, which no run has written. Readers of the results would read it: move it"
            " away"
        )
