"""The common parts of the models in plain PyTorch, with which Longshort's times are compared. They use only PyTorch's
operations, batched and without loops over tokens, as a straightforward implementation would."""

from __future__ import annotations

from collections.abc import Mapping
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


def window_2d(grid: Tensor, window: int) -> Tensor:
    """The places that the queries of each window see: grid [B, C, N, M] -> [B, windows, keys, C]; zeros beyond."""
    border = max(window // 2, 1)
    side = window + 2 * border
    patches = functional.unfold(grid, side, stride=window, padding=border)  # [B, C * side * side, windows]
    return patches.unflatten(1, (grid.shape[1], side * side)).permute(0, 3, 2, 1)


def blocks_2d(grid: Tensor, window: int) -> Tensor:
    """grid [B, C, N, M] -> [B, windows, window * window, C]; its sides are multiples of the window."""
    patches = functional.unfold(grid, window, stride=window)
    return patches.unflatten(1, (grid.shape[1], window * window)).permute(0, 3, 2, 1)


def from_blocks_2d(blocks: Tensor, size: tuple[int, int], window: int) -> Tensor:
    """blocks [B, windows, window * window, C] -> [B, C, *size]"""
    patches = blocks.permute(0, 3, 2, 1).flatten(1, 2)
    return functional.fold(patches, size, window, stride=window)


def attend_windows(query: Tensor, keys: Tensor, values: Tensor, shared: tuple[Tensor, Tensor], bias: Tensor) -> Tensor:
    """One softmax over the shared vectors and the window.

    query [B, w, q, H, e], keys and values [B, w, k, H, e], shared [B, H, r, e] twice, bias [H or 1, w or 1, q, r + k]
    -> [B, w, q, H, e]
    """
    shared_keys, shared_values = shared
    by_shared = torch.einsum("bwqhe,bhre->bhwqr", query, shared_keys)
    by_window = torch.einsum("bwqhe,bwkhe->bhwqk", query, keys)
    probabilities = (torch.cat([by_shared, by_window], dim=-1) + bias).softmax(dim=-1)
    of_shared, of_window = probabilities.split([shared_keys.shape[2], keys.shape[2]], dim=-1)
    mixed = torch.einsum("bhwqr,bhre->bwqhe", of_shared, shared_values)
    return mixed + torch.einsum("bhwqk,bwkhe->bwqhe", of_window, values)
