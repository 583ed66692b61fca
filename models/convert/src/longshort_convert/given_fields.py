"""The fields of config.json that the user gives: a preset, a file, and single fields. Later ones override earlier."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields
from longshort_convert.input_files import read_json_object

# The config.json of each published model, by name.
_FOLDER = resources.files("longshort_convert") / "presets"


def preset_names() -> list[str]:
    return sorted(entry.name.removesuffix(".json") for entry in _FOLDER.iterdir() if entry.name.endswith(".json"))


def load_preset(name: str) -> dict[str, Any]:
    """Raises ConvertError for an unknown name."""
    if name not in preset_names():
        raise ConvertError(f"preset {name!r} is unknown; there are: {', '.join(preset_names())}")
    return json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def given_fields(family: ModuleType, preset: str | None, config: Path | None, assignments: Sequence[str]) -> Fields:
    """`assignments` are "name=value". Raises ConvertError or OSError."""
    values: dict[str, Any] = {}
    if preset is not None:
        values |= _of_family(family, load_preset(preset), f"preset {preset}")
    if config is not None:
        values |= _read_config(family, config)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ConvertError(f"--set {assignment} is not NAME=VALUE")
        if "." in name:
            outer, _, inner = name.partition(".")
            whole = f"--set '{outer}={{\"{inner}\": {text}, ...}}'"
            raise ConvertError(f"--set {assignment}: set nested fields together, as JSON: {whole}")
        values[name] = _value(text)
    return Fields(_of_family(family, values, "--set"))


def _read_config(family: ModuleType, path: Path) -> dict[str, Any]:
    """The file's fields. Their names are those of config.json if it has the field architecture, else the official."""
    content = read_json_object(path)
    if "architecture" in content:
        return _of_family(family, content, str(path))
    try:
        return family.from_official(content)
    except ConvertError as error:
        raise ConvertError(f"{path}: {error}") from error


def _of_family(family: ModuleType, values: dict[str, Any], where: str) -> dict[str, Any]:
    architecture = values.get("architecture", family.ARCHITECTURE)
    if architecture != family.ARCHITECTURE:
        raise ConvertError(
            f"{where}: architecture is {architecture!r}, but the checkpoint is of a {family.ARCHITECTURE}"
        )
    return values


def _value(text: str) -> Any:
    """The value of the text as JSON, or else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
