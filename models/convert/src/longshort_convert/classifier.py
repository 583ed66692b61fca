"""Converts a classifier's checkpoint and the user's options to the files of a model directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from longshort_convert import cvt, presets, text_classifier, vil
from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields
from longshort_convert.model_files import ModelFiles
from longshort_convert.weights import StateDict

_FAMILIES: dict[str, ModuleType] = {module.ARCHITECTURE: module for module in (text_classifier, vil, cvt)}


@dataclass(frozen=True)
class ClassifierOptions:
    """The sources of the fields: a preset, a file, and single fields as "name=value". Later ones override earlier."""

    preset: str | None
    config: Path | None
    assignments: Sequence[str]
    vocabulary: Path | None
    labels: Path | None


def convert(architecture: str, state: object, where: str, options: ClassifierOptions) -> ModelFiles:
    """`where` names the state dict in errors. Raises ConvertError or OSError."""
    family = _FAMILIES[architecture]
    fields = _given_fields(family, options)
    weights = family.convert(StateDict(state, where), fields)
    parameters = sum(weight.values.size for name, weight in weights.items() if ".bn.running_" not in name)
    classes = fields.values["classes"]
    return ModelFiles(
        config=fields.ordered(family.FIELDS),
        weights=weights,
        summary=f"{family.describe(fields)}: {classes} classes, {parameters:,} parameters",
        vocabulary=_vocabulary(options.vocabulary, fields),
        labels=_labels(options.labels, classes),
    )


def _given_fields(family: ModuleType, options: ClassifierOptions) -> Fields:
    values: dict[str, Any] = {}
    if options.preset is not None:
        values |= _of_family(family, presets.load(options.preset), f"preset {options.preset}")
    if options.config is not None:
        values |= _read_config(family, options.config)
    for assignment in options.assignments:
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
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConvertError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConvertError(f"{path}: not a JSON object")
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


def _vocabulary(path: Path | None, fields: Fields) -> bytes | None:
    """The content of vocabulary.txt: a ListOps token per line; the token on line n (from 1) has id n."""
    tokenizer = fields.values.get("tokenizer")
    if tokenizer not in text_classifier.LISTOPS_TOKENIZERS:
        if path is not None:
            raise ConvertError("--vocabulary requires a tokenizer of ListOps: --set tokenizer=listops_2020")
        return None
    if path is None:
        raise ConvertError(
            f"tokenizer {tokenizer} needs --vocabulary: the order of its tokens is not in the checkpoint "
            "(--set tokenizer=none for a model that takes token ids)"
        )
    content = path.read_bytes()
    tokens = _lines(content, str(path))
    if not tokens:
        raise ConvertError(f"{path}: contains no tokens")
    for number, token in enumerate(tokens, start=1):
        if token.split() != [token]:
            raise ConvertError(f"{path}: line {number}: token {token!r} contains white space")
        if tokens.index(token) + 1 != number:
            raise ConvertError(
                f"{path}: line {number}: token {token!r} is already on line {tokens.index(token) + 1}"
            )
    # Id 0 is padding. The id after the last token is the unknown token.
    if len(tokens) + 2 > fields.values["vocabulary_size"]:
        raise ConvertError(
            f"{path}: {len(tokens)} tokens, padding and the unknown one are more than the "
            f"{fields.values['vocabulary_size']} embedding rows"
        )
    return content


def _labels(path: Path | None, classes: int) -> bytes | None:
    if path is None:
        return None
    content = path.read_bytes()
    if (count := len(_lines(content, str(path)))) != classes:
        raise ConvertError(f"{path}: {count} labels, but the model has {classes} classes")
    return content


def _lines(content: bytes, name: str) -> list[str]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ConvertError(f"{name}: not UTF-8 at byte {error.start}") from error
    lines = text.removesuffix("\n").split("\n") if text else []
    if "" in lines:
        raise ConvertError(f"{name}: line {lines.index('') + 1} is empty")
    return lines
