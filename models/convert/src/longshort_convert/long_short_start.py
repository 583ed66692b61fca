"""Where a RoBERTa begins its further training as a Transformer-LS: longer position tables, and landmarks.

The choices are this project's (docs/models/long_document_encoder.md): those of the paper are not published.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longshort_convert.weights import Weight

# Of the weights of landmarks' projections: RoBERTa's initializer_range.
_DEVIATION = 0.02


def numbers(weight: Weight) -> NDArray[np.float32]:
    """The values as float32, which holds all types of weights exactly."""
    if weight.type_name == "bfloat16":
        return (weight.values.astype(np.uint32) << 16).view(np.float32)
    return weight.values.astype(np.float32)


def repeated(table: NDArray[Any], rows: int) -> NDArray[Any]:
    """The table's first rows; beyond its end, it begins again, as in Longformer."""
    return np.ascontiguousarray(table[np.arange(rows) % len(table)])


def add_landmarks(weights: dict[str, Weight], layers: int, heads: int, rank: int, seed: int) -> None:
    """Adds landmarks that begin as means with weights drawn by `seed`, and DualLN that begins as the identity, nearly.

    DualLN begins with gain 1 and bias 0, so that it maps k to (k - m) / s. For a key, m adds the same number to all
    scores of a query, and s goes into W_q. For a value, both go into W_o. What m and s are for a typical token follows
    from the layer norm before the layer: its outputs have its bias as means and its gains as deviations.
    """
    random = np.random.default_rng(seed)
    for layer in range(layers):
        prefix = f"model.transformer_{layer}.mha."
        before = f"model.transformer_{layer - 1}.norm2" if layer > 0 else "model.embeddings.norm"
        gain, bias = (numbers(weights[f"{before}.{part}"]).astype(np.float64) for part in ("weight", "bias"))
        query, out = (_affine(weights, prefix + name) for name in ("W_q", "W_o"))
        _, key_scale = _typical(*_affine(weights, prefix + "W_k"), gain, bias)
        value_mean, value_scale = _typical(*_affine(weights, prefix + "W_v"), gain, bias)
        _store(weights, prefix + "W_q", query[0] * key_scale, query[1] * key_scale)
        _store(weights, prefix + "W_o", out[0] * value_scale, out[1] + value_mean * out[0].sum(axis=1))
        width = len(gain)
        drawn = random.standard_normal((heads * rank, width)) * _DEVIATION
        _store(weights, prefix + "dconv_fc", drawn, np.zeros(heads * rank))
        for name in ("dual_ln_s", "dual_ln_l"):
            _store(weights, prefix + name, np.ones(width), np.zeros(width))


def _affine(weights: dict[str, Weight], name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return tuple(numbers(weights[f"{name}.{part}"]).astype(np.float64) for part in ("weight", "bias"))  # type: ignore[return-value]


def _store(weights: dict[str, Weight], name: str, weight: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
    for part, values in (("weight", weight), ("bias", bias)):
        weights[f"{name}.{part}"] = Weight("float32", values.astype(np.float32))


def _typical(
    weight: NDArray[np.float64], shift: NDArray[np.float64], gain: NDArray[np.float64], bias: NDArray[np.float64]
) -> tuple[float, float]:
    """Mean and deviation over the channels of weight @ x + shift, for x with mean `bias` and deviations `gain`."""
    means = weight @ bias + shift
    variance = ((weight * gain) ** 2).sum(axis=1).mean() + means.var()
    return float(means.mean()), float(np.sqrt(variance))
