"""Errors for optional dependencies that are not installed."""

from __future__ import annotations

import sys


def missing(part: str, extra: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Returns the error to raise instead of `error` from the import of `part`: it names the extra to install. longshort
    is not on PyPI, but a folder of this repository."""
    name = (error.name or "longshort").partition(".")[0]
    if name == "longshort":
        return error
    return ModuleNotFoundError(
        f"{part} needs {name}: pip install './clients/python[{extra}]', in the repository of Longshort", name=name
    )


def run_batch() -> int:
    """Entry point of `longshort-batch`: imports the program, which may fail or be interrupted. Returns an exit code of
    longshort.batch.run.command_line."""
    try:
        from longshort.batch.run.program import main
    except ModuleNotFoundError as error:
        sys.stderr.write(f"longshort-batch: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("longshort-batch: interrupted\n")
        return 4
    return main(sys.argv[1:])
