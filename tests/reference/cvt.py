"""CvT*-LS in float64: one image at a time, attention query by query.

Written to be read and to be compared with. Shapes are in comments: a grid of rows x columns, n = rows * columns tokens,
D width, H heads, r landmarks, w window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.attention import Array, attend, landmarks, layer_norm, window_axis
from reference.language_model import gelu


class Cvt:
    """`config` and `weights` have the names of the specification."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, NDArray]) -> None:
        self._config = config
        self._weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}

    def logits(self, image: Array) -> Array:
        """image [channels, height, width] -> [classes]"""
        grid = np.asarray(image, np.float64)
        for stage, depth in enumerate(self._config["depths"]):
            prefix = f"stages.{stage}."
            grid = self._embedded(prefix, stage, grid)
            tokens = self._norm(prefix + "embed_norm", _tokens(grid))
            for block in range(depth):
                tokens = self._block(f"{prefix}blocks.{block}.", stage, tokens, grid.shape[1:])
            grid = tokens.T.reshape(grid.shape)
        return self._linear("head", self._norm("norm", tokens).mean(axis=0))

    def _embedded(self, prefix: str, stage: int, grid: Array) -> Array:
        """The convolution [C, rows, columns] -> [D, rows', columns']."""
        kernel, stride, pad = (self._config[f"embed_{name}"][stage] for name in ("kernel", "stride", "pad"))
        padded = np.pad(grid, ((0, 0), (pad, pad), (pad, pad)))
        patches = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(1, 2))[:, ::stride, ::stride]
        out = np.einsum("cyxij,dcij->dyx", patches, self._weights[prefix + "embed.weight"])
        return out + self._weights[prefix + "embed.bias"][:, None, None]

    def _block(self, prefix: str, stage: int, tokens: Array, size: tuple[int, ...]) -> Array:
        tokens = tokens + self._attention(prefix + "attn.", stage, self._norm(prefix + "norm1", tokens), size)
        inner = gelu(self._linear(prefix + "fc1", self._norm(prefix + "norm2", tokens)))
        return tokens + self._linear(prefix + "fc2", inner)

    def _attention(self, prefix: str, stage: int, z: Array, size: tuple[int, ...]) -> Array:
        """z [n, D] -> [n, D]; one softmax over the landmarks and the window."""
        heads, w = self._config["heads"][stage], self._config["w"][stage]
        grid = z.T.reshape(-1, *size)
        query = self._separable(prefix + "to_q.", grid) / math.sqrt(z.shape[1] // heads)
        of_values = "" if self._config["dual_ln_shared_kv"] else "_v"
        key = self._norm(prefix + "ln_l", self._separable(prefix + "to_k.", grid))
        value = self._norm(prefix + "ln_l" + of_values, self._separable(prefix + "to_v.", grid))
        logits = self._dynamic_logits(prefix + "to_dyn.", grid)
        long_key = self._norm(prefix + "ln_g", landmarks(logits, key, heads))
        long_value = self._norm(prefix + "ln_g" + of_values, landmarks(logits, value, heads))

        out = np.zeros_like(z)
        for position in range(len(z)):
            row, column = divmod(position, size[1])
            rows, columns = window_axis(row, w, size[0]), window_axis(column, w, size[1])
            seen = (rows[:, None] * size[1] + columns[None, :]).reshape(-1)
            out[position] = attend(
                query[position],
                np.concatenate([long_key, key[seen]]),
                np.concatenate([long_value, value[seen]]),
                heads,
            )
        return self._linear(prefix + "proj", out)

    def _separable(self, prefix: str, grid: Array) -> Array:
        """Depthwise convolution, batch norm with running statistics, pointwise: [D, rows, columns] -> [n, D]."""
        mixed = _tokens(_depthwise(grid, self._weights[prefix + "depthwise.weight"]))
        mixed = mixed + self._weights[prefix + "depthwise.bias"]
        deviation = np.sqrt(self._weights[prefix + "bn.running_var"] + self._config["bn_eps"])
        normed = (mixed - self._weights[prefix + "bn.running_mean"]) / deviation
        return self._pointwise(prefix, normed * self._weights[prefix + "bn.weight"] + self._weights[prefix + "bn.bias"])

    def _dynamic_logits(self, prefix: str, grid: Array) -> Array:
        """The same with a kernel that is standardised over its taps, without a batch norm: [n, H*r]."""
        kernel = self._weights[prefix + "depthwise.weight"]
        taps = kernel.reshape(len(kernel), -1)
        deviation = taps.std(axis=1, ddof=1, keepdims=True)
        taps = (taps - taps.mean(axis=1, keepdims=True)) / (deviation + self._config["ws_eps"])
        mixed = _tokens(_depthwise(grid, taps.reshape(kernel.shape)))
        return self._pointwise(prefix, mixed + self._weights[prefix + "depthwise.bias"])

    def _pointwise(self, prefix: str, x: Array) -> Array:
        return x @ self._weights[prefix + "pointwise.weight"][:, :, 0, 0].T + self._weights[prefix + "pointwise.bias"]

    def _linear(self, name: str, x: Array) -> Array:
        return x @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _norm(self, name: str, x: Array) -> Array:
        return layer_norm(x, self._weights[name + ".weight"], self._weights[name + ".bias"], self._config["ln_eps"])


def _tokens(grid: Array) -> Array:
    """[D, rows, columns] -> [n, D], row by row."""
    return grid.reshape(len(grid), -1).T


def _depthwise(grid: Array, kernel: Array) -> Array:
    """Each channel by its own kernel [D, 1, k, k], with zeros around: the size stays."""
    half = kernel.shape[2] // 2
    padded = np.pad(grid, ((0, 0), (half, half), (half, half)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], axis=(1, 2))
    return np.einsum("cyxij,cij->cyx", patches, kernel[:, 0])
