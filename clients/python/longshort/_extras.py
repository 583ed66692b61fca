"""Packages that parts of longshort need, and a plain installation lacks."""

from __future__ import annotations


def missing(part: str, extra: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """What to raise in place of `error`, to which the import of `part` came: it says what to install. longshort is not
    on PyPI: it is a folder of this repository."""
    name = (error.name or "longshort").partition(".")[0]
    if name == "longshort":
        return error
    return ModuleNotFoundError(
        f"{part} needs {name}: pip install './clients/python[{extra}]', in the repository of Longshort", name=name
    )
