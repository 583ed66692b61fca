"""Classifier checkpoints become model directories: what is in them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.classifier_forms import CVT_NAMES
from longshort_convert import text_classifier, vil
from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields
from longshort_convert.given_fields import load_preset, preset_names
from numpy.typing import NDArray
from reference import checkpoint_file, safetensors_file

from models.convert.converting import config_of, convert, refusal

_GOLDEN = Path(__file__).parents[2] / "golden"
_INDEX = "relative_position_index"
_SMALL_VIL = "l1,h2,d4,n1,s1,g1,p2,f2,a0,r1_l2,h2,d4,n1,s1,g0,p2,f2,a1,r0_l3,h2,d8,n1,s0,g1,p2,f7,a0,r0"


def _golden(form: str, case: str) -> tuple[Path, dict[str, Any]]:
    """A case's checkpoint and its hyperparameters in the official names."""
    folder = _GOLDEN / form / case
    config = json.loads((folder / "config.json").read_text())
    if form == "cvt":
        return folder / config["weights_file"], {name: config[name] for name in CVT_NAMES}
    return folder / config["weights_file"], config["config" if form == "text_classifier" else "model_args"]


def _write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def _converted(form: str, case: str, scratch: Path, *options: object) -> tuple[dict[str, Any], dict[str, NDArray]]:
    checkpoint, names = _golden(form, case)
    hyperparameters = _write(scratch / "hyperparameters.json", names)
    assert convert(checkpoint, "--config", hyperparameters, *options, "--out", scratch / "model") == 0
    return config_of(scratch / "model"), safetensors_file.read(scratch / "model" / "model.safetensors")


def _golden_cases(form: str) -> list[str]:
    return sorted(path.parent.name for path in (_GOLDEN / form).glob("*/weights.*"))


def _assert_same(stored: dict[str, NDArray], original: dict[str, NDArray]) -> None:
    """Every number under its own name, and no other tensor."""
    assert set(stored) == set(original)
    for name, values in stored.items():
        assert values.dtype == original[name].dtype
        assert np.array_equal(values, original[name]), name


@pytest.mark.parametrize("case", _golden_cases("text_classifier"))
def test_a_text_classifier_keeps_every_number(case: str, tmp_path: Path) -> None:
    config, stored = _converted("text_classifier", case, tmp_path)
    checkpoint, official = _golden("text_classifier", case)
    state = checkpoint_file.read(checkpoint)["model_state_dict"]
    _assert_same(stored, {name: value for name, value in state.items() if value.size > 0})
    if "architecture" in official:  # an encoder's, in the names of config.json
        assert official == text_classifier._OPTIONAL | config
        return
    assert config["heads"] == official["num_head"]
    assert config["window_size"] == official["window_size"]
    assert config["projection_rank"] == official["num_landmarks"]
    assert config["value_convolution"] == max(official["conv_kernel_size"], 0)
    assert config["tied_layers"] == official["tied_weights"]
    assert config["layers"] == official["num_layers"]
    assert config["documents"] == (2 if case == "retrieval_dual" else 1)
    assert config["tokenizer"] == "none"


@pytest.mark.parametrize(
    ("case", "cls"),
    [("r0_mean", "none"), ("clsvocab", "vocabulary"), ("clstoken_tied", "all_layers"), ("text_tiny", "last_layer")],
)
def test_the_kinds_of_cls(case: str, cls: str, tmp_path: Path) -> None:
    assert _converted("text_classifier", case, tmp_path)[0]["cls"] == cls


@pytest.mark.parametrize("case", _golden_cases("vil"))
def test_a_vil_keeps_every_number_but_its_buffers(case: str, tmp_path: Path) -> None:
    config, stored = _converted("vil", case, tmp_path)
    checkpoint, official = _golden("vil", case)
    net = checkpoint_file.read(checkpoint)["net"]
    kept = {name: value for name, value in net.items() if not name.endswith(_INDEX) and value.size > 0}
    _assert_same(stored, {name.removeprefix("module."): value for name, value in kept.items()})
    assert (config["stages"], config["image_size"]) == (official["arch"], official["img_size"])
    assert (config["embedding_norm"], config["average_pooling"]) == (official["norm_embed"], official["avg_pool"])
    assert config["preprocessing"]["crop_height"] == official["img_size"]


@pytest.mark.parametrize("case", _golden_cases("cvt"))
def test_a_cvt_keeps_every_number(case: str, tmp_path: Path) -> None:
    config, stored = _converted("cvt", case, tmp_path)
    checkpoint, names = _golden("cvt", case)
    _assert_same(stored, safetensors_file.read(checkpoint))
    assert (config["projection_ranks"], config["window_sizes"]) == (names["r"], names["w"])
    assert config["shared_dual_norm"] == names["dual_ln_shared_kv"]
    assert config["dynamic_projection_kernel"] == names["dyn_kernel"]


def test_what_is_left_out_of_a_checkpoint_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _converted("vil", "a0_f7_r8", tmp_path)
    assert "ignored entries of the checkpoint: arch, epoch, best_acc, optimizer, scheduler" in capsys.readouterr().out


def test_a_converted_config_can_be_given_back(tmp_path: Path) -> None:
    first, _ = _converted("cvt", "tiny_alt_flags", tmp_path)
    checkpoint, _ = _golden("cvt", "tiny_alt_flags")
    assert convert(checkpoint, "--config", tmp_path / "model" / "config.json", "--out", tmp_path / "again") == 0
    assert config_of(tmp_path / "again") == first


def test_single_fields_do_without_a_file(tmp_path: Path) -> None:
    checkpoint, _ = _golden("text_classifier", "text_tiny")
    fields = ["heads=2", "window_size=4", "cls=last_layer", "tokenizer=bytes_plus_one", "max_document_tokens=60"]
    options = [word for field in fields for word in ("--set", field)]
    assert convert(checkpoint, *options, "--out", tmp_path / "model") == 0
    config = config_of(tmp_path / "model")
    assert (config["heads"], config["layers"], config["projection_rank"]) == (2, 2, 8)
    assert (config["tokenizer"], config["max_document_tokens"]) == ("bytes_plus_one", 60)


def _zeros(shapes: dict[str, tuple[int, ...]]) -> dict[str, NDArray]:
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


def _lra(rank: int = 32, documents: int = 1) -> dict[str, NDArray]:
    """The state dict of the published ListOps model."""
    fields = load_preset("lra-listops") | {"projection_rank": rank, "documents": documents}
    return _zeros(text_classifier.tensor_shapes(Fields(fields)))


def _vil(stages: str = _SMALL_VIL) -> dict[str, NDArray]:
    """A state dict with the buffers that the official code stores."""
    parsed = vil.parse_stages(stages, 16, 3)
    state = _zeros(vil.tensor_shapes(Fields({"classes": 2, "embedding_norm": True}), parsed))
    return state | {
        "layer1.1.attn.relative_position_index": _naive_window_index(2),
        "layer3.1.attn.relative_position_index": _naive_full_index(2),
    }


def _naive_window_index(w: int) -> NDArray[np.int64]:
    """As the rule says, offset by offset."""
    p = w // 2
    keys = [(row, column) for row in range(-p, w + p) for column in range(-p, w + p)]
    queries = [(row, column) for row in range(w) for column in range(w)]
    return np.array(
        [[(qr - kr + p + w - 1) * (2 * p + w) + (qc - kc + p + w - 1) for kr, kc in keys] for qr, qc in queries]
    )


def _naive_full_index(n: int) -> NDArray[np.int64]:
    places = [(row, column) for row in range(n) for column in range(n)]
    return np.array([[(qr - kr + n - 1) * (2 * n - 1) + (qc - kc + n - 1) for kr, kc in places] for qr, qc in places])


def _save_lra(directory: Path, state: dict[str, Any]) -> Path:
    checkpoint_file.write(directory / "listops.model", {"model_state_dict": state})
    return directory / "listops.model"


def _save_vil(directory: Path, state: dict[str, Any]) -> Path:
    checkpoint_file.write(directory / "vil.pth", {"net": state, "arch": "msvit"})
    return directory / "vil.pth"


_LRA = ("--preset", "lra-listops", "--set", "tokenizer=none")
_VIL = ("--set", f"stages={_SMALL_VIL}", "--set", "image_size=16")


@pytest.mark.parametrize("more", [{}, {"layer1.1.attn.seen": np.array(3)}, {"epochs.done": np.ones((2, 2), np.int64)}])
def test_both_formats_have_buffers_of_integers(more: dict[str, NDArray], tmp_path: Path) -> None:
    state = _vil() | more
    _save_vil(tmp_path, state)
    safetensors_file.write(tmp_path / "vil.safetensors", state)
    for suffix in ("pth", "safetensors"):
        assert convert(tmp_path / f"vil.{suffix}", *_VIL, "--out", tmp_path / suffix) == 0
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "pth" / file).read_bytes() == (tmp_path / "safetensors" / file).read_bytes()


def test_weights_in_a_type_of_integers_are_refused_by_both_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = _vil() | {"norm.weight": np.zeros(8, np.int64)}
    _save_vil(tmp_path, state)
    safetensors_file.write(tmp_path / "vil.safetensors", state)
    for suffix in ("pth", "safetensors"):
        assert convert(tmp_path / f"vil.{suffix}", *_VIL, "--out", tmp_path / suffix) == 2
        assert "norm.weight has type int64" in capsys.readouterr().err


@pytest.mark.parametrize("window", [1, 2, 5, 7, 8])
def test_the_index_of_window_biases_is_the_rules(window: int) -> None:
    assert np.array_equal(vil.window_bias_index(window), _naive_window_index(window))


@pytest.mark.parametrize("side", [1, 2, 7])
def test_the_index_of_full_biases_is_the_rules(side: int) -> None:
    assert np.array_equal(vil.full_bias_index(side), _naive_full_index(side))


def test_a_preset_gives_what_the_tensors_do_not_say(tmp_path: Path) -> None:
    (tmp_path / "tokens.txt").write_text("0\n1\nMAX\n")
    (tmp_path / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)))
    options = ["--vocabulary", tmp_path / "tokens.txt", "--labels", tmp_path / "labels.txt", "--preset", "lra-listops"]
    assert convert(_save_lra(tmp_path, _lra()), *options, "--out", tmp_path / "model") == 0
    assert config_of(tmp_path / "model") == load_preset("lra-listops")
    assert (tmp_path / "model" / "vocabulary.txt").read_text() == "0\n1\nMAX\n"
    assert (tmp_path / "model" / "labels.txt").read_text().startswith("0\n1\n")


def test_a_field_of_a_preset_can_be_overridden(tmp_path: Path) -> None:
    options = [*_LRA, "--set", "projection_rank=2", "--set", "window_size=16"]
    assert convert(_save_lra(tmp_path, _lra(rank=2)), *options, "--out", tmp_path / "model") == 0
    config = config_of(tmp_path / "model")
    assert (config["projection_rank"], config["window_size"]) == (2, 16)


def test_the_prefix_of_distributed_training_is_taken_off(tmp_path: Path) -> None:
    state = {f"module.{name}": values for name, values in _lra().items()}
    assert convert(_save_lra(tmp_path, state), *_LRA, "--out", tmp_path / "model") == 0
    assert set(safetensors_file.read(tmp_path / "model" / "model.safetensors")) == set(_lra())


def test_a_prefix_that_not_all_have_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = {name if name == "head.bias" else f"module.{name}": values for name, values in _vil().items()}
    message = refusal(capsys, tmp_path / "model", _save_vil(tmp_path, state), *_VIL)
    assert "tensor 'head.bias' is unknown" in message
    assert "begin with 'module.'" in message


def test_a_vil_comes_with_or_without_its_buffers(tmp_path: Path) -> None:
    without = {name: values for name, values in _vil().items() if not name.endswith(_INDEX)}
    for name, state in (("with", _vil()), ("without", without)):
        assert convert(_save_vil(tmp_path, state), *_VIL, "--out", tmp_path / name) == 0
    assert (tmp_path / "with" / "config.json").read_bytes() == (tmp_path / "without" / "config.json").read_bytes()
    stored = safetensors_file.read(tmp_path / "with" / "model.safetensors")
    assert "layer2.0.cls_pos_embed" not in stored  # no elements: the stage has no global token
    assert set(stored) == set(without) - {"layer2.0.cls_pos_embed"}


def _without(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: values for key, values in state.items() if key != name}


_NORM = "model.transformer_1.norm2.weight"
_PIXELS = ("--set", "tokenizer=pixels", "--set", 'preprocessing={"height": 8, "width": 8}')


@pytest.mark.parametrize(
    ("state", "options", "words"),
    [
        (_without(_lra(), _NORM), _LRA, [_NORM, "missing"]),
        (_lra() | {"model.extra": np.zeros(2, np.float32)}, _LRA, ["model.extra", "unknown"]),
        (_lra() | {_NORM: np.zeros(3, np.float32)}, _LRA, [_NORM, "[3]", "[64]"]),
        (_lra() | {_NORM: np.zeros(64, np.float64)}, _LRA, [_NORM, "float64"]),
        (_lra() | {_NORM: "text"}, _LRA, [_NORM, "str", "not a tensor"]),
        (_without(_lra(), "model.cls_embed"), _LRA, ["cls is 'last_layer'", "model.cls_embed"]),
        (_lra(), (*_LRA, "--set", "cls=none"), ["cls is 'none'", "model.cls_embed"]),
        (_lra(), (*_LRA, "--set", "layers=3"), ["layers is 3", "it is 2"]),
        (_lra(rank=2), _LRA, ["projection_rank is 32", "it is 2"]),
        (_lra(), (*_LRA, "--set", "heads=3"), ["heads is 3", "64"]),
        (_lra(), (*_LRA, "--set", "heads=two"), ["heads is 'two'"]),
        (_lra(), (*_LRA, "--set", "window_size=-1"), ["window_size is -1"]),
        (_lra(), (*_LRA, "--set", "pooled_length=9"), ["pooled_length", "'last_layer'"]),
        (_lra(), (*_LRA, "--set", "tokenizer=words"), ["tokenizer is 'words'", "bytes_plus_one"]),
        (_lra(), (*_LRA, "--set", "tokenizer=pixels"), ["preprocessing", "pixels"]),
        (_lra(documents=2), (*_LRA, *_PIXELS, "--set", "documents=2"), ["documents is 2", "pixels"]),
        (_lra(), (*_LRA, "--set", "depth=3"), ["'depth' is unknown", "layers"]),
        (_lra(), (*_LRA, "--set", "layers"), ["--set layers is not NAME=VALUE"]),
        (
            _lra(),
            (*_LRA, "--set", "preprocessing.height=32"),
            ["--set preprocessing.height=32", """--set 'preprocessing={"height": 32, ...}'"""],
        ),
        (_lra(), ("--set", "heads=2"), ["window_size", "--preset"]),
        (_lra(), ("--preset", "lra-listops"), ["listops_2020", "needs --vocabulary"]),
        (_lra(), ("--preset", "lra-lists"), ["'lra-lists' is unknown", "lra-listops"]),
        (_lra(), ("--preset", "vil-ls-base-224"), ["preset vil-ls-base-224", "'vil'", "text_classifier"]),
        (_lra(), (*_LRA, "--segment-length", "8"), ["--segment-length", "classifier"]),
        (_lra(), (*_LRA, "--mem-len", "8"), ["--mem-len", "classifier"]),
        ([1, 2], _LRA, ["model_state_dict", "list"]),
    ],
)
def test_what_does_not_fit_a_text_classifier_is_refused_by_name(
    state: Any, options: tuple[str, ...], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refusal(capsys, tmp_path / "model", _save_lra(tmp_path, state), *options)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("official", "words"),
    [
        ({"num_heads": 2}, ["hyperparameters.json", "'num_heads' is unknown"]),
        ({"attn_type": "softmax"}, ["attn_type is 'softmax'"]),
        ({"embedding_dim": 64, "transformer_dim": 32}, ["transformer_dim is 32"]),
        ({"embedding_dim": 64, "num_head": 2, "head_dim": 16}, ["num_head 2 * head_dim 16", "64"]),
        ({"pooling_mode": "MAX"}, ["pooling_mode is 'MAX'"]),
        ({"pooling_mode": "CLS", "cls_token": True}, ["pooling_mode CLS", "cls_token"]),
        ([1], ["hyperparameters.json", "not a JSON object"]),
        ({"architecture": "cvt"}, ["hyperparameters.json", "'cvt'"]),
    ],
)
def test_official_hyperparameters_that_contradict_each_other_are_refused(
    official: object, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path / "hyperparameters.json", official)
    message = refusal(capsys, tmp_path / "model", _save_lra(tmp_path, _lra()), "--config", path)
    for word in words:
        assert word in message


def _stages(change: Callable[[str], str]) -> tuple[str, ...]:
    return ("--set", f"stages={change(_SMALL_VIL)}", "--set", "image_size=16")


@pytest.mark.parametrize(
    ("state", "options", "words"),
    [
        (
            _vil() | {"layer1.1.attn.relative_position_index": _naive_window_index(2) + 1},
            _VIL,
            ["buffer layer1.1.attn.relative_position_index"],
        ),
        (
            _vil() | {"layer3.1.attn.relative_position_index": _naive_full_index(3)},
            _VIL,
            ["buffer layer3.1.attn.relative_position_index", "[9, 9]", "[4, 4]"],
        ),
        (_vil() | {"layer2.1.attn.bias_table": np.zeros((2, 2), np.float32)}, _VIL, ["layer2.1", "unknown"]),
        (_vil(), _stages(lambda text: text.replace("f2,a0", "f4,a0")), ["layer1.1.attn", "relative_position_index"]),
        (_vil(), _stages(lambda text: text.replace("r1", "r2")), ["to_dynamic_projection", "[2, 4]", "[4, 4]"]),
        (_vil(), _stages(lambda text: text.replace("l2", "l5")), ["stages", "'l5", "position 2"]),
        (_vil(), _stages(lambda text: text.replace("h2", "x2")), ["stages", "'x2'"]),
        (_vil(), _stages(lambda text: text.replace("h2", "h3")), ["not a multiple of h"]),
        (_vil(), _stages(lambda text: text + "_l4,p1_l5,p1"), ["5 stages"]),
        (_vil(), _stages(lambda text: text.replace("p2", "p20")), ["patches of 20"]),
        (_vil(), ("--set", "image_size=16"), ["field stages", "--preset"]),
        (_vil(), (*_VIL, "--set", "average_pooling=1"), ["average_pooling is 1"]),
        (_vil(), (*_VIL, "--set", "embedding_norm=false"), ["embedding_norm is False", "True"]),
    ],
)
def test_what_does_not_fit_a_vil_is_refused_by_name(
    state: Any, options: tuple[str, ...], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refusal(capsys, tmp_path / "model", _save_vil(tmp_path, state), *options)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": [1, 2]}, ["stage_heads is [1, 2]", "3 integers"]),
        ({"heads": [1, 2, 7]}, ["stage_heads", "7 does not divide"]),
        ({"w": [4, 0, 2]}, ["window_sizes is [4, 0, 2]"]),
        ({"r": [8, 4, 3]}, ["projection_ranks is [8, 4, 3]", "[8, 4, 2]"]),
        ({"dual_ln_shared_kv": True}, ["shared_dual_norm is True", "False"]),
        ({"bn_eps": 0}, ["batch_norm_epsilon is 0"]),
        ({"depth": 1}, ["'depth' is unknown"]),
    ],
)
def test_what_does_not_fit_a_cvt_is_refused_by_name(
    change: dict[str, Any], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, names = _golden("cvt", "tiny_alt_flags")
    path = _write(tmp_path / "hyperparameters.json", names | change)
    message = refusal(capsys, tmp_path / "model", checkpoint, "--config", path)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ((1 << 40).to_bytes(8, "little") + b"{", ["header too large"]),
        ((9).to_bytes(8, "little") + b"{not json", ["invalid JSON in header"]),
        ((200_005).to_bytes(8, "little") + b'{"a":' + b"[" * 200_000, ["invalid JSON in header"]),
        (
            (62).to_bytes(8, "little") + b'{"stages":{"dtype":"F32","shape":[2],"data_offsets":[0, 800]}}',
            ["invalid shape, data type, or offset"],
        ),
        (
            (62).to_bytes(8, "little") + b'{"stages":{"dtype":"F31","shape":[2],"data_offsets":[0, 800]}}',
            ["F31", "invalid JSON in header"],
        ),
    ],
)
def test_a_broken_safetensors_file_is_refused(
    content: bytes, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weights.safetensors").write_bytes(content)
    message = refusal(capsys, tmp_path / "model", tmp_path / "weights.safetensors", "--preset", "cvt-ls-13-224")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ("", ["no token"]),
        ("0\n[MAX 1\n", ["line 2", "white space"]),
        ("0\n\n1\n", ["line 2 is empty"]),
        ("0\n1\n0\n", ["line 3", "already on line 1"]),
        (b"\xff\n", ["not UTF-8"]),
    ],
)
def test_wrong_tokens_are_refused(
    tokens: str | bytes, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tokens.txt").write_bytes(tokens if isinstance(tokens, bytes) else tokens.encode())
    options = ["--preset", "lra-listops", "--vocabulary", tmp_path / "tokens.txt"]
    message = refusal(capsys, tmp_path / "model", _save_lra(tmp_path, _lra()), *options)
    for word in ["tokens.txt", *words]:
        assert word in message


def test_labels_are_as_many_as_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels.txt").write_text("even\nodd\n")
    options = [*_LRA, "--labels", tmp_path / "labels.txt"]
    message = refusal(capsys, tmp_path / "model", _save_lra(tmp_path, _lra()), *options)
    assert "2 labels" in message
    assert "10 classes" in message


def test_there_is_a_preset_for_each_published_model() -> None:
    assert preset_names() == [
        "cvt-ls-13-224",
        "cvt-ls-17-224",
        "cvt-ls-21-224",
        "cvt-ls-21-384",
        "cvt-ls-21-448",
        "cvt-ls-21s-224",
        "lra-listops",
        "lra-retrieval",
        "lra-text",
        "vil-ls-base-224",
        "vil-ls-medium-224",
        "vil-ls-medium-384",
    ]
    with pytest.raises(ConvertError, match="'../config' is unknown"):
        load_preset("../config")
