"""fairseq's RoBERTa becomes the same files as Hugging Face's."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import roberta
from numpy.typing import NDArray
from reference import checkpoint_file

from models.convert.converting import convert, refusal

_SETTINGS = {
    "encoder_attention_heads": 3,
    "encoder_embed_dim": 24,
    "encoder_ffn_embed_dim": 40,
    "encoder_layers": 2,
    "activation_fn": "gelu",
    "pooler_activation_fn": "tanh",
    "encoder_normalize_before": True,  # as fairseq's first versions saved it
}
_NAMES = (
    (r"^roberta\.embeddings\.word_embeddings", "encoder.sentence_encoder.embed_tokens"),
    (r"^roberta\.embeddings\.position_embeddings", "encoder.sentence_encoder.embed_positions"),
    (r"^roberta\.embeddings\.LayerNorm", "encoder.sentence_encoder.layernorm_embedding"),
    (r"^roberta\.encoder\.layer", "encoder.sentence_encoder.layers"),
    (r"attention\.self\.(\w)\w+", r"self_attn.\1_proj"),
    (r"attention\.output\.dense", "self_attn.out_proj"),
    (r"attention\.output\.LayerNorm", "self_attn_layer_norm"),
    (r"intermediate\.dense", "fc1"),
    (r"(\d)\.output\.dense", r"\1.fc2"),
    (r"(\d)\.output\.LayerNorm", r"\1.final_layer_norm"),
    (r"^classifier", "classification_heads.sentiment"),
)


def _model() -> dict[str, Any]:
    return roberta.config(architectures=[roberta.CLASSIFIER], id2label=roberta.labels(3), vocab_size=70)


def _weights() -> dict[str, NDArray]:
    weights = dict(roberta.weights(_model(), np.random.default_rng(5)))
    weights["roberta.embeddings.token_type_embeddings.weight"][:] = 0  # fairseq has none
    return weights


def _fairseq() -> dict[str, NDArray]:
    """As newer versions of fairseq name the tensors."""
    state = {}
    for name, value in _weights().items():
        if "token_type" in name:
            continue
        for pattern, new in _NAMES:
            name = re.sub(pattern, new, name)
        state[name] = value
    return state


def _older(state: dict[str, NDArray]) -> dict[str, NDArray]:
    """As the published checkpoints name them: another side, and one tensor for query, key and value."""
    state = {re.sub(r"^encoder\.", "decoder.", name): value for name, value in state.items()}
    state = {name.replace("layernorm_embedding", "emb_layer_norm"): value for name, value in state.items()}
    for layer in range(2):
        prefix = f"decoder.sentence_encoder.layers.{layer}.self_attn."
        for part in ("weight", "bias"):
            state[f"{prefix}in_proj_{part}"] = np.concatenate(
                [state.pop(f"{prefix}{projection}_proj.{part}") for projection in "qkv"]
            )
    return state | {"decoder.sentence_encoder.version": np.ones(1, np.float32)}


def _lm_head(side: str) -> dict[str, NDArray]:
    names = ("dense.weight", "dense.bias", "layer_norm.weight", "layer_norm.bias")
    shapes = ((24, 24), (24,), (24,), (24,))
    head = {name: np.zeros(shape, np.float32) for name, shape in zip(names, shapes, strict=True)}
    head |= {"weight": np.zeros((70, 24), np.float32), "bias": np.zeros(70, np.float32)}
    return {f"{side}lm_head.{name}": value for name, value in head.items()}


def _save(path: Path, state: dict[str, Any], settings: dict[str, Any] | None = None, old: bool = False) -> Path:
    values = _SETTINGS if settings is None else settings
    if old:
        checkpoint: dict[str, Any] = {"args": argparse.Namespace(arch="roberta_base", **values), "model": state}
    else:
        cfg = {"model": {"_name": "roberta", **values}, "task": {"_name": "sentence_prediction"}}
        checkpoint = {"args": None, "cfg": cfg, "model": state}
    checkpoint_file.write(path, checkpoint)
    return path


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    folder = roberta.write_folder(tmp_path / "hugging_face", _model(), _weights())
    assert convert(folder, "--out", tmp_path / "expected") == 0
    return tmp_path / "expected"


@pytest.mark.parametrize("old", [False, True])
def test_both_forms_give_the_files_of_hugging_face(old: bool, expected: Path, tmp_path: Path) -> None:
    state = _fairseq() | _lm_head("encoder.")
    state = _older(state) if old else state
    labels = ("--labels", expected / "labels.txt")
    assert convert(_save(tmp_path / "model.pt", state, old=old), *labels, "--out", tmp_path / "out") == 0
    for name in ("config.json", "model.safetensors", "labels.txt"):
        assert (tmp_path / "out" / name).read_bytes() == (expected / name).read_bytes()


def test_without_a_head_it_is_an_encoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = {name: value for name, value in _fairseq().items() if "classification" not in name}
    assert convert(_save(tmp_path / "model.pt", state | _lm_head("encoder.")), "--out", tmp_path / "out") == 0
    assert json.loads((tmp_path / "out" / "config.json").read_text())["classes"] == 0
    assert "lm_head" in capsys.readouterr().err


def test_one_of_several_heads_is_chosen(expected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = _fairseq()
    others = {name.replace("sentiment", "topic.of"): value * 2 for name, value in state.items() if "heads" in name}
    path = _save(tmp_path / "model.pt", state | others)
    assert "several heads; choose with --head: sentiment, topic.of" in refusal(capsys, tmp_path / "out", path)
    assert "--head=mnli: the checkpoint has sentiment" in refusal(capsys, tmp_path / "out", path, "--head=mnli")
    assert convert(path, "--head=sentiment", "--out", tmp_path / "out") == 0
    assert (tmp_path / "out/model.safetensors").read_bytes() == (expected / "model.safetensors").read_bytes()
    assert convert(path, "--head=topic.of", "--out", tmp_path / "other") == 0


_KEY = "encoder.sentence_encoder.layers.1.self_attn.k_proj.weight"


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ({_KEY: None}, {}, ["attention.self.key.weight", "missing"]),
        ({"encoder.sentence_encoder.layer_norm.weight": np.ones(24, np.float32)}, {}, ["layer_norm", "unknown"]),
        (
            {"encoder.sentence_encoder.layers.0.self_attn.in_proj_weight": np.ones((72, 24), np.float32)},
            {},
            ["in_proj_weight", "second"],
        ),
        ({}, {"activation_fn": "relu"}, ["activation_fn is 'relu'", "'gelu'"]),
        ({}, {"pooler_activation_fn": "relu"}, ["pooler_activation_fn is 'relu'"]),
        ({}, {"encoder_attention_heads": None}, ["encoder_attention_heads is None"]),
        ({}, {"encoder_layers": 3}, ["layers is 3"]),
        ({}, {"_name": "xlmr"}, ["_name is 'xlmr'"]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    change: dict[str, Any],
    settings: dict[str, Any],
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = {name: value for name, value in (_fairseq() | change).items() if value is not None}
    message = refusal(capsys, tmp_path / "out", _save(tmp_path / "model.pt", state, _SETTINGS | settings))
    for word in words:
        assert word in message


def test_a_checkpoint_without_settings_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint_file.write(tmp_path / "model.pt", {"model": _fairseq()})
    assert "no settings: neither cfg nor args" in refusal(capsys, tmp_path / "out", tmp_path / "model.pt")
