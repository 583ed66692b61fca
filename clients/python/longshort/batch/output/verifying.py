"""Compares a folder with its manifest, and with the completion markers of its parts."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longshort.batch.inputs.sources import sources_of
from longshort.batch.output.folders import Folder, open_folder
from longshort.batch.output.manifest import INPUTS, RUN, Manifest, shard_of, unlisted
from longshort.batch.output.records import CompletionMarker, Entry, cover_all_parts
from longshort.batch.report.counts import MIN_SUCCESS, Causes, described_errors, too_few

_ANOTHER = "start again with another folder"
_NO_RUN = "holds no run"
_REMOVE = "remove it, and run the same command again"
# Maximum number of errors that are printed.
_MAX_PRINTED = 100


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of reading every byte of a folder."""

    # Counts of the shards that are done.
    shards: int
    rows: int
    errors: int
    # Whether all shards of all inputs are done, and no error was found.
    complete: bool
    # The most frequent errors, and how many rows have them.
    causes: dict[str, int]
    # The errors, one sentence each.
    wrong: tuple[str, ...]

    def too_few(self, min_success: float = MIN_SUCCESS) -> str:
        """Says that fewer rows than `min_success` of all have results, or that a complete run has no rows; empty if
        they are enough."""
        if self.complete and not self.rows + self.errors and min_success > 0:
            return "the inputs had no rows"
        return too_few(self.rows, self.errors, min_success)

    def __str__(self) -> str:
        state = "complete" if self.complete else "not complete"
        if not self.complete and not any(one.endswith((_ANOTHER, _NO_RUN)) for one in self.wrong):
            state += ": run the same command again to resume"
        hidden = len(self.wrong) - _MAX_PRINTED
        printed = [*self.wrong[:_MAX_PRINTED], *([f"and {hidden} more"] if hidden > 0 else [])]
        wrong = "".join(f"\n{one}" for one in printed)
        most = f" {described_errors(self.causes)}" if self.causes else ""
        return f"{self.shards} shards with {self.rows} rows and {self.errors} errors; {state}.{most}{wrong}"


def entries_of(out: str) -> list[Entry]:
    """The shards that are done in a folder, in the order of their rows. Raises BatchError."""
    return list(Manifest(open_folder(out)).entries())


def verify(out: str) -> Verified:
    """Reads all files of a run and compares them with the manifest. Raises BatchError for a folder that cannot be
    read."""
    folder = open_folder(out)
    manifest = Manifest(folder)
    if folder.read(RUN) is None:
        return Verified(0, 0, 0, False, {}, (f"{out} {_NO_RUN}",))
    wrong: list[str] = []
    entries: list[Entry] = []
    markers: list[CompletionMarker] = []
    if manifest.is_damaged():
        wrong.append(f"{RUN} is damaged: {_ANOTHER}")
    for name, entry in manifest.all_entries():
        if entry is None:
            wrong.append(f"{name} is damaged: {_REMOVE}")
        else:
            entries.append(entry)
    for name, marker in manifest.all_markers():
        if marker is None:
            wrong.append(f"{name} is damaged: {_REMOVE}")
        else:
            markers.append(marker)
    wrong += _wrong_files(folder, entries)
    wrong += _gaps(entries)
    wrong += _missing(manifest, entries, markers)
    wrong += _unlisted_files(manifest, entries, markers)
    causes = Causes()
    for entry in entries:
        causes.merge(entry.causes)
    return Verified(
        shards=len(entries),
        rows=sum(entry.scored for entry in entries),
        errors=sum(entry.errors for entry in entries),
        complete=cover_all_parts(markers) and not wrong,
        causes=causes.most_frequent(),
        wrong=tuple(wrong),
    )


def _wrong_files(folder: Folder, entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        for file in entry.files:
            content = folder.read(file.name)
            if content is None:
                yield f"{file.name} is missing"
            elif hashlib.sha256(content).hexdigest() != file.sha256:
                yield f"{file.name} is damaged: {_REMOVE}"


def _gaps(entries: Sequence[Entry]) -> Iterator[str]:
    """Shards whose rows do not follow those of the shard before. An unfinished run may have gaps between its shards."""
    for before, now in itertools.pairwise(entries):
        if (before.source, before.shard + 1) == (now.source, now.shard) and now.first_row != (
            before.first_row + before.rows
        ):
            yield f"shard {now.shard} of {now.input} does not begin where shard {before.shard} ends"


def _missing(manifest: Manifest, entries: Sequence[Entry], markers: Sequence[CompletionMarker]) -> Iterator[str]:
    """Shards and rows that the completion markers count, but that do not exist."""
    listed = manifest.inputs()
    if listed is None:
        yield f"{INPUTS} is damaged: run the same command again, which writes it again"
        return
    sources = sources_of(listed)
    found = {(entry.source, entry.shard): entry for entry in entries}
    if any(len(marker.extents) != len(sources) or marker.extents != markers[0].extents for marker in markers):
        yield f"the completion markers of the parts have different inputs: {_ANOTHER}"
        return
    for source, extent in zip(sources, markers[0].extents if markers else (), strict=False):
        name = source.files[0].name
        wanted = [number for number in range(extent.shards) if _is_settled(source.index, number, markers)]
        lost = [number for number in wanted if (source.index, number) not in found]
        if lost:
            yield f"{name}: {len(lost)} of {len(wanted)} shards have no entry; the first of them is shard {lost[0]}"
        first, last = found.get((source.index, 0)), found.get((source.index, extent.shards - 1))
        if first is not None and first.first_row != 0:
            yield f"shard 0 of {name} begins with row {first.first_row}"
        if last is not None and last.first_row + last.rows != extent.rows:
            yield f"{name} has {extent.rows} rows, but its last shard ends after {last.first_row + last.rows}"
    if markers:
        for entry in entries:
            if entry.source >= len(sources) or entry.shard >= markers[0].extents[entry.source].shards:
                yield f"shard {entry.shard} of {entry.input} is not of this run: remove its entry and its files"


def _is_settled(source: int, shard: int, markers: Sequence[CompletionMarker]) -> bool:
    """Whether the shard belongs to a part that is done."""
    return any(marker.part.has(source, shard) for marker in markers)


def _unlisted_files(manifest: Manifest, entries: Sequence[Entry], markers: Sequence[CompletionMarker]) -> Iterator[str]:
    """Files that no entry lists. Files of shards that may still be written do not count."""
    extents = markers[0].extents if markers else ()
    known = {(entry.source, entry.shard) for entry in entries}
    for name in unlisted(manifest.files(), (file.name for entry in entries for file in entry.files)):
        shard = shard_of(name)
        if shard is not None and shard not in known:
            is_to_be = shard[0] < len(extents) and shard[1] < extents[shard[0]].shards
            if is_to_be or not _is_settled(*shard, markers):
                continue
        yield f"{name} is not in the manifest, and readers of the folder would read it: move it away"
