"""The config.json of each published model, by name."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from longshort_convert.errors import ConvertError

_FOLDER = resources.files("longshort_convert") / "presets"


def names() -> list[str]:
    return sorted(entry.name.removesuffix(".json") for entry in _FOLDER.iterdir() if entry.name.endswith(".json"))


def load(name: str) -> dict[str, Any]:
    """Raises ConvertError for an unknown name."""
    if name not in names():
        raise ConvertError(f"preset {name!r} is unknown; there are: {', '.join(names())}")
    return json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
