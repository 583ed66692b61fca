"""The bidirectional text classifier in float64: one document at a time, query by query.

This is what the C++ model is compared with, so it is written to be read, not to be fast. Masked tokens are looked at
like all others and excluded one by one, as the official code does. The long-document encoder (cls "first_token") is the
same network with other switches: with a window that covers the document, rank 0 and no dual norm it is RoBERTa.

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

_OFFICIAL_NAMES = {
    "num_head": "heads",
    "num_landmarks": "projection_rank",
    "window_size": "window_size",
    "conv_kernel_size": "value_convolution",
    "num_layers": "layers",
    "tied_weights": "tied_layers",
    "debug": "normalized_cls",
    "vocab_size": "vocabulary_size",
}


def from_official(official: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of config.json from the official model config."""
    config = {name: official[of] for of, name in _OFFICIAL_NAMES.items()}
    cls = "none"
    if official["pooling_mode"] == "CLS":
        cls = "vocabulary"
    elif official["cls_last_layer"]:
        cls = "last_layer"
    elif official["cls_token"]:
        cls = "all_layers"
    return config | {"value_convolution": max(config["value_convolution"], 0), "cls": cls}


class TextClassifier:
    """`config` has the fields of config.json, `weights` the official names."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, NDArray]) -> None:
        self._weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
        self._heads = config["heads"]
        self._rank = config["projection_rank"]
        self._window = config["window_size"]
        self._kernel = config["value_convolution"]
        self._layers = config["layers"]
        self._tied = config["tied_layers"]
        self._normalized_cls = config["normalized_cls"]
        self._cls = config["cls"]
        self._cls_id = config["vocabulary_size"] - 1
        self._first_layer_with_cls = {"all_layers": 0, "last_layer": self._layers - 1}.get(self._cls, self._layers)
        self._norm_after = config.get("layer_norm", "before") == "after"
        self._epsilon = config.get("layer_norm_epsilon", 1e-5)
        self._dual_norm = config.get("dual_norm", True)
        self._padding_id = config.get("padding_id", 0)
        self._separator_id = config.get("separator_id", 2)
        self._head = {"relu": lambda x: np.maximum(x, 0.0), "tanh": np.tanh}[config.get("head", "relu")]

    def logits(self, documents: Sequence[NDArray[np.int64]]) -> Array:
        """The scores [classes] of one item, which has one document or two; MEAN divides by their lengths."""
        pooled = [self.features(ids) for ids in self._sequences(documents)]
        z = pooled[0]
        if len(pooled) == 2:
            z = np.concatenate([*pooled, pooled[0] * pooled[1], pooled[0] - pooled[1]])
        return self._linear("seq_classifer.mlpblock.2", self._head(self._linear("seq_classifer.mlpblock.0", z)))

    def features(self, ids: NDArray[np.int64]) -> Array:
        """The row [D] that is classified, or the mean. `ids` is one of the sequences that the network reads."""
        cls, x, mask = self._rows(ids)
        return cls if cls is not None else (x * mask[:, None]).sum(axis=0) / len(ids)

    def first(self, documents: Sequence[NDArray[np.int64]]) -> Array:
        """The row [D] of the first token of one sequence."""
        (ids,) = self._sequences(documents)
        return self.features(ids)

    def mean(self, documents: Sequence[NDArray[np.int64]]) -> Array:
        """The mean [D] of the last layer's rows of one sequence, the first token's included."""
        (ids,) = self._sequences(documents)
        cls, x, _ = self._rows(ids)
        return np.concatenate([cls[None], x]).mean(axis=0)

    def _sequences(self, documents: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """The id sequences that the network reads. With cls "first_token", it is one, without padding."""
        if self._cls != "first_token":
            return list(documents)
        ids = documents[0]
        if len(documents) == 2:
            ids = np.concatenate([ids, [self._separator_id], documents[1][1:]])
        return [ids[ids != self._padding_id]]

    def _rows(self, ids: NDArray[np.int64]) -> tuple[Array | None, Array, NDArray[np.bool_]]:
        """After the last layer: the row of CLS [D], if there is one, those of the tokens [L, D], and which count."""
        if self._cls == "vocabulary":
            ids = np.concatenate([[self._cls_id], ids])
        mask = ids != self._padding_id
        embeddings = "model.embeddings."
        x = self._weights[embeddings + "word_embeddings.weight"][ids]
        x = x + self._weights[embeddings + "position_embeddings.weight"][: len(ids)]
        if self._norm_after:
            x = self._norm(embeddings + "norm", x)
        cls: Array | None = None
        for layer in range(self._layers):
            if layer == self._first_layer_with_cls:
                cls = self._weights["model.cls_embed"][0]  # [1, D]
            prefix = "model.transformer." if self._tied else f"model.transformer_{layer}."
            rows = self._layer(prefix, x, cls, mask)
            cls, x = (None, rows) if cls is None else (rows[:1], rows[1:])
        if not self._norm_after:
            x = self._norm("model.norm", x)
            cls = None if cls is None else self._norm("model.norm", cls)
        if self._cls in ("vocabulary", "first_token"):
            return x[0], x[1:], mask[1:]
        return None if cls is None else cls[0], x, mask

    def _layer(self, prefix: str, x: Array, cls: Array | None, mask: NDArray[np.bool_]) -> Array:
        """x [L, D] -> the rows with CLS, if there is one, in front."""

        def before(name: str, rows: Array) -> Array:
            return rows if self._norm_after else self._norm(prefix + name, rows)

        def after(name: str, rows: Array) -> Array:
            return self._norm(prefix + name, rows) if self._norm_after else rows

        normed = before("norm1", x)
        if cls is not None:
            entering = before("norm1", cls) if self._normalized_cls else cls
            y = self._attention(prefix + "mha.", normed, entering, mask) + np.concatenate([cls, x])
        elif self._cls in ("vocabulary", "first_token"):
            y = self._attention(prefix + "mha.", normed[1:], normed[:1], mask[1:]) + x
        else:
            y = self._attention(prefix + "mha.", normed, None, mask) + x
        y = after("norm1", y)
        inner = gelu(self._linear(prefix + "mlpblock.0", before("norm2", y)))
        return after("norm2", y + self._linear(prefix + "mlpblock.3", inner))

    def _attention(self, prefix: str, x: Array, cls: Array | None, mask: NDArray[np.bool_]) -> Array:
        """x [L, D], cls [1, D] or None -> the rows of CLS, if there is one, and the tokens."""
        scale = math.sqrt(x.shape[1] // self._heads)
        queries = self._linear(prefix + "W_q", x) / scale
        keys = self._dual(prefix + "dual_ln_l", self._linear(prefix + "W_k", x))
        values = self._dual(prefix + "dual_ln_l", self._linear(prefix + "W_v", x))

        # What every query sees: CLS, then the landmarks.
        common_keys, common_values = self._landmarks(prefix, x, mask, keys), self._landmarks(prefix, x, mask, values)
        if cls is not None:
            cls_key, cls_value = self._linear(prefix + "W_k", cls), self._linear(prefix + "W_v", cls)
            common_keys, common_values = (
                np.concatenate([cls_key, common_keys]),
                np.concatenate([cls_value, common_values]),
            )
        common_keys = self._dual(prefix + "dual_ln_s", common_keys)
        common_values = self._dual(prefix + "dual_ln_s", common_values)

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
            if self._cls == "first_token":
                seen_keys = np.concatenate([common_keys[:1], keys[mask]])
                seen_values = np.concatenate([common_values[:1], values[mask]])
            else:
                seen_keys = np.concatenate([cls_key, context[mask]])
                seen_values = np.concatenate([cls_value, context[mask]])
            cls_row = attend(query, seen_keys, seen_values, self._heads)
            rows = np.concatenate([cls_row[None], rows])
        return self._linear(prefix + "W_o", rows)

    def _landmarks(self, prefix: str, x: Array, mask: NDArray[np.bool_], of: Array) -> Array:
        """Keys or values [L, D] mixed over the positions to [r, D]."""
        if self._rank == 0 or len(x) == 0:
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
        return layer_norm(x, self._weights[name + ".weight"], self._weights[name + ".bias"], self._epsilon)

    def _dual(self, name: str, x: Array) -> Array:
        return self._norm(name, x) if self._dual_norm else x
