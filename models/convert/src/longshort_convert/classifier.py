"""Converts a classifier's checkpoint and the user's options to the files of a model directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from longshort_convert import cvt, text_classifier, vil
from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields
from longshort_convert.given_fields import given_fields
from longshort_convert.input_files import read_text
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


def convert(architecture: str, state: StateDict, options: ClassifierOptions) -> ModelFiles:
    """Raises ConvertError or OSError."""
    family = _FAMILIES[architecture]
    fields = given_fields(family, options.preset, options.config, options.assignments)
    weights = family.convert(state, fields)
    parameters = sum(weight.values.size for name, weight in weights.items() if ".bn.running_" not in name)
    classes = fields.values["classes"]
    return ModelFiles(
        config=fields.ordered(family.FIELDS),
        weights=weights,
        summary=f"{family.describe(fields)}: {classes} classes, {parameters:,} parameters",
        vocabulary=_vocabulary(options.vocabulary, fields),
        labels=_labels(options.labels, classes),
    )


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
    content = read_text(path)
    tokens = _lines(content, str(path))
    if not tokens:
        raise ConvertError(f"{path}: contains no tokens")
    for number, token in enumerate(tokens, start=1):
        if token.split() != [token]:
            raise ConvertError(f"{path}: line {number}: token {token!r} contains white space")
        if tokens.index(token) + 1 != number:
            raise ConvertError(f"{path}: line {number}: token {token!r} is already on line {tokens.index(token) + 1}")
    # Id 0 is padding. The id after the last token is the unknown token.
    if len(tokens) + 2 > fields.values["vocabulary_size"]:
        raise ConvertError(
            f"{path}: {len(tokens)} tokens, padding and the unknown one are more than the "
            f"{fields.values['vocabulary_size']} embedding rows"
        )
    return content.encode()


def _labels(path: Path | None, classes: int) -> bytes | None:
    if path is None:
        return None
    content = read_text(path)
    if (count := len(_lines(content, str(path)))) != classes:
        raise ConvertError(f"{path}: {count} labels, but the model has {classes} classes")
    return content.encode()


def _lines(text: str, name: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        if line == "":
            raise ConvertError(f"{name}: line {number} is empty")
        if "\r" in line:
            raise ConvertError(f"{name}: line {number} contains a carriage return; end lines with a newline")
    return lines
