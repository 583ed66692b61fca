"""The common parts of the models in plain PyTorch, with which Longshort's times are compared. They use only PyTorch's
operations, batched and without loops over tokens, as a straightforward implementation would."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from reference import safetensors_file
from torch import Tensor
from torch.nn import functional

Weights = Mapping[str, Tensor]


def load(directory: Path, device: torch.device, dtype: torch.dtype) -> dict[str, Tensor]:
    """A model directory's tensors under their names."""
    stored = safetensors_file.read(directory / "model.safetensors")
    return {name: torch.from_numpy(np.array(value, np.float32)).to(device, dtype) for name, value in stored.items()}


def linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return functional.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def norm(weights: Weights, name: str, x: Tensor, epsilon: float = 1e-5) -> Tensor:
    gain = weights[f"{name}.weight"]
    return functional.layer_norm(x, gain.shape, gain, weights[f"{name}.bias"], epsilon)


def heads(x: Tensor, count: int) -> Tensor:
    """x [B, n, D] -> [B, H, n, D/H]"""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """x [B, H, n, e] -> [B, n, H * e]"""
    return x.transpose(1, 2).flatten(2)


def landmarks(logits: Tensor, rows: Tensor) -> Tensor:
    """Equation 3: logits [B, n, H * r] over the n rows, rows [B, H, n, e] -> [B, H, r, e]"""
    mixing = heads(logits, rows.shape[1]).softmax(dim=2)
    return mixing.transpose(2, 3) @ rows


def windows(size: tuple[int, ...], window: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The places of a sequence or grid that the queries of each window see.

    Returns their indices [windows, keys], 0 beyond the ends, and their biases of the same shape, minus infinity there.
    """
    border = max(window // 2, 1)
    index = torch.zeros(1, 1, dtype=torch.int64, device=device)
    inside = torch.ones(1, 1, dtype=torch.bool, device=device)
    for length in size:
        first = torch.arange(-border, length - border, window, device=device)
        place = first[:, None] + torch.arange(window + 2 * border, device=device)
        seen = (place >= 0) & (place < length)
        index = (index[:, None, :, None] * length + place[:, None, :]).flatten(2, 3).flatten(0, 1)
        inside = (inside[:, None, :, None] & seen[:, None, :]).flatten(2, 3).flatten(0, 1)
    return index * inside, torch.zeros(inside.shape, device=device).masked_fill(~inside, -math.inf)


def in_windows(x: Tensor, index: Tensor) -> Tensor:
    """x [B, H, n, e], index [windows, keys] -> [B, H, windows, keys, e]"""
    return x.index_select(2, index.flatten()).unflatten(2, index.shape)


def blocks(x: Tensor, size: tuple[int, ...], window: int) -> Tensor:
    """x [B, H, n, e] -> [B, H, windows, queries, e]; the sides of `size` are multiples of the window."""
    if len(size) == 1:
        return x.unflatten(2, (-1, window))
    parted = x.unflatten(2, (size[0] // window, window, size[1] // window, window))
    return parted.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def from_blocks(x: Tensor, size: tuple[int, ...], window: int) -> Tensor:
    """x [B, H, windows, queries, e] -> [B, n, H * e]"""
    if len(size) == 1:
        return joined(x.flatten(2, 3))
    parted = x.unflatten(3, (window, window)).unflatten(2, (size[0] // window, size[1] // window))
    return joined(parted.transpose(3, 4).flatten(2, 5))


def attend_windows(query: Tensor, keys: Tensor, values: Tensor, shared: tuple[Tensor, Tensor], bias: Tensor) -> Tensor:
    """One softmax over the shared vectors and the window.

    query [B, H, w, q, e], keys and values [B, H, w, k, e], shared [B, H, r, e] twice,
    bias [H or 1, w or 1, q or 1, r + k] -> [B, H, w, q, e]
    """
    shared_keys, shared_values = shared
    by_shared = (query.flatten(2, 3) @ shared_keys.transpose(2, 3)).unflatten(2, query.shape[2:4])
    by_window = query @ keys.transpose(3, 4)
    probabilities = (torch.cat([by_shared, by_window], dim=-1) + bias).softmax(dim=-1)
    of_shared, of_window = probabilities.split([shared_keys.shape[2], keys.shape[3]], dim=-1)
    mixed = (of_shared.flatten(2, 3) @ shared_values).unflatten(2, query.shape[2:4])
    return mixed + of_window @ values


def attend_near(
    query: Tensor, tokens: Sequence[Tensor], shared: Sequence[Tensor], size: tuple[int, ...], window: int
) -> Tensor:
    """Each window's queries see the window, its neighbours and the shared vectors.

    query [B, H, n, e], tokens: keys and values [B, H, n, e], shared [B, H, r, e] twice -> [B, n, H * e]
    """
    index, bias = windows(size, window, query.device)
    bias = functional.pad(bias.to(query.dtype), (shared[0].shape[2], 0))[:, None, :]
    keys, values = (in_windows(rows, index) for rows in tokens)
    mixed = attend_windows(blocks(query, size, window), keys, values, (shared[0], shared[1]), bias)
    return from_blocks(mixed, size, window)
