"""The long-document encoder (docs/models/long_document_encoder.md) in plain PyTorch: documents of one length, without
padding. With rank 0, no dual norm and a window that covers the document it is RoBERTa, by PyTorch's fused attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.plain.parts import Weights, attend_near, heads, joined, landmarks, linear, norm


class LongDocumentEncoder:
    """`config` as in config.json."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        if config["layer_norm"] != "after" or config["head"] != "tanh" or config["value_convolution"]:
            raise ValueError("only the form of RoBERTa is here")
        self._config, self._weights = config, weights

    def logits(self, ids: Tensor) -> Tensor:
        """ids [B, 1, n] -> [B, classes]"""
        embeddings = "model.embeddings."
        positions = self._weights[embeddings + "position_embeddings.weight"][: ids.shape[2]]
        rows = self._weights[embeddings + "word_embeddings.weight"][ids.squeeze(1)] + positions
        x = self._norm(embeddings + "norm", rows)
        for layer in range(self._config["layers"]):
            x = self._layer(f"model.transformer_{layer}.", x)
        hidden = linear(self._weights, "seq_classifer.mlpblock.0", x[:, 0]).tanh()
        return linear(self._weights, "seq_classifer.mlpblock.2", hidden)

    def _norm(self, name: str, x: Tensor) -> Tensor:
        return norm(self._weights, name, x, self._config["layer_norm_epsilon"])

    def _layer(self, prefix: str, x: Tensor) -> Tensor:
        attended = linear(self._weights, prefix + "mha.W_o", self._attention(prefix + "mha.", x))
        y = self._norm(prefix + "norm1", x + attended)
        inner = functional.gelu(linear(self._weights, prefix + "mlpblock.0", y))
        return self._norm(prefix + "norm2", y + linear(self._weights, prefix + "mlpblock.3", inner))

    def _attention(self, prefix: str, x: Tensor) -> Tensor:
        config, count = self._config, self._config["heads"]
        query, key, value = (linear(self._weights, prefix + name, x) for name in ("W_q", "W_k", "W_v"))
        if not config["dual_norm"] and config["projection_rank"] == 0 and config["window_size"] >= x.shape[1] - 1:
            return joined(
                functional.scaled_dot_product_attention(*(heads(part, count) for part in (query, key, value)))
            )
        query = heads(query / math.sqrt(x.shape[2] // count), count)
        own = [heads(self._norm(prefix + "dual_ln_s", rows[:, :1]), count) for rows in (key, value)]
        seen = [heads(self._norm(prefix + "dual_ln_l", rows[:, 1:]), count) for rows in (key, value)]
        tokens = self._tokens(prefix, x[:, 1:], query[:, :, 1:], own, seen)
        all_keys, all_values = (torch.cat(pair, dim=2) for pair in zip(own, seen, strict=True))
        first = (query[:, :, :1] @ all_keys.transpose(2, 3)).softmax(dim=-1) @ all_values
        return torch.cat([joined(first), tokens], dim=1)

    def _tokens(self, prefix: str, x: Tensor, query: Tensor, own: list[Tensor], seen: list[Tensor]) -> Tensor:
        """The rows of all tokens but the first, which sees more."""
        length, window = x.shape[1], self._config["window_size"]
        shared = own
        if self._config["projection_rank"] > 0:
            logits = linear(self._weights, prefix + "dconv_fc", x)
            mixed = (self._norm(prefix + "dual_ln_s", joined(landmarks(logits, rows))) for rows in seen)
            count = self._config["heads"]
            shared = [torch.cat([of_cls, heads(rows, count)], dim=2) for of_cls, rows in zip(own, mixed, strict=True)]
        whole = functional.pad(query, (0, 0, 0, -length % window))
        return attend_near(whole, seen, shared, (length,), window)[:, :length]
