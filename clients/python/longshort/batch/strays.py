"""Files beside results and errors that no entry names. A folder is read as a whole, so they would count as results."""

from __future__ import annotations

import re
from collections.abc import Iterable

from longshort.batch.failures import Refused

# What readers of Parquet folders skip, too.
_HIDDEN = (".", "_")
_OF_SHARD = re.compile(r"(?:rows|errors)/(\d{6,})-(\d{8,})\.(?:parquet|jsonl)")


def shard_of(name: str) -> tuple[int, int] | None:
    """Source and number of the shard whose file has this name; None for a name that no shard's file has."""
    found = _OF_SHARD.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def unnamed(names: Iterable[str], named: Iterable[str]) -> list[str]:
    """Those of a folder's files that are not named, without hidden ones."""
    known = set(named)
    return [name for name in sorted(names) if name not in known and not name.rpartition("/")[2].startswith(_HIDDEN)]


def check_no_strangers(out: str, names: Iterable[str]) -> None:
    """Raises Refused for files of a folder whose names no shard's file has."""
    strange = [name for name in unnamed(names, ()) if shard_of(name) is None]
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        raise Refused(
            f"{out} has {strange[0]}{more}, which no run has written and which would be read with its results: move it"
            " away"
        )
