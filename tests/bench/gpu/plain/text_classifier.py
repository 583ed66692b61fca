"""The text classifier of Long Range Arena in plain PyTorch: documents of one length, without padding, and a learned CLS
row that joins in the last layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.plain.parts import Weights, attend_windows, heads, joined, landmarks, linear, norm


class TextClassifier:
    """`config` as in config.json."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        if config["cls"] != "last_layer" or config["normalized_cls"] or config["value_convolution"]:
            raise ValueError("only the presets of Long Range Arena are here")
        self._config, self._weights = config, weights

    def logits(self, ids: Tensor) -> Tensor:
        """ids [B, n], n a multiple of the window -> [B, classes]"""
        embeddings = "model.embeddings."
        x = self._weights[embeddings + "word_embeddings.weight"][ids]
        x = x + self._weights[embeddings + "position_embeddings.weight"][: ids.shape[1]]
        last = self._config["layers"] - 1
        for layer in range(last):
            x = self._layer(f"model.transformer_{layer}.", x, None)
        cls = self._weights["model.cls_embed"].expand(len(ids), -1, -1)
        rows = self._layer(f"model.transformer_{last}.", x, cls)
        pooled = norm(self._weights, "model.norm", rows[:, 0])
        hidden = linear(self._weights, "seq_classifer.mlpblock.0", pooled).relu()
        return linear(self._weights, "seq_classifer.mlpblock.2", hidden)

    def _layer(self, prefix: str, x: Tensor, cls: Tensor | None) -> Tensor:
        y = self._attention(prefix + "mha.", norm(self._weights, prefix + "norm1", x), cls)
        y = y + (x if cls is None else torch.cat([cls, x], dim=1))
        inner = functional.gelu(linear(self._weights, prefix + "mlpblock.0", norm(self._weights, prefix + "norm2", y)))
        return y + linear(self._weights, prefix + "mlpblock.3", inner)

    def _attention(self, prefix: str, x: Tensor, cls: Tensor | None) -> Tensor:
        count, w = self._config["heads"], self._config["window_size"]
        scale = math.sqrt(x.shape[2] // count)

        def projected(name: str, rows: Tensor) -> Tensor:
            return linear(self._weights, prefix + name, rows)

        def normed(name: str, rows: Tensor) -> Tensor:
            return norm(self._weights, prefix + name, rows)

        query = heads(projected("W_q", x) / scale, count)
        logits = projected("dconv_fc", x)
        shared, windows = [], []
        for name in ("W_k", "W_v"):
            rows = normed("dual_ln_l", projected(name, x))
            common = joined(landmarks(logits, heads(rows, count)))
            if cls is not None:
                common = torch.cat([projected(name, cls), common], dim=1)
            shared.append(heads(normed("dual_ln_s", common), count))
            windows.append(_windows(rows, w).unflatten(-1, (count, -1)))
        blocks = query.transpose(1, 2).unflatten(1, (-1, w))  # [B, windows, w, H, e]
        places = _windows(torch.ones_like(x[:1, :, :1]), w)[0, :, :, 0]  # [windows, keys], 0 beyond the ends
        seen = torch.zeros_like(places).masked_fill(places == 0, -math.inf)
        bias = functional.pad(seen, (shared[0].shape[2], 0))[None, :, None, :]
        context = attend_windows(blocks, *windows, (shared[0], shared[1]), bias).flatten(1, 2).flatten(2)
        if cls is None:
            return projected("W_o", context)
        seen_keys = heads(torch.cat([projected("W_k", cls), context], dim=1), count)
        seen_values = heads(torch.cat([projected("W_v", cls), context], dim=1), count)
        cls_query = heads(projected("W_q", cls) / scale, count)
        cls_row = joined((cls_query @ seen_keys.transpose(2, 3)).softmax(dim=-1) @ seen_values)
        return projected("W_o", torch.cat([cls_row, context], dim=1))


def _windows(rows: Tensor, w: int) -> Tensor:
    """rows [B, n, D] -> [B, n / w, w + 2 * border, D]"""
    border = max(w // 2, 1)
    return functional.pad(rows, (0, 0, border, border)).unfold(1, w + 2 * border, w).transpose(2, 3)
