"""Converts a classifier's checkpoint and the user's options to the files of a model directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from longshort_convert import cvt, fairseq_roberta, hugging_face, roberta, text_classifier, vil
from longshort_convert.bpe_tokenizer import find_tokenizer, read_tokenizer
from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields
from longshort_convert.given_fields import given_fields
from longshort_convert.input_files import read_text
from longshort_convert.model_files import ModelFiles
from longshort_convert.weights import StateDict, Weight

_FAMILIES: dict[str, ModuleType] = {module.ARCHITECTURE: module for module in (text_classifier, vil, cvt)}


@dataclass(frozen=True)
class ClassifierOptions:
    """The sources of the fields: a preset, a file, and single fields as "name=value". Later ones override earlier."""

    preset: str | None
    config: Path | None
    assignments: Sequence[str]
    vocabulary: Path | None
    labels: Path | None
    tokenizer: Path | None = None  # of byte-level BPE


@dataclass(frozen=True)
class RobertaOptions:
    """Of a RoBERTa: where it lies, and the encoder's form. None: as the checkpoint has it."""

    checkpoint: Path
    form: roberta.Form
    head: str | None


def convert(architecture: str, state: StateDict, options: ClassifierOptions) -> ModelFiles:
    """Raises ConvertError or OSError."""
    family = _FAMILIES[architecture]
    fields = given_fields(family, options.preset, options.config, options.assignments)
    weights = family.convert(state, fields)
    tokenizer = None
    if options.tokenizer is not None:
        if fields.values.get("tokenizer") != text_classifier.BYTE_LEVEL_BPE:
            raise ConvertError("--bpe requires the tokenizer of byte-level BPE: --set tokenizer=byte_level_bpe")
        ids = hugging_face.Ids(fields.values.get("padding_id", 0), fields.values.get("separator_id", 2), first=None)
        tokenizer = read_tokenizer(options.tokenizer, fields.values["vocabulary_size"], ids)
    elif fields.values.get("tokenizer") == text_classifier.BYTE_LEVEL_BPE:
        raise ConvertError("tokenizer byte_level_bpe needs --bpe: its tokens are not in the checkpoint")
    return ModelFiles(
        config=fields.ordered(family.FIELDS),
        weights=weights,
        summary=_summary(family, fields, weights),
        vocabulary=_vocabulary(options.vocabulary, fields),
        labels=_labels(options.labels, fields.values["classes"]),
        tokenizer=tokenizer,
    )


def convert_roberta(
    form: str, state: StateDict, checkpoint: object, options: ClassifierOptions, roberta_options: RobertaOptions
) -> ModelFiles:
    """Of a RoBERTa of Hugging Face, whose config.json lies beside it, or of fairseq. Raises ConvertError or OSError."""
    path = roberta_options.checkpoint
    folder = path if path.is_dir() else path.parent
    if form == fairseq_roberta.FORM:
        if options.config is not None:
            raise ConvertError("--config is not valid: the checkpoint of fairseq contains its hyperparameters")
        state, settings = fairseq_roberta.read(state, checkpoint, roberta_options.head)
    else:
        if roberta_options.head is not None:
            raise ConvertError("--head is valid for checkpoints of fairseq only, which may have several heads")
        config = options.config or folder / hugging_face.CONFIG
        if not config.is_file():
            raise ConvertError(f"{config}: no such file; a RoBERTa needs its config.json beside it, or --config")
        settings = hugging_face.read_settings(config)
    fields = given_fields(text_classifier, None, None, options.assignments)
    tokenizer = options.tokenizer or find_tokenizer(folder)
    if tokenizer is not None:
        fields.default({"tokenizer": text_classifier.BYTE_LEVEL_BPE})
    encoder = roberta.convert(state, settings, fields, roberta_options.form)
    has_tokenizer = fields.values["tokenizer"] == text_classifier.BYTE_LEVEL_BPE
    if has_tokenizer and tokenizer is None:
        raise ConvertError(f"{folder}: has no tokenizer.json, and no vocab.json with merges.txt; name one with --bpe")
    if not has_tokenizer:
        if options.tokenizer is not None:
            raise ConvertError(f"--bpe requires --set tokenizer={text_classifier.BYTE_LEVEL_BPE}")
        encoder.notes.append("the model has no tokenizer, so it takes token ids only; --bpe names one")
    labels = None if encoder.labels is None else "".join(f"{label}\n" for label in encoder.labels).encode()
    classes = fields.values["classes"]
    return ModelFiles(
        config=fields.ordered(text_classifier.FIELDS),
        weights=encoder.weights,
        summary=_summary(text_classifier, fields, encoder.weights),
        labels=labels if options.labels is None else _labels(options.labels, classes),
        tokenizer=read_tokenizer(tokenizer, fields.values["vocabulary_size"], settings.ids) if has_tokenizer else None,
        notes=encoder.notes,
    )


def _summary(family: ModuleType, fields: Fields, weights: Mapping[str, Weight]) -> str:
    parameters = sum(weight.values.size for name, weight in weights.items() if ".bn.running_" not in name)
    return f"{family.describe(fields)}: {fields.values['classes']} classes, {parameters:,} parameters"


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
