"""CvT*-LS in plain PyTorch: grids whose sides are multiples of the windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.plain.parts import Weights, attend_near, heads, joined, landmarks, linear, norm


class Cvt:
    """`config` as in config.json."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        self._config = config
        self._weights = dict(weights)
        for name in [name for name in weights if name.endswith("to_dyn.depthwise.weight")]:
            # Weight standardisation, once.
            taps = weights[name].flatten(1)
            deviation = taps.std(dim=1, keepdim=True) + config["weight_standardization_epsilon"]
            self._weights[name] = ((taps - taps.mean(dim=1, keepdim=True)) / deviation).view_as(weights[name])

    def logits(self, grid: Tensor) -> Tensor:
        """images [B, channels, height, width] -> [B, classes]"""
        for stage, depth in enumerate(self._config["stage_depths"]):
            prefix = f"stages.{stage}."
            grid = functional.conv2d(
                grid,
                self._weights[prefix + "embed.weight"],
                self._weights[prefix + "embed.bias"],
                stride=self._config["embedding_strides"][stage],
                padding=self._config["embedding_paddings"][stage],
            )
            size = grid.shape[2:]
            tokens = self._norm(prefix + "embed_norm", grid.flatten(2).transpose(1, 2))
            for block in range(depth):
                tokens = self._block(f"{prefix}blocks.{block}.", stage, tokens, size)
            grid = tokens.transpose(1, 2).unflatten(2, size)
        return linear(self._weights, "head", self._norm("norm", tokens).mean(dim=1))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        return norm(self._weights, name, x, self._config["layer_norm_epsilon"])

    def _block(self, prefix: str, stage: int, tokens: Tensor, size: torch.Size) -> Tensor:
        grid = self._norm(prefix + "norm1", tokens).transpose(1, 2).unflatten(2, size)
        tokens = tokens + self._attention(prefix + "attn.", stage, grid)
        inner = functional.gelu(linear(self._weights, prefix + "fc1", self._norm(prefix + "norm2", tokens)))
        return tokens + linear(self._weights, prefix + "fc2", inner)

    def _attention(self, prefix: str, stage: int, grid: Tensor) -> Tensor:
        """grid [B, D, N, M] -> [B, N * M, D]"""
        count, w = self._config["stage_heads"][stage], self._config["window_sizes"][stage]
        size = grid.shape[2:]
        query = self._convolved(prefix + "to_q.", grid) / math.sqrt(grid.shape[1] // count)
        logits = self._convolved(prefix + "to_dyn.", grid).flatten(2).transpose(1, 2)
        of_values = "" if self._config["shared_dual_norm"] else "_v"
        shared, tokens = [], []
        for part, which in (("to_k.", ""), ("to_v.", of_values)):
            rows = self._norm(prefix + "ln_l" + which, self._convolved(prefix + part, grid).flatten(2).transpose(1, 2))
            of_tokens = heads(rows, count)
            shared.append(heads(self._norm(prefix + "ln_g" + which, joined(landmarks(logits, of_tokens))), count))
            tokens.append(of_tokens)
        queries = heads(query.flatten(2).transpose(1, 2), count)
        return linear(self._weights, prefix + "proj", attend_near(queries, tokens, shared, tuple(size), w))

    def _convolved(self, prefix: str, grid: Tensor) -> Tensor:
        """Depthwise convolution, batch norm where there is one, pointwise."""
        kernel = self._weights[prefix + "depthwise.weight"]
        mixed = functional.conv2d(
            grid, kernel, self._weights[prefix + "depthwise.bias"], padding=kernel.shape[2] // 2, groups=len(kernel)
        )
        if prefix + "bn.weight" in self._weights:
            mixed = functional.batch_norm(
                mixed,
                *(self._weights[f"{prefix}bn.{name}"] for name in ("running_mean", "running_var", "weight", "bias")),
                eps=self._config["batch_norm_epsilon"],
            )
        return functional.conv2d(
            mixed, self._weights[prefix + "pointwise.weight"], self._weights[prefix + "pointwise.bias"]
        )


class FullCvt(Cvt):
    """The same network with full attention: all tokens see all tokens of the grid, without landmarks."""

    def _attention(self, prefix: str, stage: int, grid: Tensor) -> Tensor:
        query, key, value = (
            heads(self._convolved(prefix + name, grid).flatten(2).transpose(1, 2), self._config["stage_heads"][stage])
            for name in ("to_q.", "to_k.", "to_v.")
        )
        # Only if each head's numbers lie side by side does PyTorch not keep all scores.
        mixed = functional.scaled_dot_product_attention(query.contiguous(), key.contiguous(), value.contiguous())
        return linear(self._weights, prefix + "proj", joined(mixed))
