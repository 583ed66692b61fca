"""The text classifier of Long Range Arena in plain PyTorch: documents of one length, without padding, and a learned CLS
row that joins in the last layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.plain.parts import Weights, attend_near, heads, joined, landmarks, linear, norm


class TextClassifier:
    """`config` as in config.json."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        if config["cls"] != "last_layer" or config["normalized_cls"] or config["value_convolution"]:
            raise ValueError("only the presets of Long Range Arena are here")
        self._config, self._weights = config, weights

    def logits(self, ids: Tensor) -> Tensor:
        """ids [B, documents, n], n a multiple of the window -> [B, classes]"""
        features = self._pooled(ids.flatten(0, 1)).unflatten(0, ids.shape[:2])
        if self._config["documents"] == 2:
            first, second = features.unbind(1)
            features = torch.cat([first, second, first * second, first - second], dim=-1)
        else:
            features = features.squeeze(1)
        hidden = linear(self._weights, "seq_classifer.mlpblock.0", features).relu()
        return linear(self._weights, "seq_classifer.mlpblock.2", hidden)

    def _pooled(self, ids: Tensor) -> Tensor:
        """ids [B, n] -> the CLS rows [B, D]"""
        embeddings = "model.embeddings."
        x = self._weights[embeddings + "word_embeddings.weight"][ids]
        x = x + self._weights[embeddings + "position_embeddings.weight"][: ids.shape[1]]
        last = self._config["layers"] - 1
        for layer in range(last):
            x = self._layer(f"model.transformer_{layer}.", x, None)
        cls = self._weights["model.cls_embed"].expand(len(ids), -1, -1)
        rows = self._layer(f"model.transformer_{last}.", x, cls)
        return norm(self._weights, "model.norm", rows[:, 0])

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
        shared, tokens = [], []
        for name in ("W_k", "W_v"):
            rows = normed("dual_ln_l", projected(name, x))
            of_tokens = heads(rows, count)
            common = joined(landmarks(logits, of_tokens))
            if cls is not None:
                common = torch.cat([projected(name, cls), common], dim=1)
            shared.append(heads(normed("dual_ln_s", common), count))
            tokens.append(of_tokens)
        context = attend_near(query, tokens, shared, (x.shape[1],), w)
        if cls is None:
            return projected("W_o", context)
        seen_keys = heads(torch.cat([projected("W_k", cls), context], dim=1), count)
        seen_values = heads(torch.cat([projected("W_v", cls), context], dim=1), count)
        cls_query = heads(projected("W_q", cls) / scale, count)
        cls_row = joined((cls_query @ seen_keys.transpose(2, 3)).softmax(dim=-1) @ seen_values)
        return projected("W_o", torch.cat([cls_row, context], dim=1))
