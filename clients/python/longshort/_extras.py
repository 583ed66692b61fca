"""Packages that parts of longshort need, and a plain installation lacks."""

from __future__ import annotations

import sys


def missing(part: str, extra: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """What to raise in place of `error`, to which the import of `part` came: it says what to install. longshort is not
    on PyPI: it is a folder of this repository."""
    name = (error.name or "longshort").partition(".")[0]
    if name == "longshort":
        return error
    return ModuleNotFoundError(
        f"{part} needs {name}: pip install './clients/python[{extra}]', in the repository of Longshort", name=name
    )


def run_batch() -> int:
    """The first steps of `longshort-batch`: loading what it needs, which may be missing or interrupted. Its exit code,
    as in longshort.batch.command_line."""
    try:
        from longshort.batch.program import main
    except ModuleNotFoundError as error:
        sys.stderr.write(f"longshort-batch: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("longshort-batch: interrupted\n")
        return 4
    return main(sys.argv[1:])
