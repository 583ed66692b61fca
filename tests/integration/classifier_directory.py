"""Writes model directories of tiny classifiers with random weights, and says what their logits must be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reference import safetensors_file
from reference.text_classifier import TextClassifier
from reference.vil import Vil

WIDTH = 16
HEADS = 2
FEED_FORWARD = 24
MAX_TOKENS = 64
VOCABULARY = 257
IMAGE_SIDE = 16
PATCH = 2
IMAGE_LABELS = ["cat", "dog", "owl", "fox", "bee", "elk", "ant"]
TEXT_LABELS = ["bad", "good", "so so"]
STAGES = "_".join(f"l{stage},h{HEADS},d{WIDTH},n1,s0,g1,p{PATCH},f7,a1,r0" for stage in (1, 2, 3))

Shapes = dict[str, tuple[int, ...]]
Tensors = dict[str, NDArray[np.float32]]


def _linear(name: str, out: int, into: int) -> Shapes:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str) -> Shapes:
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


def _random(shapes: Shapes, seed: int) -> Tensors:
    generator = np.random.default_rng(seed)
    return {name: generator.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def _write(directory: Path, config: dict[str, object], tensors: Tensors, labels: Sequence[str]) -> None:
    directory.mkdir(parents=True)
    safetensors_file.write(directory / "model.safetensors", tensors)
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    (directory / "labels.txt").write_text("".join(f"{label}\n" for label in labels))


def _text_shapes(documents: int) -> Shapes:
    layer = "model.transformer_0"
    shapes: Shapes = {
        "model.embeddings.word_embeddings.weight": (VOCABULARY, WIDTH),
        "model.embeddings.position_embeddings.weight": (MAX_TOKENS, WIDTH),
        "model.cls_embed": (1, 1, WIDTH),
    }
    for norm in ("norm1", "norm2", "mha.dual_ln_s", "mha.dual_ln_l"):
        shapes |= _norm(f"{layer}.{norm}")
    for projection in ("W_q", "W_k", "W_v", "W_o"):
        shapes |= _linear(f"{layer}.mha.{projection}", WIDTH, WIDTH)
    shapes |= _linear(f"{layer}.mha.dconv_fc", HEADS * 4, WIDTH)
    shapes |= _linear(f"{layer}.mlpblock.0", FEED_FORWARD, WIDTH) | _linear(f"{layer}.mlpblock.3", WIDTH, FEED_FORWARD)
    shapes |= _norm("model.norm")
    shapes |= _linear("seq_classifer.mlpblock.0", FEED_FORWARD, 4 * WIDTH if documents == 2 else WIDTH)
    return shapes | _linear("seq_classifer.mlpblock.2", len(TEXT_LABELS), FEED_FORWARD)


def write_text(repository: Path, name: str, documents: int) -> TextClassifier:
    """Writes <repository>/<name>/1 and returns the model that it holds; it takes ids, which are bytes + 1."""
    config: dict[str, object] = {
        "architecture": "text_classifier",
        "tokenizer": "bytes_plus_one",
        "layers": 1,
        "model_width": WIDTH,
        "heads": HEADS,
        "feed_forward_width": FEED_FORWARD,
        "window_size": 8,
        "projection_rank": 4,
        "vocabulary_size": VOCABULARY,
        "max_sequence_length": MAX_TOKENS,
        "cls": "all_layers",
        "normalized_cls": False,
        "value_convolution": 0,
        "tied_layers": False,
        "documents": documents,
        "classes": len(TEXT_LABELS),
    }
    tensors = _random(_text_shapes(documents), seed=documents)
    _write(repository / name / "1", config, tensors, TEXT_LABELS)
    official = {
        "num_head": HEADS,
        "num_landmarks": 4,
        "window_size": 8,
        "conv_kernel_size": -1,
        "num_layers": 1,
        "tied_weights": False,
        "debug": False,
        "pooling_mode": "MEAN",
        "vocab_size": VOCABULARY,
        "cls_token": True,
        "cls_last_layer": False,
    }
    return TextClassifier(official, tensors)


def _stage_shapes(stage: str, channels: int, side: int) -> Shapes:
    shapes: Shapes = {
        f"{stage}.0.proj.weight": (WIDTH, channels, PATCH, PATCH),
        f"{stage}.0.proj.bias": (WIDTH,),
        f"{stage}.0.cls_token": (1, 1, WIDTH),
        f"{stage}.0.cls_pos_embed": (1, 1, WIDTH),
        f"{stage}.0.x_pos_embed": (1, side, WIDTH // 2),
        f"{stage}.0.y_pos_embed": (1, side, WIDTH // 2),
    }
    for norm in ("0.norm_embed", "1.norm", "2.norm"):
        shapes |= _norm(f"{stage}.{norm}")
    shapes |= _linear(f"{stage}.1.attn.qkv", 3 * WIDTH, WIDTH) | _linear(f"{stage}.1.attn.proj", WIDTH, WIDTH)
    return shapes | _linear(f"{stage}.2.mlp.fc1", 4 * WIDTH, WIDTH) | _linear(f"{stage}.2.mlp.fc2", WIDTH, 4 * WIDTH)


def write_images(repository: Path, name: str) -> Vil:
    """Writes <repository>/<name>/1 and returns the model that it holds; it takes pixels as `normalised` gives them."""
    shapes = _norm("norm")
    for stage in (1, 2, 3):
        shapes |= _stage_shapes(f"layer{stage}", 3 if stage == 1 else WIDTH, IMAGE_SIDE // PATCH**stage)
    shapes |= _linear("head", len(IMAGE_LABELS), WIDTH)
    config: dict[str, object] = {
        "architecture": "vil",
        "stages": STAGES,
        "image_size": IMAGE_SIDE,
        "channels": 3,
        "classes": len(IMAGE_LABELS),
        "embedding_norm": True,
        "average_pooling": False,
        "preprocessing": {
            "resize_shorter_side": IMAGE_SIDE,
            "crop_height": IMAGE_SIDE,
            "crop_width": IMAGE_SIDE,
            "mean": [0.5, 0.5, 0.5],
            "standard_deviation": [0.25, 0.25, 0.25],
        },
    }
    tensors = _random(shapes, seed=3)
    _write(repository / name / "1", config, tensors, IMAGE_LABELS)
    return Vil({"arch": STAGES, "avg_pool": False}, tensors)


def normalised(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Pixels [height, width, 3] as the model of `write_images` sees them, [3, height, width]."""
    return (pixels.transpose(2, 0, 1) / 255.0 - 0.5) / 0.25
