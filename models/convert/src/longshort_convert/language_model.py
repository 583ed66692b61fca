"""Converts the language model's weights, hyperparameters and vocabulary to the files of a model directory.

A fairseq checkpoint contains the hyperparameters. With other files, the user gives those that do not follow from the
tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longshort_convert import fairseq, vocabulary
from longshort_convert.errors import ConvertError
from longshort_convert.fields import rename_official
from longshort_convert.given_fields import given_fields
from longshort_convert.input_files import read_text
from longshort_convert.model_files import ModelFiles
from longshort_convert.weights import StateDict

ARCHITECTURE = "language_model"
# In tokens, as in the official evaluation.
DEFAULT_SEGMENT_LENGTH = 256

FIELDS = (
    "architecture",
    "layers",
    "model_width",
    "heads",
    "feed_forward_width",
    "chunk_size",
    "chunk_rank",
    "window_length",
    "memory_length",
    "segment_length",
    "vocabulary_size",
    "window_position_clamp",
    "chunk_position_clamp",
    "pre_layer_norm",
    "projection_bias",
    "activation",
    "tokenizer",
)
# What does not follow from the tensors.
_REQUIRED = (
    "chunk_size",
    "window_length",
    "memory_length",
    "window_position_clamp",
    "chunk_position_clamp",
    "pre_layer_norm",
    "activation",
)
_OFFICIAL_NAMES = {
    "n_layer": "layers",
    "d_model": "model_width",
    "n_head": "heads",
    "d_inner": "feed_forward_width",
    "chunk_size": "chunk_size",
    "chunk_rank": "chunk_rank",
    "window_len": "window_length",
    "mem_len": "memory_length",
    "clamp_len": "window_position_clamp",
    "cpos_clamp_len": "chunk_position_clamp",
    "pre_ln": "pre_layer_norm",
    "use_bias": "projection_bias",
    "use_gelu": "activation",
}


@dataclass(frozen=True)
class LanguageModelOptions:
    """The user's options. None: the value follows from the checkpoint or the symbols."""

    vocabulary: Path | None
    tokenizer: str | None
    segment_length: int | None
    memory_length: int | None
    config: Path | None = None
    assignments: Sequence[str] = ()


def from_official(official: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of config.json from fairseq's names. Raises ConvertError."""
    fields = rename_official(official, _OFFICIAL_NAMES, fairseq.FIELDS_WITHOUT_EFFECT)
    for name in ("window_position_clamp", "chunk_position_clamp"):
        if type(fields.get(name)) is int:
            fields[name] = max(fields[name], 0)
    if type(fields.get("activation")) is bool:
        fields["activation"] = "gelu" if fields["activation"] else "relu"
    return fields


def convert(state: StateDict, checkpoint: object, options: LanguageModelOptions) -> ModelFiles:
    """Raises ConvertError or OSError."""
    config = _hyperparameters(state, checkpoint, options)
    weights = fairseq.read_weights(state, config)
    vocabulary_size = weights["in_emb.weight"].values.shape[0]
    content, tokenizer = _vocabulary(options, vocabulary_size)
    config |= {"architecture": ARCHITECTURE, "vocabulary_size": vocabulary_size, "tokenizer": tokenizer}
    config["segment_length"] = options.segment_length or DEFAULT_SEGMENT_LENGTH
    if options.memory_length is not None:
        config["memory_length"] = options.memory_length
    _check(config)
    parameters = sum(weight.values.size for name, weight in weights.items() if name != "pos_emb.inv_freq")
    summary = (
        f"{config['layers']} layers, width {config['model_width']}, {parameters:,} parameters, "
        f"memory {config['memory_length']}, segments of {config['segment_length']}, vocabulary of {vocabulary_size} "
        f"(tokenizer {tokenizer})"
    )
    ordered = {name: config[name] for name in FIELDS}
    return ModelFiles(config=ordered, weights=weights, summary=summary, vocabulary=content)


def _check(config: Mapping[str, Any]) -> None:
    """Raises ConvertError naming a violated rule."""
    width, heads, chunk = config["model_width"], config["heads"], config["chunk_size"]
    segment, memory, window = config["segment_length"], config["memory_length"], config["window_length"]
    rules = [
        (width % 2 == 0, f"d_model {width} is odd"),
        (width % heads == 0, f"d_model {width} is not a multiple of n_head {heads}"),
        (segment % chunk == 0, f"segment length {segment} is not a multiple of chunk_size {chunk}"),
        (memory % chunk == 0, f"mem_len {memory} is not a multiple of chunk_size {chunk}"),
        (memory >= window, f"mem_len {memory} is less than window_len {window}"),
    ]
    for holds, broken in rules:
        if not holds:
            raise ConvertError(broken)


def _hyperparameters(state: StateDict, checkpoint: object, options: LanguageModelOptions) -> dict[str, Any]:
    """The fields of config.json that the checkpoint or the user gives, and those that follow from the tensors."""
    given = options.config is not None or len(options.assignments) > 0
    if fairseq.has_hyperparameters(checkpoint):
        if given:
            raise ConvertError("--config and --set are not valid: the checkpoint contains its hyperparameters")
        return from_official(fairseq.read_hyperparameters(checkpoint))
    if not given:
        *names, last = _REQUIRED
        raise ConvertError(
            "the checkpoint has no hyperparameters: neither cfg is a dict nor args a namespace; give "
            f"{', '.join(names)} and {last} with --config or --set"
        )
    fields = given_fields(sys.modules[__name__], None, options.config, options.assignments)
    fields.refuse_unknown(FIELDS)
    fields.require(*_REQUIRED)
    fields.settle(_derived(state))
    fields.choice("activation", ("relu", "gelu"))
    for name in fairseq.POSITIVE_FIELDS:
        fields.positive(_OFFICIAL_NAMES[name])
    for name in fairseq.CLAMP_FIELDS:
        fields.natural(_OFFICIAL_NAMES[name])
    for name in ("pre_layer_norm", "projection_bias"):
        fields.switch(name)
    return fields.values


def _derived(state: StateDict) -> dict[str, Any]:
    """The fields that follow from the shapes."""
    vocabulary_size, width = state.shape("in_emb.weight", 2)
    heads = state.shape("layers.0.attn.r_r_bias", 4)[1]
    return {
        "layers": sum(f"layers.{layer}.norm1.weight" in state for layer in range(len(state))),
        "model_width": width,
        "heads": heads,
        "feed_forward_width": state.shape("layers.0.ff.fc1.weight", 2)[0],
        "chunk_rank": state.shape("layers.0.attn.dconv_1.weight", 2)[0] // max(heads, 1),
        "vocabulary_size": vocabulary_size,
        "projection_bias": "layers.0.attn.proj_query.bias" in state,
    }


def _vocabulary(options: LanguageModelOptions, vocabulary_size: int) -> tuple[bytes | None, str]:
    """The content of vocabulary.txt, or None, and the tokenizer."""
    if options.vocabulary is None:
        if options.tokenizer is not None:
            raise ConvertError(f"--tokenizer={options.tokenizer} needs --vocabulary")
        return None, vocabulary.NO_TOKENIZER
    content = read_text(options.vocabulary)
    return content.encode(), vocabulary.check_vocabulary(
        content, str(options.vocabulary), vocabulary_size, options.tokenizer
    )
