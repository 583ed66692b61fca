"""Hugging Face's RoBERTa becomes a long-document encoder: what is in it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import roberta
from numpy.typing import NDArray
from reference import checkpoint_file, safetensors_file
from reference.text_classifier import TextClassifier

from models.convert.converting import config_of, convert, refusal

_CONFIG = {
    "architecture": "text_classifier",
    "tokenizer": "none",
    "layers": 2,
    "model_width": 24,
    "heads": 3,
    "feed_forward_width": 40,
    "window_size": 64,
    "projection_rank": 0,
    "vocabulary_size": 70,
    "max_sequence_length": 64,
    "cls": "first_token",
    "normalized_cls": False,
    "value_convolution": 0,
    "tied_layers": False,
    "documents": 1,
    "classes": 3,
    "layer_norm": "after",
    "dual_norm": False,
    "padding_id": 1,
    "head": "tanh",
}
_POSITIONS = "model.embeddings.position_embeddings.weight"


def _stored(out: Path) -> dict[str, NDArray]:
    return safetensors_file.read(out / "model.safetensors")


def _weights(model: dict[str, Any]) -> dict[str, NDArray]:
    return dict(roberta.weights(model, np.random.default_rng(5)))


def _folder(directory: Path, **changed: Any) -> Path:
    model = roberta.config(**changed)
    return roberta.write_folder(directory / "roberta", model, _weights(model))


def test_a_classifier_has_the_fields_and_tensors_of_an_encoder(tmp_path: Path) -> None:
    out = tmp_path / "model"
    assert convert(_folder(tmp_path), "--out", out) == 0
    assert config_of(out) == _CONFIG
    assert (out / "labels.txt").read_text() == "bad\ngood\nso so\n"
    given, stored = _weights(roberta.config()), _stored(out)
    assert len(stored) == len(given) - 1  # the token type is part of the positions
    layer = "roberta.encoder.layer.1."
    for theirs, ours in {
        "roberta.embeddings.word_embeddings.weight": "model.embeddings.word_embeddings.weight",
        f"{layer}attention.self.key.bias": "model.transformer_1.mha.W_k.bias",
        f"{layer}attention.output.LayerNorm.weight": "model.transformer_1.norm1.weight",
        f"{layer}output.dense.weight": "model.transformer_1.mlpblock.3.weight",
        "classifier.out_proj.weight": "seq_classifer.mlpblock.2.weight",
    }.items():
        assert np.array_equal(stored[ours], given[theirs]), theirs
    types = given["roberta.embeddings.token_type_embeddings.weight"][0]
    positions = given["roberta.embeddings.position_embeddings.weight"][2:]
    assert np.array_equal(stored[_POSITIONS], positions + types)


def test_optional_fields_are_those_of_the_folder(tmp_path: Path) -> None:
    changed = {"layer_norm_eps": 1e-12, "pad_token_id": 4, "eos_token_id": 3, "problem_type": roberta.MULTI}
    assert convert(_folder(tmp_path, **changed), "--out", tmp_path / "model") == 0
    new = {"layer_norm_epsilon": 1e-12, "padding_id": 4, "separator_id": 3, "problem_type": roberta.MULTI}
    new |= {"max_sequence_length": 61, "window_size": 61}
    assert config_of(tmp_path / "model") == _CONFIG | new


@pytest.mark.parametrize(("labels", "problem_type"), [(1, "regression"), (2, None)])
def test_a_problem_type_that_is_not_given_follows_from_the_classes(
    labels: int, problem_type: str | None, tmp_path: Path
) -> None:
    assert convert(_folder(tmp_path, id2label=roberta.labels(labels)), "--out", tmp_path / "model") == 0
    assert config_of(tmp_path / "model").get("problem_type") == problem_type


def test_an_old_folder_and_other_prefixes_give_the_same_files(tmp_path: Path) -> None:
    model = roberta.config()
    weights = _weights(model)
    folders = [roberta.write_folder(tmp_path / "new", model, weights)]
    folders.append(roberta.write_old_folder(tmp_path / "old", model, weights))
    lightning = tmp_path / "lightning"
    lightning.mkdir()
    checkpoint_file.write(lightning / "last.ckpt", {"state_dict": {f"net.{name}": weights[name] for name in weights}})
    (lightning / "config.json").write_text(json.dumps(model))
    folders.append(lightning / "last.ckpt")
    outs = [tmp_path / f"out-{index}" for index in range(len(folders))]
    for folder, out in zip(folders, outs, strict=True):
        assert convert(folder, "--out", out) == 0
        for name in ("config.json", "model.safetensors", "labels.txt"):
            assert (out / name).read_bytes() == (outs[0] / name).read_bytes()


def test_layer_norms_may_have_the_names_of_tensorflow(tmp_path: Path) -> None:
    model = roberta.config()
    weights = _weights(model)
    old = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): weights[name] for name in weights
    }
    assert sum(name.endswith((".gamma", ".beta")) for name in old) == 2 * (1 + 2 * model["num_hidden_layers"])
    for folder, tensors in (("new", weights), ("old", old)):
        assert (
            convert(roberta.write_folder(tmp_path / folder, model, tensors), "--out", tmp_path / f"{folder}-model") == 0
        )
    assert (tmp_path / "old-model/model.safetensors").read_bytes() == (
        tmp_path / "new-model/model.safetensors"
    ).read_bytes()


def test_a_layer_norm_with_both_names_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = roberta.config()
    name = "roberta.embeddings.LayerNorm"
    weights = _weights(model)
    folder = roberta.write_folder(tmp_path / "both", model, weights | {f"{name}.gamma": weights[f"{name}.weight"]})
    message = refusal(capsys, tmp_path / "model", folder)
    assert f"{name}.gamma" in message and f"{name}.weight" in message and "the same tensor" in message


@pytest.mark.parametrize("architecture", [roberta.ENCODER, roberta.MASKED_LM])
def test_an_encoder_has_no_head(architecture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    assert convert(_folder(tmp_path, architectures=[architecture]), "--out", out) == 0
    assert config_of(out) == _CONFIG | {"classes": 0}
    assert not (out / "labels.txt").exists()
    assert not [name for name in _stored(out) if "classifer" in name]
    dropped = "lm_head, the head of the masked language model, is dropped" in capsys.readouterr().err
    assert dropped == (architecture == roberta.MASKED_LM)


def test_half_precision_is_kept_and_sums_are_not_rounded_to_it(tmp_path: Path) -> None:
    model = roberta.config()
    weights = {name: value.astype(np.float16) for name, value in _weights(model).items()}
    assert convert(roberta.write_folder(tmp_path / "half", model, weights), "--out", tmp_path / "model") == 0
    stored = _stored(tmp_path / "model")
    assert stored["model.embeddings.word_embeddings.weight"].dtype == np.float16
    types, table = (weights[f"roberta.embeddings.{name}_embeddings.weight"] for name in ("token_type", "position"))
    assert np.array_equal(stored[_POSITIONS], table[2:].astype(np.float32) + types[0].astype(np.float32))


def test_positions_can_be_more_or_fewer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path)
    for length in (150, 64, 10):
        assert convert(folder, "--max-length", length, "--out", tmp_path / str(length)) == 0
        assert ("WARNING: positions 64 to 149 are copies" in capsys.readouterr().err) == (length == 150)
        config = config_of(tmp_path / str(length))
        assert (config["max_sequence_length"], config["window_size"]) == (length, length)
    table = _stored(tmp_path / "64")[_POSITIONS]
    assert np.array_equal(_stored(tmp_path / "10")[_POSITIONS], table[:10])
    assert np.array_equal(_stored(tmp_path / "150")[_POSITIONS], np.concatenate([table, table, table[:22]]))


def test_a_window_that_does_not_cover_is_said_loudly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path)
    for window in (8, 63):  # the first token is outside the windows
        assert convert(folder, "--window", window, "--out", tmp_path / str(window)) == 0
        assert ("WARNING: documents of more than 9 tokens" in capsys.readouterr().err) == (window == 8)
        assert config_of(tmp_path / str(window)) == _CONFIG | {"window_size": window}


def test_landmarks_begin_by_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert convert(folder, "--window=8", "--rank=4", f"--seed={seed}", "--out", tmp_path / name) == 0
        assert "WARNING: 4 landmarks for each head begin with random projections" in capsys.readouterr().err
    expected = {**_CONFIG, "window_size": 8, "projection_rank": 4}
    del expected["dual_norm"]
    assert config_of(tmp_path / "a") == expected
    files = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert files["a"] == files["b"] != files["c"]
    projection = _stored(tmp_path / "a")["model.transformer_0.mha.dconv_fc.weight"]
    assert projection.shape == (12, 24)
    assert 0.01 < projection.std() < 0.03


def test_landmarks_begin_near_roberta(tmp_path: Path) -> None:
    """Without the landmarks, what DualLN changes is small: it only takes the sizes of single keys and values away."""
    model = roberta.config(hidden_size=96, num_attention_heads=6, num_hidden_layers=2)
    folder = roberta.write_folder(tmp_path / "roberta", model, _weights(model))
    networks = []
    for name, options in (("exact", ()), ("start", ("--rank=1",))):
        assert convert(folder, *options, "--out", tmp_path / name) == 0
        config = config_of(tmp_path / name) | {"projection_rank": 0}
        networks.append(TextClassifier(config, _stored(tmp_path / name)))
    (ids,) = roberta.draw_ids(model, [40], np.random.default_rng(1))
    exact, start = (network.first([ids]) for network in networks)
    assert np.corrcoef(exact, start)[0, 1] > 0.95


def _long_short(directory: Path, rank: int = 2, window: int = 16) -> Path:
    """A RoBERTa with long-short attention, as this project names its tensors."""
    model = roberta.config(model_type="longshort_roberta", window_size=window)
    weights = _weights(model)
    random = np.random.default_rng(6)
    for layer in range(2):
        prefix = f"roberta.encoder.layer.{layer}.attention.self."
        weights[f"{prefix}landmarks.weight"] = random.standard_normal((3 * rank, 24)).astype(np.float32)
        weights[f"{prefix}landmarks.bias"] = random.standard_normal(3 * rank).astype(np.float32)
        for name in ("dual_norm_short", "dual_norm_long"):
            for part in ("weight", "bias"):
                weights[f"{prefix}{name}.{part}"] = random.standard_normal(24).astype(np.float32)
    return roberta.write_folder(directory / "long_short", model, weights)


def test_a_long_short_roberta_keeps_its_window_and_landmarks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _long_short(tmp_path)
    assert convert(folder, "--out", tmp_path / "model") == 0
    assert "WARNING" not in capsys.readouterr().err
    expected = {**_CONFIG, "window_size": 16, "projection_rank": 2}
    del expected["dual_norm"]
    assert config_of(tmp_path / "model") == expected
    given, stored = safetensors_file.read(folder / "model.safetensors"), _stored(tmp_path / "model")
    for theirs, ours in {
        "landmarks": "dconv_fc",
        "dual_norm_short": "dual_ln_s",
        "dual_norm_long": "dual_ln_l",
    }.items():
        name = f"roberta.encoder.layer.1.attention.self.{theirs}.bias"
        assert np.array_equal(stored[f"model.transformer_1.mha.{ours}.bias"], given[name])
    assert "rank is 3" in refusal(capsys, tmp_path / "other", folder, "--rank=3")


def test_a_long_short_roberta_may_have_no_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _long_short(tmp_path, window=0)
    assert convert(folder, "--out", tmp_path / "model") == 0
    assert "WARNING" not in capsys.readouterr().err
    assert config_of(tmp_path / "model")["window_size"] == 0


def test_a_window_narrower_than_in_training_is_said_loudly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _long_short(tmp_path, window=16)
    for window in (8, 16, 32):
        assert convert(folder, "--window", window, "--out", tmp_path / str(window)) == 0
        assert ("WARNING: documents of more than 9 tokens" in capsys.readouterr().err) == (window == 8)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model_type": "xlm-roberta"}, ["model_type is 'xlm-roberta'", "SentencePiece"]),
        ({"model_type": "camembert"}, ["model_type is 'camembert'", "SentencePiece"]),
        ({"model_type": "longformer"}, ["model_type is 'longformer'", "global attention"]),
        ({"model_type": "bert"}, ["model_type is 'bert'", "WordPiece"]),
        ({"model_type": "gpt2"}, ["model_type is 'gpt2'", "'roberta'"]),
        ({"model_type": None}, ["model_type is None"]),
        ({"model_type": ["roberta"]}, ["model_type is ['roberta']"]),
        ({"architectures": ["RobertaForTokenClassification"]}, ["RobertaForTokenClassification"]),
        ({"architectures": [roberta.ENCODER]}, ["architectures", "has classifier.dense"]),
        ({"position_embedding_type": "relative_key"}, ["position_embedding_type is 'relative_key'", "'absolute'"]),
        ({"hidden_act": "gelu_new"}, ["hidden_act is 'gelu_new'", "'gelu'"]),
        ({"is_decoder": True}, ["is_decoder is True"]),
        ({"quantization_config": {"bits": 4}}, ["quantization_config"]),
        ({"auto_map": {"AutoModel": "code.Model"}}, ["auto_map"]),
        ({"layer_norm_eps": 0}, ["layer_norm_eps is 0"]),
        ({"problem_type": "ranking"}, ["problem_type is 'ranking'", "regression"]),
        ({"hidden_size": 12}, ["model_width is 12", "24"]),
        ({"num_hidden_layers": 3}, ["layers is 3", "2"]),
        ({"max_position_embeddings": 514}, ["514", "66"]),
        ({"num_attention_heads": 5}, ["num_attention_heads is 5", "24"]),
        ({"num_attention_heads": None}, ["num_attention_heads is None"]),
        ({"id2label": roberta.labels(2)}, ["id2label has 2 classes", "3"]),
        ({"id2label": {"0": "a", "2": "b"}}, ["id2label", "0, 1"]),
        ({"pad_token_id": 70}, ["none behind that of pad_token_id 70"]),
        ({"window_size": 8}, ["window_size", "longshort_roberta"]),
    ],
)
def test_a_setting_that_is_not_computed_is_refused_by_name(
    changed: dict[str, Any], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _folder(tmp_path)
    (folder / "config.json").write_text(json.dumps(roberta.config(**changed)))
    message = refusal(capsys, tmp_path / "model", folder)
    for word in words:
        assert word in message


@pytest.mark.parametrize("kind", ["longformer", "bert", "electra", "data2vec-text", "modernbert"])
def test_a_model_with_other_names_of_tensors_is_refused_by_its_own(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = {name.replace("roberta.", f"{kind}."): value for name, value in _weights(roberta.config()).items()}
    folder = roberta.write_folder(tmp_path / "other", roberta.config(model_type=kind), weights)
    for checkpoint in (folder, folder / "model.safetensors"):
        assert f"model_type is '{kind}'" in refusal(capsys, tmp_path / "model", checkpoint)


_KEY = "roberta.encoder.layer.1.attention.self.key.weight"


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({_KEY: None}, (), [_KEY, "missing"]),
        ({"roberta.encoder.layer.1.adapter.weight": np.zeros(2, np.float32)}, (), ["adapter", "unknown"]),
        ({_KEY: np.zeros((24, 12), np.float32)}, (), [_KEY, "[24, 12]", "[24, 24]"]),
        ({_KEY: np.zeros((24, 24), np.float64)}, (), [_KEY, "float64"]),
        ({"classifier.dense.weight": None}, (), ["classifier.dense.weight", "missing"]),
        ({}, ("--vocabulary", "x"), ["--vocabulary", "a RoBERTa"]),
        ({}, ("--preset", "lra-text"), ["--preset", "a RoBERTa"]),
        ({}, ("--mem-len", "8"), ["--mem-len"]),
        ({}, ("--seed", "8"), ["--seed", "--rank"]),
        ({}, ("--head", "mnli"), ["--head", "fairseq"]),
        ({}, ("--set", "heads=2"), ["heads is 2", "3"]),
        ({}, ("--set", "depth=2"), ["'depth' is unknown"]),
        ({}, ("--set", "tokenizer=byte_level_bpe"), ["no tokenizer.json", "--bpe"]),
        ({}, ("--set", "tokenizer=bytes_plus_one"), ["tokenizer is 'bytes_plus_one'"]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    change: dict[str, Any],
    options: tuple[str, ...],
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = roberta.config()
    weights = {name: value for name, value in (_weights(model) | change).items() if value is not None}
    folder = roberta.write_folder(tmp_path / "roberta", model, weights)
    message = refusal(capsys, tmp_path / "model", folder, *options)
    for word in words:
        assert word in message


def test_a_file_without_config_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path)
    config = (folder / "config.json").rename(tmp_path / "elsewhere.json")
    assert "config.json: no such file" in refusal(capsys, tmp_path / "model", folder / "model.safetensors")
    assert convert(folder / "model.safetensors", "--config", config, "--out", tmp_path / "model") == 0


def test_a_setting_that_is_not_known_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(_folder(tmp_path, flavour="vanilla"), "--out", tmp_path / "model") == 0
    assert "does not know and ignores: flavour" in capsys.readouterr().err


def test_options_of_robertas_are_refused_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = Path(__file__).parents[2] / "golden/text_classifier/text_tiny/weights.pt"
    for option in ("--window", "--rank", "--seed", "--max-length", "--head"):
        assert f"{option} is not valid" in refusal(capsys, tmp_path / "model", weights, f"{option}=4")
