"""The autoregressive Transformer-LS in plain PyTorch, with a cache: a token at a time, or a segment at a time.

The model has norms in front of its blocks and no biases on its projections. Streams of a batch stand at one position.
Shapes: B streams, T new tokens, H heads, e head width, W window, C chunk size (R is 1), M memory, L segment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.plain.parts import Weights, heads, joined, linear, norm


@dataclass
class LayerCache:
    """Rings: row t of the window lies at t mod W, chunk c at c mod (M + L) / C."""

    window: list[Tensor]  # keys and values [B, H, W, e]
    compressed: list[Tensor]  # the same of chunks [B, H, n, e]: of the memory, and of the segment in its own form
    pending: list[Tensor]  # the segment's chunks as the memory will see them [B, H, L / C, e]
    open_rows: Tensor  # layer inputs of the chunk that is not full yet [B, C, d]


@dataclass
class Streams:
    layers: list[LayerCache]
    position: int = 0
    tables: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # by distance and by age [H, W or n, e]


class LanguageModel:
    """`config` as in config.json."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        if not config["pre_layer_norm"] or config["projection_bias"] or config["chunk_rank"] != 1:
            raise ValueError("only models with norms in front, without biases, and of rank 1 are here")
        self._weights, self._layers, self._heads = weights, config["layers"], config["heads"]
        self._chunk, self._window = config["chunk_size"], config["window_length"]
        self._segment, self._memory = config["segment_length"], config["memory_length"]
        self._width = config["model_width"]
        self._activation = functional.gelu if config["activation"] == "gelu" else functional.relu

    def begin(self, batch: int) -> Streams:
        """Streams behind a memory of zeros, of which the norm in front leaves its bias."""
        embedding = self._weights["in_emb.weight"]
        ring = (self._memory + self._segment) // self._chunk
        streams = Streams([])
        for layer in range(self._layers):
            prefix = f"layers.{layer}.attn."
            zero = self._weights[f"layers.{layer}.norm1.bias"].expand(batch, 1, -1)

            def rows(name: str, count: int, prefix: str = prefix, zero: Tensor = zero) -> list[Tensor]:
                projected = [linear(self._weights, prefix + part, zero) for part in ("proj_key", "proj_val")]
                normed = [norm(self._weights, prefix + name, part).expand(-1, count, -1) for part in projected]
                return [heads(part, self._heads).contiguous() for part in normed]

            streams.layers.append(
                LayerCache(
                    rows("dual_ln_win", self._window),
                    rows("dual_ln_dproj", ring),
                    rows("dual_ln_dproj", self._segment // self._chunk),
                    embedding.new_zeros(batch, self._chunk, self._width),
                )
            )
            distances, ages = self._sinusoids(self._window), self._sinusoids(ring)
            by_distance = linear(self._weights, prefix + "r_net", distances)
            by_age = linear(self._weights, prefix + "r_net_chunk", ages)
            streams.tables.append(
                tuple(table.unflatten(1, (self._heads, -1)).transpose(0, 1) for table in (by_distance, by_age))
            )
        return streams

    def read(self, streams: Streams, tokens: Tensor) -> Tensor:
        """tokens [B, T] -> logits of the last one [B, V]. T is 1, or a chunk's multiple within a segment, from a
        chunk's beginning on."""
        count = tokens.shape[1]
        hidden = self._weights["in_emb.weight"][tokens] * math.sqrt(self._width)
        position = torch.arange(streams.position, streams.position + count, device=tokens.device)
        ends_chunk = (streams.position + count) % self._chunk == 0
        for layer in range(self._layers):
            prefix, cache, tables = f"layers.{layer}.", streams.layers[layer], streams.tables[layer]
            hidden = self.layer(prefix, hidden, cache, tables, position, ends_chunk)
        streams.position += count
        if streams.position % self._segment == 0:
            for cache in streams.layers:
                self._end_segment(cache, streams.position)
        return functional.linear(hidden[:, -1], self._weights["in_emb.weight"], self._weights["out_emb.bias"])

    def layer(
        self,
        prefix: str,
        hidden: Tensor,
        cache: LayerCache,
        tables: tuple[Tensor, Tensor],
        position: Tensor,
        ends_chunk: bool,
    ) -> Tensor:
        """hidden [B, T, d], of tokens at `position` [T], the last of which ends a chunk or not."""
        x = norm(self._weights, prefix + "norm1", hidden)
        y = x + self._attention(prefix + "attn.", x, cache, tables, position, ends_chunk)
        z = norm(self._weights, prefix + "norm2", y)
        inner = self._activation(linear(self._weights, prefix + "ff.fc1", z))
        return z + linear(self._weights, prefix + "ff.fc2", inner)

    def _attention(
        self,
        prefix: str,
        x: Tensor,
        cache: LayerCache,
        tables: tuple[Tensor, Tensor],
        position: Tensor,
        ends_chunk: bool,
    ) -> Tensor:
        scale = math.sqrt(self._width // self._heads)
        query = heads(linear(self._weights, prefix + "proj_query", x) / scale, self._heads)
        new = [linear(self._weights, prefix + name, x) for name in ("proj_key", "proj_val")]
        rows = [heads(norm(self._weights, prefix + "dual_ln_win", part), self._heads) for part in new]
        if x.shape[1] == 1:
            for ring, row in zip(cache.window, rows, strict=True):
                ring.index_copy_(2, position % self._window, row)
            seen, places = cache.window, position - (position - self._slots(position)) % self._window
        else:
            old = position[0] - self._window + self._slots(position)
            kept = [ring[:, :, old % self._window] for ring in cache.window]
            seen = [torch.cat(pair, dim=2) for pair in zip(kept, rows, strict=True)]
            places = torch.cat([old, position])
        if x.shape[1] == 1:
            cache.open_rows.index_copy_(1, position % self._chunk, x)
            if ends_chunk:
                x_of_chunk = cache.open_rows
                of_chunk = [linear(self._weights, prefix + name, x_of_chunk) for name in ("proj_key", "proj_val")]
                self._finish_chunks(prefix, x_of_chunk, of_chunk, cache, position)
        else:
            self._finish_chunks(prefix, x, new, cache, position)

        distance = position[:, None] - places[None, :]  # [T, keys]
        visible = (distance >= 0) & (distance < self._window)
        content = (query + self._weights[prefix + "r_w_bias"].view(1, self._heads, 1, -1)) @ seen[0].transpose(2, 3)
        located = (query + self._weights[prefix + "r_r_bias"].view(1, self._heads, 1, -1)) @ tables[0].transpose(1, 2)
        by_window = content + self._placed(located, distance.clamp(0, self._window - 1))

        count = cache.compressed[0].shape[2]
        chunk = position // self._chunk
        age = (chunk[:, None] - 1 - torch.arange(count, device=x.device)) % count  # [T, n]
        first = (position // self._segment * self._segment - self._memory) // self._chunk
        visible_chunks = age <= (chunk - 1 - first)[:, None]
        by_chunk = query @ cache.compressed[0].transpose(2, 3) + self._placed(query @ tables[1].transpose(1, 2), age)
        shown = [by_window.masked_fill(~visible, -math.inf), by_chunk.masked_fill(~visible_chunks, -math.inf)]
        of_window, of_chunks = torch.cat(shown, dim=-1).softmax(dim=-1).split([seen[0].shape[2], count], dim=-1)
        mixed = of_window @ seen[1] + of_chunks @ cache.compressed[1]
        if x.shape[1] > 1:
            last = position[-self._window :]
            for ring, row in zip(cache.window, rows, strict=True):
                ring[:, :, last % self._window] = row[:, :, -self._window :]
        return linear(self._weights, prefix + "proj_out", joined(mixed))

    def _slots(self, position: Tensor) -> Tensor:
        return torch.arange(self._window, device=position.device)

    @staticmethod
    def _placed(by_place: Tensor, index: Tensor) -> Tensor:
        """by_place [B, H, T, places], index [T, keys] -> [B, H, T, keys]"""
        return by_place.gather(3, index.expand(*by_place.shape[:2], -1, -1))

    def _finish_chunks(self, prefix: str, x: Tensor, new: list[Tensor], cache: LayerCache, position: Tensor) -> None:
        """Compresses whole chunks, x [B, chunks * C, d] with its keys and values, in both forms."""
        chunks = x.shape[1] // self._chunk
        logits = linear(self._weights, prefix + "dconv_1", x).unflatten(1, (chunks, self._chunk)).softmax(dim=2)

        def mixed(rows: Tensor) -> Tensor:
            """[B, chunks * C, d] -> [B, chunks, d]: each head's weights mix its channels."""
            split = rows.unflatten(1, (chunks, self._chunk)).unflatten(3, (self._heads, -1))
            return torch.einsum("bnch,bnche->bnhe", logits, split).flatten(2)

        def stored(vectors: Tensor) -> Tensor:
            return heads(norm(self._weights, prefix + "dual_ln_dproj", vectors), self._heads)

        last = position[-1] // self._chunk
        numbers = torch.arange(-chunks + 1, 1, device=x.device) + last
        for which, name in enumerate(("proj_key", "proj_val")):
            ring, pending = cache.compressed[which], cache.pending[which]
            ring[:, :, numbers % ring.shape[2]] = stored(mixed(new[which]))
            pending[:, :, numbers % pending.shape[2]] = stored(linear(self._weights, prefix + name, mixed(x)))

    def _end_segment(self, cache: LayerCache, end: int) -> None:
        numbers = torch.arange((end - self._segment) // self._chunk, end // self._chunk, device=cache.open_rows.device)
        for ring, pending in zip(cache.compressed, cache.pending, strict=True):
            ring[:, :, numbers % ring.shape[2]] = pending[:, :, numbers % pending.shape[2]]

    def _sinusoids(self, count: int) -> Tensor:
        frequencies = self._weights["pos_emb.inv_freq"]
        angles = torch.arange(count, device=frequencies.device)[:, None] * frequencies.float()
        return torch.cat([angles.sin(), angles.cos()], dim=1).to(frequencies.dtype)
