"""Common parts of the classifiers in float64: layer norm, the window along an axis, attention of a query, landmarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reference.language_model import softmax

Array = NDArray[np.float64]


def layer_norm(x: Array, gain: Array, bias: Array, epsilon: float) -> Array:
    mean = x.mean(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(x.var(axis=-1, keepdims=True) + epsilon) + bias


def window_axis(position: int, window: int, side: int) -> NDArray[np.int64]:
    """Along one axis, the places that a query sees: its segment and max(w / 2, 1) more on both sides, in the grid."""
    start = position // window * window
    border = max(window // 2, 1)
    return np.arange(max(start - border, 0), min(start + window + border, side))


def attend(query: Array, keys: Array, values: Array, heads: int, bias: Array | float = 0.0) -> Array:
    """query [D], keys and values [n, D], bias [heads, n] on the scores -> [D]; one softmax for each head."""
    split = (len(keys), heads, -1)
    scores = np.einsum("hd,nhd->hn", query.reshape(heads, -1), keys.reshape(split)) + bias
    return np.einsum("hn,nhd->hd", softmax(scores), values.reshape(split)).reshape(-1)


def landmarks(logits: Array, of: Array, heads: int) -> Array:
    """Equation 3: softmax of the logits [n, heads * r] over the n tokens mixes `of` [n, D] to [r, D], head by head."""
    tokens = len(of)
    weights = softmax(logits, axis=0).reshape(tokens, heads, -1)
    return np.einsum("nhr,nhd->rhd", weights, of.reshape(tokens, heads, -1)).reshape(weights.shape[2], -1)
