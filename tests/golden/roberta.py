"""RoBERTa in the form of Hugging Face's `transformers`: its config.json, tensors, folders and token ids, made here."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import checkpoint_file, safetensors_file

from golden import formula

CLASSIFIER, ENCODER, MASKED_LM = "RobertaForSequenceClassification", "RobertaModel", "RobertaForMaskedLM"
SINGLE, MULTI, REGRESSION = "single_label_classification", "multi_label_classification", "regression"
Shapes = dict[str, tuple[int, ...]]
Weights = dict[str, NDArray[np.float32]]

# What a tensor's name matches first decides its values by formula: base, scale, and whether the scale is divided by the
# root of the inputs.
_RULES = (
    (r"LayerNorm\.weight$", 1.0, 0.4, False),
    (r"LayerNorm\.bias$", 0.0, 0.3, False),
    (r"embeddings\.weight$", 0.0, 1.0, False),
    (r"(query|key)\.weight$", 0.0, 3.0, True),
    (r"\.weight$", 0.0, 1.7, True),
    (r"bias$", 0.0, 0.3, False),
)


def config(**changed: Any) -> dict[str, Any]:
    """A small model's config.json, as `transformers` writes it."""
    return {
        "architectures": [CLASSIFIER],
        "attention_probs_dropout_prob": 0.1,
        "bos_token_id": 0,
        "classifier_dropout": None,
        "dtype": "float32",
        "eos_token_id": 2,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 24,
        "id2label": {"0": "bad", "1": "good", "2": "so so"},
        "initializer_range": 0.02,
        "intermediate_size": 40,
        "label2id": {"bad": 0, "good": 1, "so so": 2},
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": 66,
        "model_type": "roberta",
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "pad_token_id": 1,
        "position_embedding_type": "absolute",
        "problem_type": None,
        "transformers_version": "5.24.0",
        "type_vocab_size": 1,
        "use_cache": True,
        "vocab_size": 70,
    } | changed


def labels(count: int) -> dict[str, str]:
    """id2label."""
    return {str(index): f"label {index}" for index in range(count)}


def draw_config(random: np.random.Generator) -> dict[str, Any]:
    def one_of(*values: Any) -> Any:
        return values[random.integers(len(values))]

    heads, head_width = one_of((1, 6), (2, 8), (3, 4), (4, 6), (2, 16), (12, 2))
    padding = one_of(1, 1, 0, 5)
    classes = int(random.integers(1, 6))
    return config(
        architectures=[one_of(CLASSIFIER, CLASSIFIER, ENCODER, MASKED_LM)],
        bos_token_id=one_of(6, 7),
        eos_token_id=one_of(2, 3),
        hidden_size=heads * head_width,
        id2label=labels(classes),
        intermediate_size=int(random.integers(3, 70)),
        layer_norm_eps=one_of(1e-5, 1e-12, 1e-3),
        max_position_embeddings=padding + 1 + int(random.integers(8, 60)),
        num_attention_heads=heads,
        num_hidden_layers=one_of(1, 2, 3),
        pad_token_id=padding,
        problem_type=one_of(None, *((SINGLE,) if classes > 1 else ()), MULTI, REGRESSION),
        type_vocab_size=one_of(1, 2),
        vocab_size=int(random.integers(10, 90)),
    )


def architecture(model: Mapping[str, Any]) -> str:
    return model["architectures"][0]


def max_tokens(model: Mapping[str, Any]) -> int:
    return model["max_position_embeddings"] - model["pad_token_id"] - 1


def shapes(model: Mapping[str, Any]) -> Shapes:
    """The tensors of model.safetensors."""
    width, inner = model["hidden_size"], model["intermediate_size"]

    def affine(name: str, rows: int, columns: int) -> Shapes:
        return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}

    def norm(name: str) -> Shapes:
        return {f"{name}.weight": (width,), f"{name}.bias": (width,)}

    made: Shapes = {
        "embeddings.word_embeddings.weight": (model["vocab_size"], width),
        "embeddings.position_embeddings.weight": (model["max_position_embeddings"], width),
        "embeddings.token_type_embeddings.weight": (model["type_vocab_size"], width),
        **norm("embeddings.LayerNorm"),
    }
    for layer in range(model["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}."
        for projection in ("query", "key", "value"):
            made |= affine(f"{prefix}attention.self.{projection}", width, width)
        made |= affine(f"{prefix}attention.output.dense", width, width) | norm(f"{prefix}attention.output.LayerNorm")
        made |= affine(f"{prefix}intermediate.dense", inner, width) | affine(f"{prefix}output.dense", width, inner)
        made |= norm(f"{prefix}output.LayerNorm")
    if architecture(model) == ENCODER:
        return made | affine("pooler.dense", width, width)
    made = {f"roberta.{name}": shape for name, shape in made.items()}
    if architecture(model) == MASKED_LM:
        made |= affine("lm_head.dense", width, width) | {"lm_head.bias": (model["vocab_size"],)}
        return made | {"lm_head.layer_norm.weight": (width,), "lm_head.layer_norm.bias": (width,)}
    made |= affine("classifier.dense", width, width)
    return made | affine("classifier.out_proj", len(model["id2label"]), width)


def weights(model: Mapping[str, Any], random: np.random.Generator) -> Weights:
    """Position and type embeddings are multiples of 2^-10, so that their sums are exact in float32."""
    made: Weights = {}
    for name, shape in shapes(model).items():
        noise = random.standard_normal(shape)
        if "position_embeddings" in name or "token_type" in name:
            noise = np.round(noise * 2**10) / 2**10
        elif len(shape) == 1:
            noise = 0.2 * noise + (1.0 if name.endswith("orm.weight") else 0.0)
        elif not name.endswith("embeddings.weight"):
            noise = noise * (1.5 if ".self." in name else 1.0) / math.sqrt(shape[1])
        made[name] = noise.astype(np.float32)
    return made


def weights_by_formula(model: Mapping[str, Any], seed: int) -> Weights:
    made: Weights = {}
    for name, shape in shapes(model).items():
        base, scale, per_input = next(rule[1:] for rule in _RULES if re.search(rule[0], name))
        scale = scale / math.sqrt(shape[1]) if per_input else scale
        made[name] = formula.tensor(name, shape, base, scale, seed)
    return made


def write_folder(folder: Path, model: Mapping[str, Any], tensors: Mapping[str, NDArray]) -> Path:
    """As save_pretrained does, without a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model, indent=2))
    safetensors_file.write(folder / "model.safetensors", tensors)
    return folder


def write_old_folder(folder: Path, model: Mapping[str, Any], tensors: Mapping[str, NDArray]) -> Path:
    """As versions before 2023 saved it: with a pickle, and the positions as a buffer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model, indent=2))
    prefix = "" if architecture(model) == ENCODER else "roberta."
    positions = np.arange(model["max_position_embeddings"], dtype=np.int64)[None]
    checkpoint_file.write(folder / "pytorch_model.bin", {**tensors, f"{prefix}embeddings.position_ids": positions})
    return folder


def draw_ids(model: Mapping[str, Any], lengths: Sequence[int], random: np.random.Generator) -> NDArray[np.int64]:
    """Sequences <s> ... </s> of these lengths, padded at the end to the longest."""
    special = [model[f"{name}_token_id"] for name in ("bos", "eos", "pad")]
    others = np.setdiff1d(np.arange(model["vocab_size"]), special)
    ids = np.full((len(lengths), max(lengths)), model["pad_token_id"], np.int64)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = random.choice(others, length)
        row[length - 1] = model["eos_token_id"]
        row[0] = model["bos_token_id"]
    return ids


def draw_documents(model: Mapping[str, Any], random: np.random.Generator) -> list[NDArray[np.int64]]:
    """Batches of single documents, or of firsts and seconds of pairs."""
    batch, count = int(random.integers(1, 5)), int(random.integers(1, 3))
    most = max_tokens(model) // count
    return [draw_ids(model, random.integers(1, most + 1, batch).tolist(), random) for _ in range(count)]


def joined(model: Mapping[str, Any], documents: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """What the model reads of one item: <s> A </s>, or <s> A </s></s> B </s>."""
    whole = [ids[ids != model["pad_token_id"]] for ids in documents]
    if len(whole) == 1:
        return whole[0]
    return np.concatenate([whole[0], [model["eos_token_id"]], whole[1][1:]])
