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
from longshort_convert.config import LanguageModelConfig
from longshort_convert.errors import ConvertError
from longshort_convert.fields import rename_official
from longshort_convert.given_fields import given_fields
from longshort_convert.input_files import read_text
from longshort_convert.model_files import ModelFiles
from longshort_convert.weights import StateDict

ARCHITECTURE = "language_model"
# In tokens, as in the official evaluation.
DEFAULT_SEGMENT_LENGTH = 256

FIELDS = ("architecture", *LanguageModelConfig.__dataclass_fields__)
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
    fields = _hyperparameters(state, checkpoint, options)
    weights = fairseq.read_weights(state, fields)
    vocabulary_size = weights["in_emb.weight"].values.shape[0]
    content, tokenizer = _vocabulary(options, vocabulary_size)
    config = _config(fields, options, vocabulary_size, tokenizer)
    config.check()
    parameters = sum(weight.values.size for name, weight in weights.items() if name != "pos_emb.inv_freq")
    summary = (
        f"{config.layers} layers, width {config.model_width}, {parameters:,} parameters, "
        f"memory {config.memory_length}, segments of {config.segment_length}, vocabulary of {vocabulary_size} "
        f"(tokenizer {tokenizer})"
    )
    return ModelFiles(config=config.to_fields(), weights=weights, summary=summary, vocabulary=content)


def _hyperparameters(state: StateDict, checkpoint: object, options: LanguageModelOptions) -> fairseq.Hyperparameters:
    given = options.config is not None or len(options.assignments) > 0
    if fairseq.has_hyperparameters(checkpoint):
        if given:
            raise ConvertError("--config and --set are not valid: the checkpoint contains its hyperparameters")
        return fairseq.read_hyperparameters(checkpoint)
    if not given:
        raise ConvertError(
            "the checkpoint has no hyperparameters: neither cfg is a dict nor args a namespace; give chunk_size, "
            "window_length, memory_length, window_position_clamp, chunk_position_clamp, pre_layer_norm and activation "
            "with --config or --set"
        )
    fields = given_fields(sys.modules[__name__], None, options.config, options.assignments)
    fields.refuse_unknown(FIELDS)
    fields.require(
        "chunk_size",
        "window_length",
        "memory_length",
        "window_position_clamp",
        "chunk_position_clamp",
        "pre_layer_norm",
        "activation",
    )
    fields.settle(_derived(state))
    fields.choice("activation", ("relu", "gelu"))
    return fairseq.Hyperparameters(
        n_layer=fields.positive("layers"),
        d_model=fields.positive("model_width"),
        n_head=fields.positive("heads"),
        d_inner=fields.positive("feed_forward_width"),
        chunk_size=fields.positive("chunk_size"),
        chunk_rank=fields.positive("chunk_rank"),
        window_len=fields.positive("window_length"),
        mem_len=fields.positive("memory_length"),
        clamp_len=fields.natural("window_position_clamp"),
        cpos_clamp_len=fields.natural("chunk_position_clamp"),
        pre_ln=fields.switch("pre_layer_norm"),
        use_gelu=fields.values["activation"] == "gelu",
        use_bias=fields.switch("projection_bias"),
    )


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


def _config(
    fields: fairseq.Hyperparameters, options: LanguageModelOptions, vocabulary_size: int, tokenizer: str
) -> LanguageModelConfig:
    return LanguageModelConfig(
        layers=fields.n_layer,
        model_width=fields.d_model,
        heads=fields.n_head,
        feed_forward_width=fields.d_inner,
        chunk_size=fields.chunk_size,
        chunk_rank=fields.chunk_rank,
        window_length=fields.window_len,
        memory_length=options.memory_length if options.memory_length is not None else fields.mem_len,
        segment_length=options.segment_length if options.segment_length is not None else DEFAULT_SEGMENT_LENGTH,
        vocabulary_size=vocabulary_size,
        window_position_clamp=max(fields.clamp_len, 0),
        chunk_position_clamp=max(fields.cpos_clamp_len, 0),
        pre_layer_norm=fields.pre_ln,
        projection_bias=fields.use_bias,
        activation="gelu" if fields.use_gelu else "relu",
        tokenizer=tokenizer,
    )
