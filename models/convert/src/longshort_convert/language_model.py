"""Converts a fairseq checkpoint of the language model and a vocabulary to the files of a model directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from longshort_convert import fairseq, vocabulary
from longshort_convert.config import LanguageModelConfig
from longshort_convert.errors import ConvertError
from longshort_convert.model_files import ModelFiles

# In tokens, as in the official evaluation.
DEFAULT_SEGMENT_LENGTH = 256


@dataclass(frozen=True)
class LanguageModelOptions:
    """The user's options. None: the value follows from the checkpoint or the symbols."""

    vocabulary: Path | None
    tokenizer: str | None
    segment_length: int | None
    memory_length: int | None


def convert(checkpoint: object, options: LanguageModelOptions) -> ModelFiles:
    """Raises ConvertError or OSError."""
    fields = fairseq.read_hyperparameters(checkpoint)
    weights = fairseq.read_weights(checkpoint, fields)
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


def _vocabulary(options: LanguageModelOptions, vocabulary_size: int) -> tuple[bytes | None, str]:
    """The content of vocabulary.txt, or None, and the tokenizer."""
    if options.vocabulary is None:
        if options.tokenizer is not None:
            raise ConvertError(f"--tokenizer={options.tokenizer} needs --vocabulary")
        return None, vocabulary.NO_TOKENIZER
    content = options.vocabulary.read_bytes()
    return content, vocabulary.check_vocabulary(content, str(options.vocabulary), vocabulary_size, options.tokenizer)


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
