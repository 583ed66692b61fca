"""Long-document encoders with windows and landmarks: cases of form `text_classifier`, by the float64 reference.

python -m golden.encoder_cases, with tests in PYTHONPATH, writes those that are committed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from longshort_convert import text_classifier
from longshort_convert.fields import Fields
from numpy.typing import NDArray
from reference import safetensors_file
from reference.text_classifier import TextClassifier

from golden import checkpoints, formula, random_classifiers

GOLDEN = Path(__file__).parent / "text_classifier"
FIRST, PADDING, LAST = 0, 1, 2


def encoder(**changed: Any) -> dict[str, Any]:
    """config.json of a small encoder."""
    return {
        "architecture": "text_classifier",
        "tokenizer": "none",
        "layers": 2,
        "model_width": 24,
        "heads": 3,
        "feed_forward_width": 40,
        "window_size": 8,
        "projection_rank": 3,
        "vocabulary_size": 50,
        "max_sequence_length": 64,
        "cls": "first_token",
        "normalized_cls": False,
        "value_convolution": 0,
        "tied_layers": False,
        "documents": 1,
        "classes": 3,
        "layer_norm": "after",
        "layer_norm_epsilon": 1e-5,
        "dual_norm": True,
        "padding_id": PADDING,
        "separator_id": LAST,
        "head": "tanh",
        "problem_type": "single_label_classification",
    } | changed


def write_random_case(case: Path, random: np.random.Generator) -> dict[str, Any]:
    """Draws a case over every switch and writes it; returns its config.json."""

    def one_of(*values: Any) -> Any:
        return values[random.integers(len(values))]

    heads, head_width = one_of((1, 6), (1, 10), (2, 4), (2, 8), (3, 4), (4, 6), (5, 2))
    rank = one_of(0, 0, 1, 2, 5)
    config = encoder(
        layers=one_of(1, 2, 3),
        model_width=heads * head_width,
        heads=heads,
        feed_forward_width=int(random.integers(3, 50)),
        window_size=one_of(0, 1, 2, 3, 5, 8, 64),
        projection_rank=rank,
        vocabulary_size=int(random.integers(6, 40)),
        max_sequence_length=int(random.integers(8, 61)),
        value_convolution=one_of(0, 0, 0, 1, 3, 7),
        tied_layers=one_of(True, False),
        documents=one_of(1, 2),
        classes=int(random.integers(1, 6)),
        layer_norm=one_of("before", "after", "after"),
        layer_norm_epsilon=one_of(1e-5, 1e-12, 1e-2),
        dual_norm=True if rank > 0 else one_of(True, False),
        padding_id=one_of(1, 0, 3),
        separator_id=one_of(2, 4),
        head=one_of("relu", "tanh", "tanh"),
        problem_type=one_of(*text_classifier.PROBLEM_TYPES),
    )
    count = one_of(1, 2)  # whatever `documents` says
    batch, most = int(random.integers(1, 5)), config["max_sequence_length"] // count
    documents = [_draw_ids(config, random.integers(1, most + 1, batch).tolist(), random) for _ in range(count)]
    for ids in documents:
        ids[:, 1:][random.random((batch, ids.shape[1] - 1)) < 0.1] = config["padding_id"]
    weights = random_classifiers.draw_weights(text_classifier.tensor_shapes(Fields(config)), random)
    _write(case, config, weights, documents, {"weights_file": "weights.pt"})
    return json.loads((case / "config.json").read_text())


def _draw_ids(config: dict[str, Any], lengths: Sequence[int], random: np.random.Generator) -> NDArray[np.int64]:
    """Sequences of these lengths, padded at the end to the longest."""
    others = np.setdiff1d(np.arange(config["vocabulary_size"]), [config["padding_id"]])
    ids = np.full((len(lengths), max(lengths)), config["padding_id"], np.int64)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = random.choice(others, length)
    return ids


def _write(
    case: Path,
    config: dict[str, Any],
    weights: dict[str, NDArray],
    documents: Sequence[NDArray[np.int64]],
    more: dict[str, Any],
) -> None:
    case.mkdir(parents=True, exist_ok=True)
    if more["weights_file"] is not None:
        checkpoints.write_text_classifier(case / more["weights_file"], weights)
    model = TextClassifier(config, weights)
    rows = range(len(documents[0]))
    logits = np.stack([model.logits([ids[row] for ids in documents]) for row in rows])
    tensors: dict[str, NDArray] = {f"input_ids_{index}": ids for index, ids in enumerate(documents)}
    safetensors_file.write(case / "io.safetensors", tensors | {"logits": logits.astype(np.float32)})
    written = {"form": "text_classifier", "documents": config["documents"], "config": config, **more}
    (case / "config.json").write_text(json.dumps(written, indent=1))


def _write_golden(name: str, note: str, config: dict[str, Any], lengths: Sequence[Sequence[int]]) -> None:
    random = np.random.default_rng(list(name.encode()))
    documents = [_draw_ids(config, of_document, random) for of_document in lengths]
    weights = random_classifiers.draw_weights(text_classifier.tensor_shapes(Fields(config)), random, np.float32)
    _write(GOLDEN / name, config, weights, documents, {"note": note, "weights_file": "weights.pt"})


def _write_base() -> None:
    """LS-base: every tensor has base 1 or 0, and a scale by its kind."""
    config = encoder(
        **{"layers": 12, "model_width": 768, "heads": 12, "feed_forward_width": 3072, "window_size": 64},
        **{"projection_rank": 16, "vocabulary_size": 1000, "max_sequence_length": 512, "layer_norm_epsilon": 1e-5},
    )
    tensors = []
    for name, shape in text_classifier.tensor_shapes(Fields(config)).items():
        if len(shape) == 1:
            gain = name.endswith("weight")
            tensors.append([name, shape, 1.0 if gain else 0.0, 0.3])
        else:
            gain = 3.0 if "W_q" in name else 1.7
            tensors.append([name, shape, 0.0, 1.0 if "embeddings" in name else float(f"{gain / shape[1] ** 0.5:.9g}")])
    entry = {"seed": 351, "tensors": tensors}
    documents = [_draw_ids(config, [400, 33], np.random.default_rng(351))]
    more = {"note": "LS-base with 1,000 ids; weights by formula", "formula": entry, "weights_file": None}
    _write(GOLDEN / "encoder_base_formula", config, formula.listed_weights(entry), documents, more)


def main() -> None:
    _write_golden("encoder_w8_r3", "lengths 64 (max), 1, 2, 40", encoder(), [[64, 1, 2, 40]])
    _write_golden(
        "encoder_w16_r0",
        "windows without landmarks or DualLN",
        encoder(projection_rank=0, dual_norm=False, window_size=16),
        [[64, 9, 30]],
    )
    _write_golden(
        "encoder_pair_w5_r1",
        "pairs, regression",
        encoder(window_size=5, projection_rank=1, classes=1, documents=2, problem_type="regression"),
        [[30, 2, 11], [34, 3, 1]],
    )
    _write_golden(
        "encoder_long",
        "1,100 tokens; two layers of width 12",
        encoder(
            model_width=12, heads=2, feed_forward_width=16, window_size=128, projection_rank=8, max_sequence_length=1100
        ),
        [[1100, 513]],
    )
    _write_base()


if __name__ == "__main__":
    main()
