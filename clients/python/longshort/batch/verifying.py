"""Whether a folder holds what its manifest says, and all that the marks of its parts say there is to be."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longshort.batch import inputs
from longshort.batch.files import Folder, open_folder
from longshort.batch.manifest import INPUTS, RUN, Entry, Manifest
from longshort.batch.marks import Mark, are_all
from longshort.batch.strays import shard_of, unnamed

_REMOVE = "remove it, and run the same command again"
# Of what is wrong, so much is told in words.
_TOLD = 100


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at every byte of a folder came to."""

    # Of the shards that are done.
    shards: int
    rows: int
    errors: int
    # Whether all shards of all inputs are done, and nothing is wrong.
    complete: bool
    # What is wrong, one sentence each.
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        state = "complete" if self.complete else "not complete: run the same command again to go on"
        told = [*self.wrong[:_TOLD], *([f"and {len(self.wrong) - _TOLD} more"] if len(self.wrong) > _TOLD else [])]
        wrong = "".join(f"\n{one}" for one in told)
        return f"{self.shards} shards with {self.rows} rows and {self.errors} errors; {state}.{wrong}"


def entries_of(out: str) -> list[Entry]:
    """The shards that are done in a folder, in the order of their rows. Raises BatchError."""
    return list(Manifest(open_folder(out)).entries())


def verify(out: str) -> Verified:
    """Reads all that a run has written and compares it with the manifest. Raises BatchError for a folder that cannot be
    read."""
    folder = open_folder(out)
    manifest = Manifest(folder)
    if folder.read(RUN) is None:
        return Verified(0, 0, 0, False, (f"{out} holds no run",))
    wrong: list[str] = []
    entries: list[Entry] = []
    marks: list[Mark] = []
    for name, entry in manifest.all_entries():
        if entry is None:
            wrong.append(f"{name} is no whole entry: {_REMOVE}")
        else:
            entries.append(entry)
    for name, mark in manifest.all_marks():
        if mark is None:
            wrong.append(f"{name} is no whole mark: {_REMOVE}")
        else:
            marks.append(mark)
    wrong += _wrong_files(folder, entries)
    wrong += _gaps(entries)
    wrong += _missing(manifest, entries, marks)
    wrong += _strays(manifest, entries, marks)
    return Verified(
        shards=len(entries),
        rows=sum(entry.scored for entry in entries),
        errors=sum(entry.errors for entry in entries),
        complete=are_all(marks) and not wrong,
        wrong=tuple(wrong),
    )


def _wrong_files(folder: Folder, entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        for file in entry.files:
            content = folder.read(file.name)
            if content is None:
                yield f"{file.name} is missing"
            elif hashlib.sha256(content).hexdigest() != file.sha256:
                yield f"{file.name} is not what was written: {_REMOVE}"


def _gaps(entries: Sequence[Entry]) -> Iterator[str]:
    """Between shards that are done; of a run that goes on, or of parts, there are some."""
    for before, now in itertools.pairwise(entries):
        if (before.source, before.shard + 1) == (now.source, now.shard) and now.first_row != (
            before.first_row + before.rows
        ):
            yield f"shard {now.shard} of {now.input} does not begin where the one before it ends"


def _missing(manifest: Manifest, entries: Sequence[Entry], marks: Sequence[Mark]) -> Iterator[str]:
    """What the marks say there is to be, and is not."""
    listed = manifest.inputs()
    if listed is None:
        yield f"{INPUTS} is not what was written: begin anew in another folder"
        return
    sources = inputs.sources(listed)
    found = {(entry.source, entry.shard): entry for entry in entries}
    if len({mark.extents for mark in marks}) > 1 or any(len(mark.extents) != len(sources) for mark in marks):
        yield "the marks of the parts do not tell the same inputs: begin anew in another folder"
        return
    for source, extent in zip(sources, marks[0].extents if marks else (), strict=False):
        name = source.files[0].name
        wanted = [number for number in range(extent.shards) if _is_settled(source.index, number, marks)]
        lost = [number for number in wanted if (source.index, number) not in found]
        if lost:
            yield f"{name}: {len(lost)} of {len(wanted)} shards have no entry; the first of them is shard {lost[0]}"
        first, last = found.get((source.index, 0)), found.get((source.index, extent.shards - 1))
        if first is not None and first.first_row != 0:
            yield f"shard 0 of {name} begins with row {first.first_row}"
        if last is not None and last.first_row + last.rows != extent.rows:
            yield f"{name} has {extent.rows} rows, and its last shard ends behind {last.first_row + last.rows}"
    if marks:
        for entry in entries:
            if entry.source >= len(sources) or entry.shard >= marks[0].extents[entry.source].shards:
                yield f"shard {entry.shard} of {entry.input} is none of this run: remove its entry and its files"


def _is_settled(source: int, shard: int, marks: Sequence[Mark]) -> bool:
    """Whether the shard is of a part that is done."""
    return any(mark.part.has(source, shard) for mark in marks)


def _strays(manifest: Manifest, entries: Sequence[Entry], marks: Sequence[Mark]) -> Iterator[str]:
    """Files that no entry names; not those of shards that are being written, or are to be done again."""
    extents = marks[0].extents if marks else ()
    known = {(entry.source, entry.shard) for entry in entries}
    for name in unnamed(manifest.files(), (file.name for entry in entries for file in entry.files)):
        shard = shard_of(name)
        if shard is not None and shard not in known:
            is_to_be = shard[0] < len(extents) and shard[1] < extents[shard[0]].shards
            if is_to_be or not _is_settled(*shard, marks):
                continue
        yield f"{name} is named by no entry, and would be read with the others: move it away"
