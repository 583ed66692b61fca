"""A Transformer of the language model's size whose tokens see all tokens before them: what the paper's Figure 3 draws
beside Transformer-LS. Random weights; it is there for its time and memory alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


class FullAttention:
    """`config` as in config.json. `fused`: PyTorch's attention that keeps no scores; else they are written out."""

    def __init__(self, config: Mapping[str, Any], device: torch.device, dtype: torch.dtype, *, fused: bool) -> None:
        width, inner = config["model_width"], config["feed_forward_width"]
        self._heads, self._fused, self._segment = config["heads"], fused, config["segment_length"]
        # Of each layer: a ring of keys and one of values [1, heads, memory + a segment, head_dim].
        self._rings: list[list[Tensor]] = []
        self._place = 0  # of the next segment

        def matrix(out: int, into: int) -> Tensor:
            return torch.randn(out, into, device=device, dtype=dtype) / math.sqrt(into)

        self._embedding = matrix(config["vocabulary_size"], width)
        self._layers = [
            (matrix(3 * width, width), matrix(width, width), matrix(inner, width), matrix(width, inner))
            for _ in range(config["layers"])
        ]

    def remember(self, tokens: int) -> None:
        """From now on, a text is read by segments behind the last `tokens` tokens, as Transformer-XL reads it. They and
        the text are multiples of a segment."""
        shape = (1, self._heads, tokens + self._segment, self._embedding.shape[1] // self._heads)
        like = {"device": self._embedding.device, "dtype": self._embedding.dtype}
        self._rings = [[torch.randn(shape, **like) for _ in ("keys", "values")] for _ in self._layers]

    def read(self, tokens: Tensor) -> Tensor:
        """tokens [B, n] -> logits of the last one [B, V]. With a memory, B = 1."""
        for segment in tokens.split(self._segment if self._rings else tokens.shape[1], dim=1):
            last = self._read_segment(segment)
        return functional.linear(self._norm(last), self._embedding)

    def _read_segment(self, tokens: Tensor) -> Tensor:
        x = self._embedding[tokens]
        for layer, (qkv, out, first, second) in enumerate(self._layers):
            parts = functional.linear(self._norm(x), qkv).unflatten(-1, (3, self._heads, -1)).unbind(2)
            query, key, value = (part.transpose(1, 2) for part in parts)
            attended = (
                self._attend_to_ring(layer, query, key, value) if self._rings else self._attend(query, key, value)
            )
            x = x + functional.linear(attended.transpose(1, 2).flatten(2), out)
            x = x + functional.linear(functional.gelu(functional.linear(self._norm(x), first)), second)
        if self._rings:
            self._place = (self._place + self._segment) % self._rings[0][0].shape[2]
        return x[:, -1]

    def _attend_to_ring(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        own = slice(self._place, self._place + self._segment)
        keys, values = self._rings[layer]
        keys[:, :, own], values[:, :, own] = key, value
        sees = torch.ones(self._segment, keys.shape[2], dtype=torch.bool, device=keys.device)
        sees[:, own] = sees[:, own].tril()
        return functional.scaled_dot_product_attention(query, keys, values, attn_mask=sees)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self._fused:
            return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
        later = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(later, -math.inf).softmax(dim=-1) @ value

    @staticmethod
    def _norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:])
