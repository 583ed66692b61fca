"""Whether a folder holds what its manifest says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from longshort.batch.files import Folder, open_folder
from longshort.batch.manifest import RUN, Entry, Manifest


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at every byte of a folder came to."""

    # Of the shards that are done.
    shards: int
    rows: int
    errors: int
    # Whether all shards of all inputs are done.
    complete: bool
    # What is wrong, one sentence each.
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        state = "complete" if self.complete else "not complete: run the same command again to go on"
        wrong = "".join(f"\n{one}" for one in self.wrong)
        return f"{self.shards} shards with {self.rows} rows and {self.errors} errors; {state}.{wrong}"


def entries_of(out: str) -> list[Entry]:
    """The shards that are done in a folder, in the order of their rows. Raises BatchError."""
    return list(Manifest(open_folder(out)).entries())


def verify(out: str) -> Verified:
    """Reads all that a run has written and compares it with the manifest. Raises BatchError for a folder that cannot be
    read."""
    folder = open_folder(out)
    manifest = Manifest(folder)
    entries = list(manifest.entries())
    wrong = [*_wrong_files(folder, entries), *_gaps(entries)]
    if folder.read(RUN) is None:
        wrong.append(f"{out} holds no run")
    return Verified(
        shards=len(entries),
        rows=sum(entry.scored for entry in entries),
        errors=sum(entry.errors for entry in entries),
        complete=manifest.is_complete() and not wrong,
        wrong=tuple(wrong),
    )


def _wrong_files(folder: Folder, entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        for file in entry.files:
            content = folder.read(file.name)
            if content is None:
                yield f"{file.name} is missing"
            elif hashlib.sha256(content).hexdigest() != file.sha256:
                yield f"{file.name} is not what was written"


def _gaps(entries: list[Entry]) -> Iterator[str]:
    """Between shards that are done; of a run that goes on, or of parts, there are some."""
    for before, now in zip(entries, entries[1:], strict=False):
        if (before.source, before.shard + 1) == (now.source, now.shard) and now.first_row != (
            before.first_row + before.rows
        ):
            yield f"shard {now.shard} of {now.input} does not begin where the one before it ends"
