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

    def __init__(self, config: Mapping[str, Any], device: torch.device, dtype: torch.dtype, fused: bool) -> None:
        width, inner = config["model_width"], config["feed_forward_width"]
        self._heads, self._fused = config["heads"], fused

        def matrix(out: int, into: int) -> Tensor:
            return torch.randn(out, into, device=device, dtype=dtype) / math.sqrt(into)

        self._embedding = matrix(config["vocabulary_size"], width)
        self._layers = [
            (matrix(3 * width, width), matrix(width, width), matrix(inner, width), matrix(width, inner))
            for _ in range(config["layers"])
        ]

    def read(self, tokens: Tensor) -> Tensor:
        """tokens [B, n] -> logits of the last one [B, V]"""
        x = self._embedding[tokens]
        for qkv, out, first, second in self._layers:
            query, key, value = functional.linear(self._norm(x), qkv).unflatten(-1, (3, self._heads, -1)).unbind(2)
            x = x + functional.linear(self._attend(*(part.transpose(1, 2) for part in (query, key, value))), out)
            x = x + functional.linear(functional.gelu(functional.linear(self._norm(x), first)), second)
        return functional.linear(self._norm(x[:, -1]), self._embedding)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self._fused:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
            later = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(1)
            mixed = scores.masked_fill(later, -math.inf).softmax(dim=-1) @ value
        return mixed.transpose(1, 2).flatten(2)

    @staticmethod
    def _norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:])
