"""Writes model directories of tiny classifiers with random weights, and says what their logits must be."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from longshort_convert.__main__ import main as convert
from numpy.typing import NDArray
from reference import safetensors_file
from reference.cvt import Cvt
from reference.text_classifier import TextClassifier
from reference.vil import Vil

ROBERTA = Path(__file__).parents[1] / "golden/text_classifier/roberta_texts"
ROBERTA_LABELS = ["bad", "good", "so so"]
WIDTH = 16
HEADS = 2
FEED_FORWARD = 24
MAX_TOKENS = 64
VOCABULARY = 257
IMAGE_SIDE = 16
PATCH = 2
PIXEL_ROWS, PIXEL_COLUMNS = 6, 10
IMAGE_LABELS = ["cat", "dog", "owl", "fox", "bee", "elk", "ant"]
TEXT_LABELS = ["bad", "good", "so so"]
CVT = {
    "stage_widths": [8, 16],
    "stage_heads": [1, 2],
    "stage_depths": [1, 2],
    "projection_ranks": [3, 4],
    "window_sizes": [4, 2],
    "embedding_kernels": [7, 3],
    "embedding_strides": [3, 2],
    "embedding_paddings": [2, 1],
}
EPSILON = 1e-5
STAGES = "_".join(f"l{stage},h{HEADS},d{WIDTH},n1,s0,g1,p{PATCH},f7,a1,r0" for stage in (1, 2, 3))

Shapes = dict[str, tuple[int, ...]]
Tensors = dict[str, NDArray[np.float32]]


def _linear(name: str, out: int, into: int) -> Shapes:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str, width: int = WIDTH) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _random(shapes: Shapes, seed: int) -> Tensors:
    generator = np.random.default_rng(seed)
    tensors = {name: generator.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: 0.5 + np.abs(value) if name.endswith("running_var") else value for name, value in tensors.items()}


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
    return _write_text(repository, name, documents, {"tokenizer": "bytes_plus_one"})


def write_encoder(repository: Path, name: str, *options: str, classes: int = len(ROBERTA_LABELS)) -> None:
    """Writes <repository>/<name>/1, a RoBERTa with a tokenizer, converted with these options. It has the first
    `classes` of its classes; with none, no head. ROBERTA / "texts.json" has texts, and the logits of all classes by
    Hugging Face's model."""
    tensors = safetensors_file.read(ROBERTA / "model.safetensors")
    config = json.loads((ROBERTA / "hugging_face.json").read_text())
    config["id2label"] = {str(index): label for index, label in enumerate(ROBERTA_LABELS[:classes])}
    for part in ("weight", "bias"):
        tensors[f"classifier.out_proj.{part}"] = tensors[f"classifier.out_proj.{part}"][:classes]
    if classes == 0:
        tensors = {tensor: values for tensor, values in tensors.items() if not tensor.startswith("classifier.")}
        config["architectures"] = ["RobertaForMaskedLM"]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROBERTA / "tokenizer.json", folder)
        safetensors_file.write(Path(folder, "model.safetensors"), tensors)
        Path(folder, "config.json").write_text(json.dumps(config))
        assert convert([folder, *options, "--out", str(repository / name / "1")]) == 0


def write_pixel_sequences(repository: Path, name: str) -> TextClassifier:
    """Writes <repository>/<name>/1 and returns the model that it holds; it takes ids, as `grey_ids` gives them."""
    size = {"height": PIXEL_ROWS, "width": PIXEL_COLUMNS}
    return _write_text(repository, name, 1, {"tokenizer": "pixels", "preprocessing": size})


def _write_text(repository: Path, name: str, documents: int, own: Mapping[str, object]) -> TextClassifier:
    config: dict[str, object] = {
        "architecture": "text_classifier",
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
        **own,
    }
    tensors = _random(_text_shapes(documents), seed=documents)
    _write(repository / name / "1", config, tensors, TEXT_LABELS)
    return TextClassifier(config, tensors)


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


def _preprocessing(shorter_side: int, height: int, width: int) -> dict[str, object]:
    return {
        "resize_shorter_side": shorter_side,
        "crop_height": height,
        "crop_width": width,
        "mean": [0.5, 0.5, 0.5],
        "standard_deviation": [0.25, 0.25, 0.25],
    }


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
        "preprocessing": _preprocessing(IMAGE_SIDE, IMAGE_SIDE, IMAGE_SIDE),
    }
    tensors = _random(shapes, seed=3)
    _write(repository / name / "1", config, tensors, IMAGE_LABELS)
    return Vil({"arch": STAGES, "avg_pool": False}, tensors)


def _affine(name: str, *shape: int) -> Shapes:
    """A convolution."""
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _cvt_block_shapes(block: str, width: int, heads: int, rank: int) -> Shapes:
    shapes: Shapes = {}
    for norm in ("norm1", "norm2", "attn.ln_l", "attn.ln_g"):
        shapes |= _norm(f"{block}.{norm}", width)
    for part in ("to_q", "to_k", "to_v"):
        shapes |= _norm(f"{block}.attn.{part}.bn", width)
        shapes |= {f"{block}.attn.{part}.bn.running_{statistic}": (width,) for statistic in ("mean", "var")}
    for part, out in (("to_q", width), ("to_k", width), ("to_v", width), ("to_dyn", heads * rank)):
        shapes |= _affine(f"{block}.attn.{part}.depthwise", width, 1, 3, 3)
        shapes |= _affine(f"{block}.attn.{part}.pointwise", out, width, 1, 1)
    shapes |= _linear(f"{block}.attn.proj", width, width)
    return shapes | _linear(f"{block}.fc1", 2 * width, width) | _linear(f"{block}.fc2", width, 2 * width)


def write_cvt(repository: Path, name: str, shorter_side: int, height: int, width: int) -> Cvt:
    """Writes <repository>/<name>/1 and returns the model that it holds.

    It takes the middle of images of this shorter side, pixels as `normalised` gives them.
    """
    shapes: Shapes = {}
    for stage, of_stage in enumerate(CVT["stage_widths"]):
        channels = 3 if stage == 0 else CVT["stage_widths"][stage - 1]
        kernel = CVT["embedding_kernels"][stage]
        shapes |= _affine(f"stages.{stage}.embed", of_stage, channels, kernel, kernel)
        shapes |= _norm(f"stages.{stage}.embed_norm", of_stage)
        heads, rank = CVT["stage_heads"][stage], CVT["projection_ranks"][stage]
        for block in range(CVT["stage_depths"][stage]):
            shapes |= _cvt_block_shapes(f"stages.{stage}.blocks.{block}", of_stage, heads, rank)
    shapes |= _norm("norm", of_stage) | _linear("head", len(IMAGE_LABELS), of_stage)
    config: dict[str, object] = {
        "architecture": "cvt",
        **CVT,
        "feed_forward_ratio": 2,
        "channels": 3,
        "classes": len(IMAGE_LABELS),
        "projection_kernel": 3,
        "dynamic_projection_kernel": 3,
        "shared_dual_norm": True,
        "layer_norm_epsilon": EPSILON,
        "batch_norm_epsilon": EPSILON,
        "weight_standardization_epsilon": EPSILON,
        "preprocessing": _preprocessing(shorter_side, height, width),
    }
    tensors = _random(shapes, seed=4)
    _write(repository / name / "1", config, tensors, IMAGE_LABELS)
    specified = {
        "depths": CVT["stage_depths"],
        "heads": CVT["stage_heads"],
        "w": CVT["window_sizes"],
        "embed_kernel": CVT["embedding_kernels"],
        "embed_stride": CVT["embedding_strides"],
        "embed_pad": CVT["embedding_paddings"],
        "dual_ln_shared_kv": True,
        "ln_eps": EPSILON,
        "bn_eps": EPSILON,
        "ws_eps": EPSILON,
    }
    return Cvt(specified, tensors)


def normalised(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Pixels [height, width, 3] as the models of images see them, [3, height, width]."""
    return (pixels.transpose(2, 0, 1) / 255.0 - 0.5) / 0.25


def grey_ids(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Pixels [height, width, 3] as the model of `write_pixel_sequences` sees them, row by row."""
    grey = pixels / 255.0 @ np.array([0.2989, 0.5870, 0.1140])
    return np.floor(255.5 * grey).astype(np.int64).ravel()
