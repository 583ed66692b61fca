"""The autoregressive Transformer-LS in float64: one segment at a time, as the official forward pass computes it.

This is what the C++ model is compared with, so it is written to be read, not to be fast: it remembers the
input of every layer over the last M positions, recomputes everything of the memory for each segment, and looks at the
whole segment at once. It has no cache, no incremental path and no state but that memory.

Shapes are in comments: B batch, T positions of the segment, M memory, N = M + T, d model width, H heads, e = d/H,
C chunk size, R rank, W window, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]

PADDING_TOKEN = 0


@dataclass(frozen=True)
class Hyperparameters:
    """Fields of the official model config, with V the number of embedding rows."""

    n_layer: int
    d_model: int
    n_head: int
    d_inner: int
    chunk_size: int
    chunk_rank: int
    window_len: int
    mem_len: int
    pre_ln: bool
    use_gelu: bool
    use_bias: bool
    clamp_len: int
    cpos_clamp_len: int
    vocab_size: int

    @classmethod
    def from_json(cls, config: Mapping[str, object]) -> Hyperparameters:
        """Picks the fields out of a case's config.json, which holds others too."""
        return cls(**{field.name: config[field.name] for field in fields(cls)})

    def padded_length(self, length: int) -> int:
        """What the official code pads a segment to when it is no multiple of the chunk."""
        if length % self.chunk_size == 0:
            return length
        multiple = math.lcm(self.chunk_size, self.window_len)
        return -(-length // multiple) * multiple


def layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + 1e-5) + bias


def softmax(x: Array, axis: int = -1) -> Array:
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def gelu(x: Array) -> Array:
    error_function = np.frompyfunc(math.erf, 1, 1)(x / math.sqrt(2.0)).astype(np.float64)
    return 0.5 * x * (1.0 + error_function)


class LanguageModel:
    """A batch of independent streams, fed segment by segment.

    `weights` has the official names without the prefix `decoder.model.`; the values are upcast to float64 as stored.
    """

    def __init__(self, hyperparameters: Hyperparameters, weights: Mapping[str, NDArray], batch: int) -> None:
        self._h = hyperparameters
        self._weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
        h = hyperparameters
        # What each layer received as input at the last M positions; a stream starts with M zero rows.
        self._memory = [np.zeros((batch, h.mem_len, h.d_model)) for _ in range(h.n_layer)]

    def segment(self, tokens: Tokens) -> Array:
        """Reads one segment [B, T] and returns log-probabilities of the tokens after each position, [B, T, V].

        A length that is no multiple of C is padded; the padding stays in the memory.
        """
        length = tokens.shape[1]
        padding = self._h.padded_length(length) - length
        padded = np.pad(tokens, ((0, 0), (0, padding)), constant_values=PADDING_TOKEN)

        embedding = self._weights["in_emb.weight"]
        hidden = embedding[padded] * math.sqrt(self._h.d_model)
        for layer in range(self._h.n_layer):
            memory = self._memory[layer]
            self._memory[layer] = np.concatenate([memory, hidden], axis=1)[:, -self._h.mem_len :]
            hidden = self._layer(f"layers.{layer}.", hidden, memory)
        return log_softmax(hidden[:, :length] @ embedding.T + self._weights["out_emb.bias"])

    def _layer(self, prefix: str, hidden: Array, memory: Array) -> Array:
        if self._h.pre_ln:  # the residual branches carry the normalised values
            x = self._norm(prefix + "norm1", hidden)
            y = x + self._attention(prefix + "attn.", x, self._norm(prefix + "norm1", memory))
            z = self._norm(prefix + "norm2", y)
            return z + self._feed_forward(prefix + "ff.", z)
        z = self._norm(prefix + "norm1", hidden + self._attention(prefix + "attn.", hidden, memory))
        return self._norm(prefix + "norm2", z + self._feed_forward(prefix + "ff.", z))

    def _feed_forward(self, prefix: str, z: Array) -> Array:
        inner = self._linear(prefix + "fc1", z)
        activated = gelu(inner) if self._h.use_gelu else np.maximum(inner, 0.0)
        return self._linear(prefix + "fc2", activated)

    def _attention(self, prefix: str, x: Array, memory: Array) -> Array:
        """x [B, T, d], memory [B, M, d] -> [B, T, d]. One softmax runs over the window and the compressed vectors."""
        query = self._heads(self._linear(prefix + "proj_query", x) / math.sqrt(self._h.d_model // self._h.n_head))
        rows = np.concatenate([memory, x], axis=1)  # [B, N, d]; row i is stream position s - M + i
        keys = self._linear(prefix + "proj_key", rows)
        values = self._linear(prefix + "proj_val", rows)

        window_scores = self._window_scores(prefix, query, self._norm(prefix + "dual_ln_win", keys))
        short_keys, short_values = self._compress(prefix, rows, keys, values)
        compressed_scores = self._compressed_scores(prefix, query, short_keys)

        probabilities = softmax(np.concatenate([window_scores, compressed_scores], axis=-1))
        window_values = self._heads(self._norm(prefix + "dual_ln_win", values))  # [B, H, N, e]
        window_rows = window_scores.shape[-1]
        mixed = probabilities[..., :window_rows] @ window_values + probabilities[..., window_rows:] @ self._heads(
            short_values
        )
        joined = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
        return self._linear(prefix + "proj_out", joined)

    def _window_scores(self, prefix: str, query: Array, keys: Array) -> Array:
        """query [B, H, T, e], keys [B, N, d] -> [B, H, T, N], minus infinity outside of positions p-W+1..p."""
        content_bias = self._weights[prefix + "r_w_bias"].reshape(self._h.n_head, 1, -1)
        distance_bias = self._weights[prefix + "r_r_bias"].reshape(self._h.n_head, 1, -1)
        content = (query + content_bias) @ self._heads(keys).swapaxes(-1, -2)

        table = self._sinusoids(np.arange(self._h.window_len), self._h.clamp_len)
        table = self._heads(self._linear(prefix + "r_net", table)[None])[0]  # [H, W, e]
        by_distance = (query + distance_bias) @ table.swapaxes(-1, -2)  # [B, H, T, W]

        query_rows = self._h.mem_len + np.arange(query.shape[2])
        distance = query_rows[:, None] - np.arange(keys.shape[1])[None, :]  # [T, N]
        visible = (distance >= 0) & (distance < self._h.window_len)
        query_index = np.arange(query.shape[2])[:, None]
        positional = by_distance[:, :, query_index, np.where(visible, distance, 0)]
        return np.where(visible, content + positional, -np.inf)

    def _compress(self, prefix: str, rows: Array, keys: Array, values: Array) -> tuple[Array, Array]:
        """Dynamic projection of every chunk to R vectors: rows, keys, values [B, N, d] -> two of [B, N/C*R, d].

        Vector c*R + t is rank t of chunk c, chunk 0 being the first of the memory.
        """
        memory_chunks = self._h.mem_len // self._h.chunk_size
        logits = self._linear(prefix + "dconv_1", rows)  # [B, N, H*R], column head*R + rank
        weights = softmax(self._chunks(logits), axis=2)  # [B, N/C, C, H*R]
        weights = weights.reshape(*weights.shape[:3], self._h.n_head, self._h.chunk_rank)
        from_memory, from_segment = weights[:, :memory_chunks], weights[:, memory_chunks:]

        # Chunks in the memory: mix, then project.
        mixed = self._mix(from_memory, self._chunks(rows)[:, :memory_chunks])
        memory_keys = self._linear(prefix + "proj_key", mixed)
        memory_values = self._linear(prefix + "proj_val", mixed)
        # Chunks of the current segment: project, then mix.
        segment_keys = self._mix(from_segment, self._chunks(keys)[:, memory_chunks:])
        segment_values = self._mix(from_segment, self._chunks(values)[:, memory_chunks:])

        norm = prefix + "dual_ln_dproj"
        return (
            self._norm(norm, np.concatenate([memory_keys, segment_keys], axis=1)),
            self._norm(norm, np.concatenate([memory_values, segment_values], axis=1)),
        )

    def _mix(self, weights: Array, chunks: Array) -> Array:
        """weights [B, c, C, H, R], chunks [B, c, C, d] -> [B, c*R, d]: head k's weights mix head k's channels."""
        batch, count = chunks.shape[:2]
        by_head = chunks.reshape(batch, count, self._h.chunk_size, self._h.n_head, -1)
        mixed = np.einsum("bcihr,bcihe->bcrhe", weights, by_head)
        return mixed.reshape(batch, count * self._h.chunk_rank, self._h.d_model)

    def _compressed_scores(self, prefix: str, query: Array, keys: Array) -> Array:
        """query [B, H, T, e], keys [B, n, d] -> [B, H, T, n], minus infinity from the query's own chunk on."""
        rank = self._h.chunk_rank
        content = query @ self._heads(keys).swapaxes(-1, -2)

        # How many vectors lie between the vector and the query's chunk: 0 for the newest visible one.
        query_chunk = (self._h.mem_len + np.arange(query.shape[2])) // self._h.chunk_size
        age = query_chunk[:, None] * rank - 1 - np.arange(keys.shape[1])[None, :]  # [T, n]
        visible = age >= 0

        table = self._sinusoids(np.arange(keys.shape[1]), self._h.cpos_clamp_len)
        table = self._heads(self._linear(prefix + "r_net_chunk", table)[None])[0]  # [H, n, e]
        by_age = query @ table.swapaxes(-1, -2)
        query_index = np.arange(query.shape[2])[:, None]
        positional = by_age[:, :, query_index, np.where(visible, age, 0)]
        return np.where(visible, content + positional, -np.inf)

    def _sinusoids(self, positions: NDArray[np.int64], clamp: int) -> Array:
        """S(p) as rows: all sines, then all cosines; positions stop growing at `clamp` where it is above 0."""
        if clamp > 0:
            positions = np.minimum(positions, clamp)
        angles = positions[:, None] * self._weights["pos_emb.inv_freq"][None, :]
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    def _linear(self, name: str, x: Array) -> Array:
        bias = self._weights.get(name + ".bias")
        product = x @ self._weights[name + ".weight"].T
        return product if bias is None else product + bias

    def _norm(self, name: str, x: Array) -> Array:
        return layer_norm(x, self._weights[name + ".weight"], self._weights[name + ".bias"])

    def _heads(self, x: Array) -> Array:
        """[B, n, d] -> [B, H, n, e]"""
        return x.reshape(*x.shape[:2], self._h.n_head, -1).transpose(0, 2, 1, 3)

    def _chunks(self, x: Array) -> Array:
        """[B, n, d] -> [B, n/C, C, d]"""
        return x.reshape(x.shape[0], -1, self._h.chunk_size, x.shape[-1])
