"""The bidirectional text classifier in float64: one document at a time, query by query.

This is what the C++ model is compared with, so it is written to be read, not to be fast. Masked tokens are looked at
like all others and excluded one by one, as the official code does.

Shapes are in comments: L tokens of a document, D model width, H heads, d = D/H, r landmarks, w window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.attention import Array, attend, landmarks, layer_norm, window_axis
from reference.language_model import gelu


class TextClassifier:
    """`config` and `weights` have the official names."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, NDArray]) -> None:
        self._weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
        self._heads = config["num_head"]
        self._rank = config["num_landmarks"]
        self._window = config["window_size"]
        self._kernel = max(config["conv_kernel_size"], 0)
        self._layers = config["num_layers"]
        self._tied = config["tied_weights"]
        self._debug = config["debug"]
        self._vocabulary_cls = config["vocab_size"] - 1 if config["pooling_mode"] == "CLS" else None
        self._first_layer_with_cls = self._layers
        if config["cls_last_layer"]:
            self._first_layer_with_cls = self._layers - 1
        elif config["cls_token"]:
            self._first_layer_with_cls = 0

    def logits(self, documents: Sequence[NDArray[np.int64]]) -> Array:
        """The scores [classes] of one item, which has one document or two; MEAN divides by their lengths."""
        pooled = [self._pooled(ids) for ids in documents]
        z = pooled[0]
        if len(pooled) == 2:
            z = np.concatenate([*pooled, pooled[0] * pooled[1], pooled[0] - pooled[1]])
        hidden = np.maximum(self._linear("seq_classifer.mlpblock.0", z), 0.0)
        return self._linear("seq_classifer.mlpblock.2", hidden)

    def _pooled(self, ids: NDArray[np.int64]) -> Array:
        """[D]"""
        if self._vocabulary_cls is not None:
            ids = np.concatenate([[self._vocabulary_cls], ids])
        mask = ids != 0
        embeddings = "model.embeddings."
        x = self._weights[embeddings + "word_embeddings.weight"][ids]
        x = x + self._weights[embeddings + "position_embeddings.weight"][: len(ids)]
        cls: Array | None = None
        for layer in range(self._layers):
            if layer == self._first_layer_with_cls:
                cls = self._weights["model.cls_embed"][0]  # [1, D]
            prefix = "model.transformer." if self._tied else f"model.transformer_{layer}."
            rows = self._layer(prefix, x, cls, mask)
            cls, x = (None, rows) if cls is None else (rows[:1], rows[1:])
        if cls is not None:
            return self._norm("model.norm", cls)[0]
        x = self._norm("model.norm", x)
        return x[0] if self._vocabulary_cls is not None else (x * mask[:, None]).sum(axis=0) / len(ids)

    def _layer(self, prefix: str, x: Array, cls: Array | None, mask: NDArray[np.bool_]) -> Array:
        """x [L, D] -> the rows with CLS, if there is one, in front."""
        normed = self._norm(prefix + "norm1", x)
        if cls is not None:
            entering = self._norm(prefix + "norm1", cls) if self._debug else cls
            y = self._attention(prefix + "mha.", normed, entering, mask) + np.concatenate([cls, x])
        elif self._vocabulary_cls is not None:
            y = self._attention(prefix + "mha.", normed[1:], normed[:1], mask[1:]) + x
        else:
            y = self._attention(prefix + "mha.", normed, None, mask) + x
        inner = gelu(self._linear(prefix + "mlpblock.0", self._norm(prefix + "norm2", y)))
        return y + self._linear(prefix + "mlpblock.3", inner)

    def _attention(self, prefix: str, x: Array, cls: Array | None, mask: NDArray[np.bool_]) -> Array:
        """x [L, D], cls [1, D] or None -> the rows of CLS, if there is one, and the tokens."""
        scale = math.sqrt(x.shape[1] // self._heads)
        queries = self._linear(prefix + "W_q", x) / scale
        keys = self._norm(prefix + "dual_ln_l", self._linear(prefix + "W_k", x))
        values = self._norm(prefix + "dual_ln_l", self._linear(prefix + "W_v", x))

        # What every query sees: CLS, then the landmarks.
        common_keys, common_values = self._landmarks(prefix, x, mask, keys), self._landmarks(prefix, x, mask, values)
        if cls is not None:
            cls_key, cls_value = self._linear(prefix + "W_k", cls), self._linear(prefix + "W_v", cls)
            common_keys, common_values = (
                np.concatenate([cls_key, common_keys]),
                np.concatenate([cls_value, common_values]),
            )
        common_keys = self._norm(prefix + "dual_ln_s", common_keys)
        common_values = self._norm(prefix + "dual_ln_s", common_values)

        context = np.zeros_like(x)  # rows of padded queries stay 0
        for position in np.flatnonzero(mask):
            seen = self._window_of(position, mask)
            context[position] = attend(
                queries[position],
                np.concatenate([common_keys, keys[seen]]),
                np.concatenate([common_values, values[seen]]),
                self._heads,
            )
        rows = context + self._convolution(prefix, values * mask[:, None])
        if cls is not None:
            query = self._linear(prefix + "W_q", cls)[0] / scale
            cls_row = attend(
                query,
                np.concatenate([cls_key, context[mask]]),
                np.concatenate([cls_value, context[mask]]),
                self._heads,
            )
            rows = np.concatenate([cls_row[None], rows])
        return self._linear(prefix + "W_o", rows)

    def _landmarks(self, prefix: str, x: Array, mask: NDArray[np.bool_], of: Array) -> Array:
        """Keys or values [L, D] mixed over the positions to [r, D]."""
        if self._rank == 0:
            return np.zeros((0, x.shape[1]))
        logits = np.where(mask[:, None], self._linear(prefix + "dconv_fc", x), -np.inf)  # [L, H*r]
        return landmarks(logits, of, self._heads)

    def _window_of(self, position: int, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The positions that a query sees one by one."""
        if self._window == 0:
            return np.array([position] if self._rank == 0 else [], np.int64)
        seen = window_axis(position, self._window, len(mask))
        return seen[mask[seen]]

    def _convolution(self, prefix: str, values: Array) -> Array:
        """Along the tokens, the same taps for all channels of a head; zeros beyond the ends."""
        if self._kernel == 0:
            return np.zeros_like(values)
        taps = self._weights[prefix + "conv.weight"].reshape(self._heads, self._kernel)
        of_channel = np.repeat(taps, values.shape[1] // self._heads, axis=0)  # [D, k]
        padded = np.pad(values, ((self._kernel // 2, self._kernel // 2), (0, 0)))
        return sum(of_channel[:, tap] * padded[tap : tap + len(values)] for tap in range(self._kernel))

    def _linear(self, name: str, x: Array) -> Array:
        return x @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _norm(self, name: str, x: Array) -> Array:
        return layer_norm(x, self._weights[name + ".weight"], self._weights[name + ".bias"], 1e-5)
