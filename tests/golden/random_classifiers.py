"""Random small cases of the classifiers' forms over every switch, expected by the float64 references."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from longshort_convert import cvt, text_classifier, vil
from longshort_convert.fields import Fields
from numpy.typing import NDArray
from reference import safetensors_file
from reference.cvt import Cvt
from reference.text_classifier import TextClassifier, from_official
from reference.vil import Vil

from golden import checkpoints

# About as spread as in the cases by formula: activations stay near 1, and no softmax is flat or a single peak.
_VECTOR_DEVIATION = 0.2
_TABLES = ("embeddings.weight", "cls_embed", "cls_token", "pos_embed", "bias_table", "position_bias")
_HEADS = ((1, 6), (1, 10), (2, 4), (2, 8), (3, 4), (4, 6), (5, 2))


def write_text_classifier_case(case: Path, random: np.random.Generator) -> dict[str, Any]:
    """Draws a case and writes it; returns its config.json."""
    one_of = _chooser(random)
    heads, head_width = one_of(*_HEADS)
    pooling = one_of({}, {"pooling_mode": "CLS"}, {"cls_token": True}, {"cls_last_layer": True})
    length = int(random.integers(1, 41))
    official = {
        "attn_type": "lsta",
        "num_landmarks": one_of(0, 1, 2, 5),
        "window_size": one_of(0, 1, 2, 3, 5, 8),
        "conv_kernel_size": one_of(-1, -1, 1, 3, 7),
        "tied_weights": one_of(True, False),
        "embedding_dim": heads * head_width,
        "transformer_dim": heads * head_width,
        "transformer_hidden_dim": int(random.integers(3, 50)),
        "head_dim": head_width,
        "num_head": heads,
        "num_layers": one_of(1, 2, 3),
        "vocab_size": int(random.integers(6, 40)),
        "max_seq_len": length + 1 + one_of(0, 0, 7),
        "num_classes": int(random.integers(2, 6)),
        "debug": one_of(True, False),
        **({"pooling_mode": "MEAN", "cls_token": False, "cls_last_layer": False} | pooling),
    }
    config = {"form": "text_classifier", "documents": one_of(1, 2), "config": official, "weights_file": "weights.pt"}
    fields = Fields(text_classifier.from_official(official) | {"documents": config["documents"]})
    weights = draw_weights(text_classifier.tensor_shapes(fields), random)
    _write_config(case, config)
    checkpoints.write_text_classifier(case / "weights.pt", weights)

    batch = int(random.integers(1, 5))
    documents = [_draw_ids(batch, length, official["vocab_size"], random) for _ in range(config["documents"])]
    model = TextClassifier(from_official(official), weights)
    tensors = {f"input_ids_{index}": ids for index, ids in enumerate(documents)}
    tensors |= {f"mask_{index}": (ids != 0).astype(np.float32) for index, ids in enumerate(documents)}
    tensors["logits"] = np.stack([model.logits([ids[row] for ids in documents]) for row in range(batch)])
    _write_io(case, tensors)
    return config


def write_vil_case(case: Path, random: np.random.Generator) -> dict[str, Any]:
    """Draws a case and writes it; returns its config.json."""
    one_of = _chooser(random)
    count = one_of(3, 3, 4)
    patches = [one_of(1, 2, 2, 3) for _ in range(count)]
    sides = _draw_sides(patches, random)
    parts = []
    for index in range(count):
        heads, head_width = one_of(*_HEADS)
        sparse = one_of(1, 1, 0)
        window = one_of(0, *(divisor for divisor in range(1, 9) if sides[index + 1] % divisor == 0))
        # The official code has neither biases without a window nor attention to nothing.
        absolute = 1 if window == 0 else one_of(0, 1)
        rank = one_of(1, 3) if window == 0 else one_of(0, 1, 4)
        globals_ = one_of(0, 1) if sparse else one_of(0, 1, 2)
        attributes = {"l": index + 1, "h": heads, "d": heads * head_width, "n": one_of(1, 1, 2), "s": sparse}
        attributes |= {"g": globals_, "p": patches[index], "f": window, "a": absolute, "r": rank}
        parts.append(",".join(f"{letter}{value}" for letter, value in attributes.items()))
    arguments = {
        "arch": "_".join(parts),
        "img_size": sides[0],
        "num_classes": int(random.integers(2, 9)),
        "norm_embed": one_of(True, False),
        "avg_pool": one_of(True, False),
    }
    config = {"form": "vil", "arch": arguments["arch"], "model_args": arguments, "weights_file": "weights.pt"}
    fields = Fields(vil.from_official(arguments))
    shapes = vil.tensor_shapes(fields, vil.parse_stages(arguments["arch"], sides[0], 3))
    weights = draw_weights(shapes, random)
    _write_config(case, config)
    checkpoints.write_vil(case / "weights.pt", weights)

    images = random.standard_normal((int(random.integers(1, 4)), 3, sides[0], sides[0])).astype(np.float32)
    model = Vil(arguments, weights)
    _write_io(case, {"input": images, "logits": np.stack([model.logits(image) for image in images])})
    return config


def write_cvt_case(case: Path, random: np.random.Generator) -> dict[str, Any]:
    """Draws a case and writes it; returns its config.json."""
    one_of = _chooser(random)
    count = one_of(1, 2, 3, 3)
    heads = [one_of(*_HEADS) for _ in range(count)]
    embeddings = [
        one_of((7, 4, 2), (4, 4, 0), (3, 2, 1)),
        *(one_of((3, 2, 1), (2, 2, 0), (3, 1, 1)) for _ in heads[1:]),
    ]
    config = {
        "form": "cvt",
        "dims": [number * width for number, width in heads],
        "heads": [number for number, _ in heads],
        "depths": [one_of(1, 1, 2) for _ in heads],
        "r": [one_of(1, 2, 5) for _ in heads],
        "w": [one_of(1, 2, 3, 4, 7) for _ in heads],
        "mlp_ratio": one_of(1, 2, 4),
        "in_chans": 3,
        "num_classes": int(random.integers(2, 9)),
        "embed_kernel": [kernel for kernel, _, _ in embeddings],
        "embed_stride": [stride for _, stride, _ in embeddings],
        "embed_pad": [pad for _, _, pad in embeddings],
        "proj_kernel": one_of(1, 3, 5),
        "dyn_kernel": one_of(3, 5),
        "dual_ln_shared_kv": one_of(True, False),
        "ln_eps": one_of(1e-5, 1e-6),
        "bn_eps": one_of(1e-5, 1e-3),
        "ws_eps": one_of(1e-5, 1e-3),
        "weights_file": "weights.safetensors",
    }
    hyperparameters = {name: value for name, value in config.items() if name not in ("form", "weights_file")}
    weights = draw_weights(cvt.tensor_shapes(Fields(cvt.from_official(hyperparameters))), random)
    _write_config(case, config)
    safetensors_file.write(case / "weights.safetensors", weights)

    model = Cvt(config, weights)
    tensors: dict[str, NDArray] = {}
    for index in range(2):
        height, width = (int(size) for size in random.integers(16, 37, 2))
        images = random.standard_normal((int(random.integers(1, 3)), 3, height, width)).astype(np.float32)
        tensors[f"images.{index}"] = images
        tensors[f"logits.{index}"] = np.stack([model.logits(image) for image in images])
    _write_io(case, tensors)
    return config


def _chooser(random: np.random.Generator) -> Callable[..., Any]:
    return lambda *values: values[random.integers(len(values))]


def _draw_sides(patches: list[int], random: np.random.Generator) -> list[int]:
    """The image's side and that of each stage's grid, from the image on, with pixels and rows that are dropped."""
    sides = [int(random.integers(1, 4))]
    for patch in reversed(patches):
        sides.insert(0, sides[0] * patch + int(random.integers(0, patch)))
    return sides


def _draw_ids(batch: int, length: int, vocabulary_size: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Rows of ids with zeros inside and at the end; at least one other each."""
    ids = random.integers(1, vocabulary_size, (batch, length), dtype=np.int64)
    for row in ids:
        row[random.random(length) < 0.2] = 0
        row[random.integers(1, length + 1) :] = 0
        row[0 if not row.any() else np.flatnonzero(row)[0]] = int(random.integers(1, vocabulary_size))
    return ids


def draw_weights(
    shapes: Mapping[str, tuple[int, ...]], random: np.random.Generator, kind: type | None = None
) -> dict[str, NDArray]:
    """Weights as the checkpoint stores them, in `kind`, or in float32 or all in float16."""
    stored = kind or (np.float16 if random.random() < 0.2 else np.float32)
    return {name: _draw_weight(name, shape, random).astype(stored) for name, shape in shapes.items()}


def _draw_weight(name: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.float64]:
    noise = random.standard_normal(shape)
    if name.endswith("running_var"):
        return 0.5 + random.random(shape)
    if name.endswith(_TABLES):
        return noise
    if len(shape) == 1:
        is_gain = name.endswith(".weight")
        return _VECTOR_DEVIATION * noise + (1.0 if is_gain else 0.0)
    return noise / math.sqrt(math.prod(shape[1:]))


def _write_config(case: Path, config: Mapping[str, Any]) -> None:
    case.mkdir(parents=True)
    (case / "config.json").write_text(json.dumps(config, indent=1))


def _write_io(case: Path, tensors: Mapping[str, NDArray]) -> None:
    stored = {name: value.astype(np.float32) if value.dtype == np.float64 else value for name, value in tensors.items()}
    safetensors_file.write(case / "io.safetensors", stored)
