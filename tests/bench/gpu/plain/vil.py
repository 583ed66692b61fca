"""ViL-LS in plain PyTorch: with relative positions, one global token or none, and grids whose sides are multiples of
the windows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.plain.parts import (
    Weights,
    attend_windows,
    blocks,
    from_blocks,
    heads,
    in_windows,
    joined,
    landmarks,
    linear,
    norm,
    windows,
)

_DEFAULTS = {"l": 1, "h": 3, "d": 192, "n": 1, "s": 1, "g": 1, "p": 2, "f": 7, "a": 1, "r": 0}


class Vil:
    """`config` as in config.json."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        self._weights = weights
        self._stages = []
        for part in config["stages"].split("_"):
            stage = _DEFAULTS | {key: int(value) for key, value in re.findall(r"([a-z])(\d+)", part)}
            stage["s"] = stage["s"] and all(earlier["s"] for earlier in self._stages)
            if stage["a"]:
                raise ValueError("only relative positions are here")
            self._stages.append(stage)
        # Biases depend on the weights alone, and windows on the grid.
        self._biases: dict[str, Tensor] = {}
        self._windows: dict[str, Tensor] = {}

    def logits(self, images: Tensor) -> Tensor:
        """images [B, channels, side, side] -> [B, classes]"""
        x = images
        for stage in self._stages:
            prefix, g = f"layer{stage['l']}.0.", stage["g"]
            x = functional.conv2d(
                x, self._weights[prefix + "proj.weight"], self._weights[prefix + "proj.bias"], stride=stage["p"]
            )
            n = x.shape[2]
            tokens = x.flatten(2).transpose(1, 2)
            if prefix + "norm_embed.weight" in self._weights:
                tokens = norm(self._weights, prefix + "norm_embed", tokens, 1e-6)
            if g:
                tokens = torch.cat([self._weights[prefix + "cls_token"].expand(len(x), -1, -1), tokens], dim=1)
            for pair in range(stage["n"]):
                tokens = self._pair(stage, 2 * pair + 1, tokens, n)
            x = tokens[:, g:].transpose(1, 2).unflatten(2, (n, n))
        tokens = norm(self._weights, "norm", tokens, 1e-6)
        return linear(self._weights, "head", tokens[:, 0] if self._stages[-1]["g"] else tokens.mean(dim=1))

    def _pair(self, stage: Mapping[str, int], index: int, tokens: Tensor, n: int) -> Tensor:
        first, second = f"layer{stage['l']}.{index}.", f"layer{stage['l']}.{index + 1}."
        attention = self._sparse if stage["s"] else self._full
        tokens = tokens + attention(first + "attn.", stage, norm(self._weights, first + "norm", tokens, 1e-6), n)
        inner = linear(self._weights, second + "mlp.fc1", norm(self._weights, second + "norm", tokens, 1e-6))
        return tokens + linear(self._weights, second + "mlp.fc2", functional.gelu(inner))

    def _qkv(self, prefix: str, stage: Mapping[str, int], x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = linear(self._weights, prefix + "qkv", x).chunk(3, dim=-1)
        return query / math.sqrt(stage["d"] // stage["h"]), key, value

    def _full(self, prefix: str, stage: Mapping[str, int], x: Tensor, n: int) -> Tensor:
        query, key, value = (heads(part, stage["h"]) for part in self._qkv(prefix, stage, x))
        if prefix not in self._biases:
            self._biases[prefix] = self._full_bias(prefix, stage, n)
        mixed = functional.scaled_dot_product_attention(query, key, value, self._biases[prefix], scale=1.0)
        return linear(self._weights, prefix + "proj", joined(mixed))

    def _full_bias(self, prefix: str, stage: Mapping[str, int], n: int) -> Tensor:
        """[1, H, g + n * n, g + n * n]"""
        table, g = self._weights[prefix + "local_relative_position_bias_table"], stage["g"]
        place = torch.arange(n, device=table.device)
        offset = place[:, None] - place[None, :] + n - 1
        index = offset[:, None, :, None] * (2 * n - 1) + offset[None, :, None, :]
        bias = table.new_zeros(1, stage["h"], g + n * n, g + n * n)
        bias[0, :, g:, g:] = table[index.reshape(n * n, n * n)].permute(2, 0, 1)
        if g:
            between = self._weights[prefix + "g2l_relative_position_bias"]  # [2, H, g]
            bias[0, :, :g, g:], bias[0, :, g:, :g] = between[0][:, :, None], between[1][:, None, :]
            bias[0, :, :g, :g] = self._weights[prefix + "g2g_relative_position_bias"]
        return bias

    def _sparse(self, prefix: str, stage: Mapping[str, int], x: Tensor, n: int) -> Tensor:
        count, g, w = stage["h"], stage["g"], stage["f"]
        query, key, value = self._qkv(prefix, stage, x)
        key, value = (norm(self._weights, prefix + "dual_ln_full", part) for part in (key, value))
        logits = linear(self._weights, prefix + "to_dynamic_projection", x[:, g:])
        if prefix not in self._biases:
            self._windows[prefix], seen = windows((n, n), w, x.device)
            self._biases[prefix] = self._window_bias(prefix, stage, seen.to(x.dtype))
        shared, seen_by_windows = [], []
        for rows in (key, value):
            of_tokens = heads(rows[:, g:], count)
            mixed = norm(self._weights, prefix + "dual_ln_dp", joined(landmarks(logits, of_tokens)))
            shared.append(heads(torch.cat([mixed, rows[:, :g]], dim=1), count))
            seen_by_windows.append(in_windows(of_tokens, self._windows[prefix]))
        queries = blocks(heads(query[:, g:], count), (n, n), w)
        mixed = attend_windows(queries, *seen_by_windows, (shared[0], shared[1]), self._biases[prefix])
        out = from_blocks(mixed, (n, n), w)
        if g:
            seen_keys = heads(torch.cat([key[:, :1], out], dim=1), count)
            seen_values = heads(torch.cat([value[:, :1], out], dim=1), count)
            scores = heads(query[:, :1], count) @ seen_keys.transpose(2, 3)
            out = torch.cat([joined(scores.softmax(dim=-1) @ seen_values), out], dim=1)
        return linear(self._weights, prefix + "proj", out)

    def _window_bias(self, prefix: str, stage: Mapping[str, int], seen: Tensor) -> Tensor:
        """seen [windows, keys], minus infinity beyond the grid -> [H, windows, queries, shared + keys]"""
        table, w = self._weights[prefix + "local_relative_position_bias_table"], stage["f"]
        half = w // 2
        place = torch.arange(w, device=table.device)[:, None] - torch.arange(-half, w + half, device=table.device)
        offset = place + half + w - 1  # [query, key] along one axis
        index = offset[:, None, :, None] * (2 * half + w) + offset[None, :, None, :]
        bias = table[index.reshape(w * w, -1)].permute(2, 0, 1)[:, None]  # [H, 1, queries, keys]
        return functional.pad(bias + seen[:, None, :], (stage["r"] + stage["g"], 0))
