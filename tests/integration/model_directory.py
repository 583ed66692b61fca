"""Writes a model directory with a tiny language model of random weights: for tests of the server, not of the text."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reference import safetensors_file

LAYERS = 2
WIDTH = 32
HEADS = 2
FEED_FORWARD = 48
# 255 bytes (all but the newline, which is id 2), the four special ids, and one made-up word.
VOCABULARY = 260
FIRST_BYTE_ID = 4

CONFIG: dict[str, object] = {
    "architecture": "language_model",
    "layers": LAYERS,
    "model_width": WIDTH,
    "heads": HEADS,
    "feed_forward_width": FEED_FORWARD,
    "chunk_size": 4,
    "chunk_rank": 1,
    "window_length": 16,
    "memory_length": 32,
    "segment_length": 32,
    "vocabulary_size": VOCABULARY,
    "window_position_clamp": 0,
    "chunk_position_clamp": 0,
    "pre_layer_norm": True,
    "projection_bias": False,
    "activation": "gelu",
    "tokenizer": "fairseq_bytes",
}

Tensors = dict[str, NDArray[np.float32]]


def _layer(generator: np.random.Generator, name: str) -> Tensors:
    """One layer's tensors under their official names."""

    def noise(*shape: int) -> NDArray[np.float32]:
        return generator.normal(0, 0.2, shape).astype(np.float32)

    tensors: Tensors = {}
    for norm in ("norm1", "attn.dual_ln_dproj", "attn.dual_ln_win", "norm2"):
        tensors[f"{name}.{norm}.weight"] = 1 + noise(WIDTH)
        tensors[f"{name}.{norm}.bias"] = noise(WIDTH)
    for bias in ("r_r_bias", "r_w_bias"):
        tensors[f"{name}.attn.{bias}"] = noise(HEADS, WIDTH // HEADS)
    for square in ("r_net", "proj_query", "proj_key", "proj_val", "proj_out"):
        tensors[f"{name}.attn.{square}.weight"] = noise(WIDTH, WIDTH)
    for linear, out, into in (
        ("attn.dconv_1", HEADS, WIDTH),
        ("attn.r_net_chunk", WIDTH, WIDTH),
        ("ff.fc1", FEED_FORWARD, WIDTH),
        ("ff.fc2", WIDTH, FEED_FORWARD),
    ):
        tensors[f"{name}.{linear}.weight"] = noise(out, into)
        tensors[f"{name}.{linear}.bias"] = noise(out)
    return tensors


def write_zeros(repository: Path, name: str, layers: int) -> int:
    """Writes a model of so many layers of 269 MB whose weights are a hole in their file, and returns their bytes."""
    width, wide = 256, 1 << 17
    like = _layer(np.random.default_rng(1), "")
    scaled = {WIDTH: width, WIDTH // HEADS: width // HEADS, FEED_FORWARD: wide}
    shapes = {"in_emb.weight": [VOCABULARY, width], "out_emb.bias": [VOCABULARY], "pos_emb.inv_freq": [width // 2]}
    for layer in range(layers):
        for tensor, values in like.items():
            shapes[f"layers.{layer}{tensor}"] = [scaled.get(size, size) for size in values.shape]
    header: dict[str, object] = {}
    offset = 0
    for tensor, shape in shapes.items():
        end = offset + 4 * int(np.prod(shape))
        header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    directory = repository / name / "1"
    directory.mkdir(parents=True)
    encoded = json.dumps(header).encode()
    with (directory / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        file.truncate(8 + len(encoded) + offset)
    config = CONFIG | {"layers": layers, "model_width": width, "feed_forward_width": wide, "tokenizer": "none"}
    (directory / "config.json").write_text(json.dumps(config))
    return offset


def write(repository: Path, name: str = "tiny", version: int = 1, seed: int = 1) -> Path:
    """Writes <repository>/<name>/<version> and returns it."""
    generator = np.random.default_rng(seed)
    tensors: Tensors = {
        "in_emb.weight": generator.normal(0, 0.5, (VOCABULARY, WIDTH)).astype(np.float32),
        "out_emb.bias": generator.normal(0, 0.5, VOCABULARY).astype(np.float32),
        "pos_emb.inv_freq": (10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)).astype(np.float32),
    }
    for layer in range(LAYERS):
        tensors |= _layer(generator, f"layers.{layer}")
    directory = repository / name / str(version)
    directory.mkdir(parents=True)
    safetensors_file.write(directory / "model.safetensors", tensors)
    (directory / "config.json").write_text(json.dumps(CONFIG, indent=2))
    symbols = [byte for byte in range(256) if byte != ord("\n")]
    (directory / "vocabulary.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols))
    return directory
