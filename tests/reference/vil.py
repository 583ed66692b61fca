"""ViL-LS in float64: one image at a time; sparse attention query by query.

Written to be read and to be compared with. Shapes are in comments: n tokens along a side, d width, g global tokens,
H heads, r landmarks, w window.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.attention import Array, attend, landmarks, layer_norm, window_axis
from reference.language_model import gelu, softmax

_DEFAULTS = {"l": 1, "h": 3, "d": 192, "n": 1, "s": 1, "g": 1, "p": 2, "f": 7, "a": 1, "r": 0}


class Vil:
    """`arguments` and `weights` have the official names."""

    def __init__(self, arguments: Mapping[str, Any], weights: Mapping[str, NDArray]) -> None:
        self._weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
        self._average = arguments["avg_pool"]
        self._stages = []
        for part in arguments["arch"].split("_"):
            stage = _DEFAULTS | {key: int(value) for key, value in re.findall(r"([a-z])(\d+)", part)}
            # Full attention is sticky.
            stage["s"] = stage["s"] and all(earlier["s"] for earlier in self._stages)
            self._stages.append(stage)

    def logits(self, image: Array) -> Array:
        """image [channels, side, side] -> [classes]"""
        x = np.asarray(image, np.float64)
        for stage in self._stages:
            tokens = self._embedded(stage, x)
            n = math.isqrt(len(tokens) - stage["g"])
            for pair in range(stage["n"]):
                tokens = self._pair(stage, 2 * pair + 1, tokens, n)
            # The global tokens end with their stage.
            x = tokens[stage["g"] :].T.reshape(-1, n, n)
        tokens = self._norm("norm", tokens, 1e-6)
        pooled = tokens[0] if stage["g"] > 0 and not self._average else tokens.mean(axis=0)
        return self._linear("head", pooled)

    def _embedded(self, stage: Mapping[str, int], x: Array) -> Array:
        """x [C, N, N] -> [g + n*n, d], n = N div p; what remains on the right and at the bottom is dropped."""
        prefix, p = f"layer{stage['l']}.0.", stage["p"]
        channels, n = len(x), x.shape[1] // p
        patches = x[:, : n * p, : n * p].reshape(channels, n, p, n, p)
        tokens = np.einsum("crisj,dcij->rsd", patches, self._weights[prefix + "proj.weight"])
        tokens = tokens.reshape(n * n, -1) + self._weights[prefix + "proj.bias"]
        if prefix + "norm_embed.weight" in self._weights:
            tokens = self._norm(prefix + "norm_embed", tokens, 1e-6)
        if stage["g"] > 0:
            tokens = np.concatenate([self._weights[prefix + "cls_token"][0], tokens])
        if not stage["a"]:
            return tokens
        rows, columns = self._weights[prefix + "x_pos_embed"][0], self._weights[prefix + "y_pos_embed"][0]  # [n, d/2]
        grid = np.concatenate([np.repeat(rows, n, axis=0), np.tile(columns, (n, 1))], axis=1)
        tokens[stage["g"] :] += grid
        if stage["g"] > 0:
            tokens[: stage["g"]] += self._weights[prefix + "cls_pos_embed"][0]
        return tokens

    def _pair(self, stage: Mapping[str, int], index: int, tokens: Array, n: int) -> Array:
        """Attention and MLP, each with its norm in front."""
        first, second = f"layer{stage['l']}.{index}.", f"layer{stage['l']}.{index + 1}."
        normed = self._norm(first + "norm", tokens, 1e-6)
        attention = self._sparse if stage["s"] else self._full
        tokens = tokens + attention(first + "attn.", stage, normed, n)
        inner = gelu(self._linear(second + "mlp.fc1", self._norm(second + "norm", tokens, 1e-6)))
        return tokens + self._linear(second + "mlp.fc2", inner)

    def _qkv(self, prefix: str, stage: Mapping[str, int], x: Array) -> tuple[Array, Array, Array]:
        query, key, value = np.split(self._linear(prefix + "qkv", x), 3, axis=1)
        return query / math.sqrt(stage["d"] // stage["h"]), key, value

    def _full(self, prefix: str, stage: Mapping[str, int], x: Array, n: int) -> Array:
        query, key, value = self._qkv(prefix, stage, x)
        heads, g = stage["h"], stage["g"]
        bias = np.zeros((heads, g + n * n, g + n * n))
        if not stage["a"]:
            table = self._weights[prefix + "local_relative_position_bias_table"]
            place = np.arange(n)
            offset = place[:, None] - place[None, :] + n - 1
            index = offset[:, None, :, None] * (2 * n - 1) + offset[None, :, None, :]
            bias[:, g:, g:] = table[index.reshape(n * n, n * n)].transpose(2, 0, 1)
            if g > 0:
                between = self._weights[prefix + "g2l_relative_position_bias"]  # [2, H, g]
                bias[:, :g, g:] = between[0][:, :, None]
                bias[:, g:, :g] = between[1][:, None, :]
                bias[:, :g, :g] = self._weights[prefix + "g2g_relative_position_bias"]
        split = (len(x), heads, -1)
        scores = np.einsum("qhd,khd->hqk", query.reshape(split), key.reshape(split)) + bias
        mixed = np.einsum("hqk,khd->qhd", softmax(scores), value.reshape(split)).reshape(x.shape)
        return self._linear(prefix + "proj", mixed)

    def _sparse(self, prefix: str, stage: Mapping[str, int], x: Array, n: int) -> Array:
        """Landmarks, window and global token (g is 0 or 1) in one softmax; the global token looks at what came out."""
        heads, g, w = stage["h"], stage["g"], stage["f"]
        query, key, value = self._qkv(prefix, stage, x)
        key, value = (self._norm(prefix + "dual_ln_full", side, 1e-5) for side in (key, value))
        long_key, long_value = np.zeros((0, stage["d"])), np.zeros((0, stage["d"]))
        if stage["r"] > 0:
            logits = self._linear(prefix + "to_dynamic_projection", x[g:])
            long_key = self._norm(prefix + "dual_ln_dp", landmarks(logits, key[g:], heads), 1e-5)
            long_value = self._norm(prefix + "dual_ln_dp", landmarks(logits, value[g:], heads), 1e-5)

        out = np.zeros((n * n, stage["d"]))
        for row in range(n):
            for column in range(n):
                rows = window_axis(row, w, n) if w > 0 else np.zeros(0, np.int64)
                columns = window_axis(column, w, n) if w > 0 else np.zeros(0, np.int64)
                seen = g + (rows[:, None] * n + columns[None, :]).reshape(-1)
                bias = np.zeros((heads, stage["r"] + len(seen) + g))
                if not stage["a"] and w > 0:
                    bias[:, stage["r"] : stage["r"] + len(seen)] = self._window_bias(
                        prefix, w, row, column, rows, columns
                    )
                out[row * n + column] = attend(
                    query[g + row * n + column],
                    np.concatenate([long_key, key[seen], key[:g]]),
                    np.concatenate([long_value, value[seen], value[:g]]),
                    heads,
                    bias,
                )
        if g > 0:
            cls = attend(query[0], np.concatenate([key[:1], out]), np.concatenate([value[:1], out]), heads)
            out = np.concatenate([cls[None], out])
        return self._linear(prefix + "proj", out)

    def _window_bias(
        self, prefix: str, w: int, row: int, column: int, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> Array:
        """[H, rows * columns]"""
        table = self._weights[prefix + "local_relative_position_bias_table"]
        if w == 1:
            return np.repeat(table[:1].T, len(rows) * len(columns), axis=1)
        half = w // 2
        down, right = row - rows + half + w - 1, column - columns + half + w - 1
        index = down[:, None] * (2 * half + w) + right[None, :]
        return table[index.reshape(-1)].T

    def _linear(self, name: str, x: Array) -> Array:
        return x @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _norm(self, name: str, x: Array, epsilon: float) -> Array:
        return layer_norm(x, self._weights[name + ".weight"], self._weights[name + ".bias"], epsilon)
