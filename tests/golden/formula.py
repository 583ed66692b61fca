"""Weights by formula: every element is a hash of its tensor's name, the seed and its index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_PREFIX = "decoder.model."


def fnv1a64(name: str) -> int:
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return value


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def tensor(name: str, shape: Sequence[int], base: float, scale: float, seed: int) -> NDArray[np.float32]:
    """base + scale * (2u - 1) in double arithmetic, u in [0, 1) from the top 24 bits of the hash."""
    start = np.uint64((fnv1a64(name) + seed) & _MASK)
    hashed = splitmix64(start + np.arange(math.prod(shape), dtype=np.uint64))
    u = (hashed >> np.uint64(40)).astype(np.float64) / 2.0**24
    return (base + scale * (2.0 * u - 1.0)).astype(np.float32).reshape(shape)


def listed_weights(entry: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """The tensors that `formula` of a classifier's config.json lists as [name, shape, base, scale]."""
    return {name: tensor(name, shape, base, scale, entry["seed"]) for name, shape, base, scale in entry["tensors"]}


def language_model_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of a language model's parameters by official name, without the tied out_emb.weight and the buffer."""
    d, heads, inner, rank = (config[key] for key in ("d_model", "n_head", "d_inner", "chunk_rank"))
    shapes: dict[str, tuple[int, ...]] = {
        "in_emb.weight": (config["vocab_size"], d),
        "out_emb.bias": (config["vocab_size"],),
    }
    layer: dict[str, tuple[int, ...]] = {
        "attn.r_r_bias": (1, heads, 1, d // heads),
        "attn.r_w_bias": (1, heads, 1, 1, d // heads),
        "attn.dconv_1.weight": (heads * rank, d),
        "attn.dconv_1.bias": (heads * rank,),
        "attn.r_net.weight": (d, d),
        "attn.r_net_chunk.weight": (d, d),
        "attn.r_net_chunk.bias": (d,),
        "ff.fc1.weight": (inner, d),
        "ff.fc1.bias": (inner,),
        "ff.fc2.weight": (d, inner),
        "ff.fc2.bias": (d,),
    }
    for projection in ("proj_query", "proj_key", "proj_val", "proj_out"):
        layer[f"attn.{projection}.weight"] = (d, d)
        if config["use_bias"]:
            layer[f"attn.{projection}.bias"] = (d,)
    for norm in ("attn.dual_ln_dproj", "attn.dual_ln_win", "norm1", "norm2"):
        layer[f"{norm}.weight"] = (d,)
        layer[f"{norm}.bias"] = (d,)
    for index in range(config["n_layer"]):
        shapes |= {f"layers.{index}.{name}": shape for name, shape in layer.items()}
    return {_PREFIX + name: shape for name, shape in shapes.items()}


def language_model_weights(config: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """The state dict of a case by formula. Errors: ValueError if a probe value of config.json is not met."""
    rules = config["weights"]["rules_first_matching_suffix"]
    weights: dict[str, NDArray[np.float32]] = {}
    for name, shape in language_model_shapes(config).items():
        rule = next(rule for rule in rules if name.endswith(rule["suffix"]))
        weights[name] = tensor(name, shape, rule["base"], rule["scale"], config["seed"])
    complete_language_model_weights(weights)
    _check_probes(weights, config["weights"]["probe"])
    return weights


def complete_language_model_weights(weights: dict[str, NDArray]) -> None:
    """Adds what is no free parameter: the tied output embedding and the frequencies of the position tables."""
    embedding = weights[_PREFIX + "in_emb.weight"]
    width = embedding.shape[1]
    exponents = np.arange(0, width, 2, dtype=np.float64) / width
    weights[_PREFIX + "out_emb.weight"] = embedding.view()
    weights[_PREFIX + "pos_emb.inv_freq"] = (10000.0**-exponents).astype(np.float32)


def _check_probes(weights: Mapping[str, NDArray[np.float32]], probes: Mapping[str, Any]) -> None:
    for name, probe in probes.items():
        flat = weights[name].reshape(-1)
        found = [*flat[:4].tolist(), flat[-1].item()]
        if found != [*probe["first4"], probe["last"]]:
            raise ValueError(f"{name} by formula starts and ends with {found}, not as weights.probe says")
        total = float(flat.astype(np.float64).sum())
        if not math.isclose(total, probe["sum_f64"], rel_tol=0, abs_tol=1e-9 * flat.size):
            raise ValueError(f"{name} by formula sums to {total}, not {probe['sum_f64']}")
