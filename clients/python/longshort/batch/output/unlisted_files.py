"""Finds files beside results and errors that no manifest entry lists. Readers of the folder would read them, too."""

from __future__ import annotations

import re
from collections.abc import Iterable

from longshort.batch.report.failures import Refused

# Prefixes of file names that readers of Parquet folders skip, too.
_HIDDEN = (".", "_")
_OF_SHARD = re.compile(r"(?:rows|errors)/(\d{6,})-(\d{8,})\.(?:parquet|jsonl)")


def shard_of(name: str) -> tuple[int, int] | None:
    """Source and number of the shard whose file has this name; None if it is not the name of a shard's file."""
    found = _OF_SHARD.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def unlisted(names: Iterable[str], named: Iterable[str]) -> list[str]:
    """The files of a folder that are not in `named`, without hidden ones."""
    known = set(named)
    return [name for name in sorted(names) if name not in known and not name.rpartition("/")[2].startswith(_HIDDEN)]


def check_no_foreign_files(out: str, names: Iterable[str]) -> None:
    """Raises Refused for files of a folder that do not have the name of a shard's file."""
    foreign = [name for name in unlisted(names, ()) if shard_of(name) is None]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise Refused(
            f"{out} has {foreign[0]}{more}, which no run has written. Readers of the results would read it: move it"
            " away"
        )
