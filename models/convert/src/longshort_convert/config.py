"""The config.json of a language model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from longshort_convert.errors import ConvertError


@dataclass(frozen=True)
class LanguageModelConfig:
    """The paper's hyperparameters. Lengths are in tokens. A clamp of 0 means no clamp."""

    layers: int
    model_width: int
    heads: int
    feed_forward_width: int
    chunk_size: int
    chunk_rank: int
    window_length: int
    memory_length: int
    segment_length: int
    vocabulary_size: int
    window_position_clamp: int
    chunk_position_clamp: int
    pre_layer_norm: bool
    projection_bias: bool
    activation: str
    tokenizer: str

    def check(self) -> None:
        """Raises ConvertError naming a violated rule."""
        rules = [
            (self.model_width % 2 == 0, f"d_model {self.model_width} is odd"),
            (
                self.model_width % self.heads == 0,
                f"d_model {self.model_width} is not a multiple of n_head {self.heads}",
            ),
            (
                self.segment_length % self.chunk_size == 0,
                f"segment length {self.segment_length} is not a multiple of chunk_size {self.chunk_size}",
            ),
            (
                self.memory_length % self.chunk_size == 0,
                f"mem_len {self.memory_length} is not a multiple of chunk_size {self.chunk_size}",
            ),
            (
                self.memory_length >= self.window_length,
                f"mem_len {self.memory_length} is less than window_len {self.window_length}",
            ),
        ]
        for holds, broken in rules:
            if not holds:
                raise ConvertError(broken)

    def to_fields(self) -> dict[str, Any]:
        return {"architecture": "language_model", **asdict(self)}
