"""Checkpoints become model directories: what is in them, and what is refused."""

from __future__ import annotations

import fractions
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from longshort_convert.__main__ import main
from reference import checkpoint_file, safetensors_file

from models.convert import made_up
from models.convert.converting import config_of, convert, refusal

_GOLDEN = Path(__file__).parents[2] / "golden" / "language_model"
_GOLDEN_CASES = sorted(path.parent.name for path in _GOLDEN.glob("*/weights.pt"))


def test_there_are_golden_checkpoints() -> None:
    assert {"a_tiny", "b_medium", "d3_fp16ckpt"} <= set(_GOLDEN_CASES)


@pytest.mark.parametrize("case", _GOLDEN_CASES)
def test_a_golden_checkpoint_keeps_every_number_and_its_type(case: str, tmp_path: Path) -> None:
    official = json.loads((_GOLDEN / case / "config.json").read_text())
    assert convert(_GOLDEN / case / "weights.pt", "--out", tmp_path / "model") == 0
    config = config_of(tmp_path / "model")
    assert config == {
        "architecture": "language_model",
        "layers": official["n_layer"],
        "model_width": official["d_model"],
        "heads": official["n_head"],
        "feed_forward_width": official["d_inner"],
        "chunk_size": official["chunk_size"],
        "chunk_rank": official["chunk_rank"],
        "window_length": official["window_len"],
        "memory_length": official["mem_len"],
        "segment_length": 256,
        "vocabulary_size": official["vocab_size"],
        "window_position_clamp": max(official["clamp_len"], 0),
        "chunk_position_clamp": max(official["cpos_clamp_len"], 0),
        "pre_layer_norm": official["pre_ln"],
        "projection_bias": official["use_bias"],
        "activation": "gelu" if official["use_gelu"] else "relu",
        "tokenizer": "none",
    }
    state = checkpoint_file.read(_GOLDEN / case / "weights.pt")["model"]
    stored = safetensors_file.read(tmp_path / "model" / "model.safetensors")
    assert len(stored) == len(state) - 1  # the tied output embedding is not stored
    for name, values in stored.items():
        original = state[f"decoder.model.{name}"]
        assert values.dtype == original.dtype == np.dtype(official["weights_dtype"])
        assert np.array_equal(values, original.reshape(values.shape)), name
        if original.ndim > 2:
            assert values.shape == (official["n_head"], official["d_model"] // official["n_head"])
        else:
            assert values.shape == original.shape


@pytest.mark.parametrize("style", [made_up.cfg_style, made_up.args_style])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_both_styles_and_precisions_give_the_same_model(
    style: Callable[..., dict[str, Any]], dtype: str, tmp_path: Path
) -> None:
    state = made_up.state_dict(dtype)
    path = made_up.save(tmp_path, style(state=state))
    assert convert(path, "--segment-length", 8, "--mem-len", 32, "--out", tmp_path / "model") == 0
    config = config_of(tmp_path / "model")
    assert (config["segment_length"], config["memory_length"]) == (8, 32)
    assert (config["chunk_rank"], config["window_length"], config["chunk_position_clamp"]) == (3, 6, 5)
    assert (config["pre_layer_norm"], config["projection_bias"], config["activation"]) == (False, True, "relu")
    assert config["vocabulary_size"] == made_up.VOCABULARY_SIZE  # not vocab_size, which is a meaningless default
    stored = safetensors_file.read(tmp_path / "model" / "model.safetensors")
    assert {f"decoder.model.{name}" for name in stored} == set(state) - {"decoder.model.out_emb.weight"}
    for name, values in stored.items():
        assert values.dtype == np.dtype(dtype)
        assert np.array_equal(values, state[f"decoder.model.{name}"].reshape(values.shape)), name


def test_hyperparameters_of_omegaconf_are_read(tmp_path: Path) -> None:
    """The file is from write_dict_config.py there, with omegaconf 2.0.6."""
    saved = Path(__file__).parent / "torch_saved/dict_config.pt"
    for name, checkpoint in (("saved", saved), ("plain", made_up.save(tmp_path, made_up.cfg_style()))):
        assert convert(checkpoint, "--out", tmp_path / name) == 0
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "saved" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()


@pytest.mark.parametrize("protocol", [2, 4])
def test_hyperparameters_may_be_numbers_of_numpy(protocol: int, tmp_path: Path) -> None:
    numpy_types: dict[type, type] = {int: np.int64, bool: np.bool_, float: np.float32}
    fields = {name: numpy_types[type(value)](value) for name, value in made_up.FIELDS.items()}
    fields |= {"mem_len": np.uint16(16), "clamp_len": np.array(-1, ">i4")[()]}
    for name, checkpoint in (("numpy", made_up.args_style(fields)), ("plain", made_up.args_style())):
        checkpoint_file.write(tmp_path / f"{name}.pt", checkpoint, protocol=protocol)
        assert convert(tmp_path / f"{name}.pt", "--out", tmp_path / name) == 0
    assert (tmp_path / "numpy/config.json").read_bytes() == (tmp_path / "plain/config.json").read_bytes()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.float64(8.0), "d_model is 8.0, not an integer"),
        (np.str_("8"), "d_model is <an object of type numpy.scalar>, not an integer"),
        (np.dtype("f8"), "d_model is <numpy's type f8>, not an integer"),
        (fractions.Fraction(8), "d_model is <an object of type fractions.Fraction>, not an integer"),
    ],
)
def test_a_hyperparameter_of_another_type_is_named_as_what_it_is(
    value: object, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made_up.save(tmp_path, made_up.cfg_style(made_up.FIELDS | {"d_model": value}))
    assert convert(path, "--out", tmp_path / "model") == 2
    assert words in capsys.readouterr().err


def test_every_file_can_be_read_by_the_servers_user(tmp_path: Path) -> None:
    assert convert(made_up.save(tmp_path, made_up.cfg_style()), "--out", tmp_path / "model") == 0
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "model").iterdir()}
    assert "model.safetensors" in modes
    assert set(modes.values()) == {modes["config.json"]}


def test_the_memory_is_the_checkpoints_by_default(tmp_path: Path) -> None:
    assert convert(made_up.save(tmp_path, made_up.cfg_style()), "--out", tmp_path / "model") == 0
    assert config_of(tmp_path / "model")["memory_length"] == made_up.FIELDS["mem_len"]


@pytest.mark.parametrize(
    ("dictionary", "tokenizer"),
    [
        ("101 5\n32 4\n0 1\nmadeupword0000 0\n", "fairseq_bytes"),
        ("_ 9\ne 5\né 2\nmadeupword0000 0\n", "fairseq_characters"),
        ("1 9\n2 5\n", "fairseq_bytes"),
    ],
)
def test_the_tokenizer_is_what_the_symbols_show(dictionary: str, tokenizer: str, tmp_path: Path) -> None:
    (tmp_path / "dict.txt").write_text(dictionary, encoding="utf-8")
    path = made_up.save(tmp_path, made_up.cfg_style())
    assert convert(path, "--vocabulary", tmp_path / "dict.txt", "--out", tmp_path / "model") == 0
    assert config_of(tmp_path / "model")["tokenizer"] == tokenizer
    assert (tmp_path / "model" / "vocabulary.txt").read_text(encoding="utf-8") == dictionary


def test_the_tokenizer_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "dict.txt").write_text("1 9\n2 5\n")
    path = made_up.save(tmp_path, made_up.cfg_style())
    arguments = ["--vocabulary", tmp_path / "dict.txt", "--tokenizer", "fairseq_characters"]
    assert convert(path, *arguments, "--out", tmp_path / "model") == 0
    assert config_of(tmp_path / "model")["tokenizer"] == "fairseq_characters"


@pytest.mark.parametrize(
    ("dictionary", "words"),
    [
        ("101 5\n10 4\n", ["line 2", "newline"]),
        ("101 5\nab 4\n", ["line 2", "neither bytes"]),
        ("101 5\n256 4\n", ["line 2", "'256'"]),
        ("101 5\n101 4\n", ["line 2", "already on line 1"]),
        ("101\n", ["line 1", "symbol count"]),
        ("101 5\n\n", ["line 2", "symbol count"]),
        ("101 5 #fairseq:overwrite\n", ["line 1", "overwrite"]),
        ("".join(f"{byte} 1\n" for byte in range(20, 26)), ["4 + 6 symbols", "9 embedding rows"]),
        (b"\xff 5\n", ["not UTF-8"]),
    ],
)
def test_a_wrong_vocabulary_is_refused(
    dictionary: str | bytes, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dict.txt").write_bytes(dictionary if isinstance(dictionary, bytes) else dictionary.encode())
    path = made_up.save(tmp_path, made_up.cfg_style())
    message = refusal(capsys, tmp_path / "model", path, "--vocabulary", tmp_path / "dict.txt")
    for word in ["dict.txt", *words]:
        assert word in message


def _spoil_state(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    state = made_up.state_dict()
    change(state)
    return made_up.cfg_style(state=state)


def _with_fields(**fields: Any) -> dict[str, Any]:
    return made_up.cfg_style(made_up.FIELDS | fields)


def _without_field(name: str) -> dict[str, Any]:
    return made_up.cfg_style({key: value for key, value in made_up.FIELDS.items() if key != name})


_NORM = "decoder.model.layers.1.norm2.weight"
_NOT_FINITE = np.array([1, 2, np.inf, 4, 5, 6, 7, np.nan], np.float32)
_TIED = "decoder.model.out_emb.weight"


@pytest.mark.parametrize(
    ("checkpoint", "words"),
    [
        (_spoil_state(lambda state: state.pop(_NORM)), [_NORM, "missing"]),
        (
            _spoil_state(lambda state: state.update({"decoder.model.layers.2.x": np.zeros(3)})),
            ["layers.2.x", "unknown"],
        ),
        (_spoil_state(lambda state: state.update({"encoder.x": np.zeros(3)})), ["encoder.x", "unknown"]),
        (_spoil_state(lambda state: state.update({_NORM: np.zeros(7, np.float32)})), [_NORM, "[7]", "[8]"]),
        (_spoil_state(lambda state: state.update({_NORM: np.zeros(8, np.int64)})), [_NORM, "int64"]),
        (_spoil_state(lambda state: state.update({_NORM: np.zeros(8, np.float64)})), [_NORM, "float64"]),
        *(
            (
                _spoil_state(lambda state, values=values: state.update({_NORM: values})),
                [_NORM, "2 values that are infinite or not a number"],
            )
            for values in (_NOT_FINITE, _NOT_FINITE.astype(np.float16))
        ),
        (_spoil_state(lambda state: state.update({_NORM: "text"})), [_NORM, "str", "not a tensor"]),
        (_spoil_state(lambda state: state.update({_TIED: state[_TIED] + 1})), [_TIED, "tied"]),
        (_spoil_state(lambda state: state.update({_TIED: state[_TIED].astype(np.float16)})), [_TIED, "tied"]),
        (_with_fields(_name="transformer_lm"), ["_name", "'transformer_lm'"]),
        (_with_fields(adaptive_input=True), ["adaptive_input", "unknown"]),
        (_with_fields(use_bias=False), ["bias", "unknown"]),
        (_with_fields(n_layer=3), ["layers.2", "missing"]),
        (_with_fields(n_layer=10**12), ["n_layer is 1000000000000"]),
        (_with_fields(n_layer=0), ["n_layer is 0"]),
        (_with_fields(n_layer="2"), ["n_layer is '2'"]),
        (_with_fields(n_layer=True), ["n_layer is True"]),
        (_with_fields(pre_ln=1), ["pre_ln is 1"]),
        (_with_fields(n_head=3), ["d_model 8", "n_head 3"]),
        (_with_fields(mem_len=18), ["mem_len 18", "chunk_size 4"]),
        (_with_fields(mem_len=4), ["mem_len 4", "window_len 6"]),
        (_without_field("window_len"), ["window_len is missing"]),
        ({"args": None, "cfg": None, "model": made_up.state_dict()}, ["neither cfg", "nor args"]),
        ({"cfg": made_up.cfg_style()["cfg"]}, ["no dict of tensors", "cfg"]),
        ({"cfg": {"model": 3}, "model": made_up.state_dict()}, ['cfg["model"]', "int"]),
        ([1, 2], ["the checkpoint", "list"]),
    ],
)
def test_what_is_not_known_is_refused_by_name(
    checkpoint: object, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refusal(capsys, tmp_path / "model", made_up.save(tmp_path, checkpoint))
    for word in words:
        assert word in message


def test_another_architecture_in_args_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = made_up.args_style()
    checkpoint["args"].arch = "transformer_lm_gbw"
    message = refusal(capsys, tmp_path / "model", made_up.save(tmp_path, checkpoint))
    assert "'transformer_lm_gbw'" in message


def test_a_segment_that_is_no_multiple_of_the_chunk_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made_up.save(tmp_path, made_up.cfg_style())
    assert "segment length 10" in refusal(capsys, tmp_path / "model", path, "--segment-length", 10)


def test_a_directory_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_up.save(tmp_path, made_up.cfg_style())
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes").write_text("mine")
    assert "already exists" in refusal(capsys, tmp_path / "model", path)
    assert (tmp_path / "model" / "notes").read_text() == "mine"


def test_a_tokenizer_needs_a_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_up.save(tmp_path, made_up.cfg_style())
    assert "needs --vocabulary" in refusal(capsys, tmp_path / "model", path, "--tokenizer", "fairseq_bytes")


@pytest.mark.parametrize("arguments", [[], ["checkpoint.pt"], ["checkpoint.pt", "--out", "x", "--mem-len", "0"]])
def test_wrong_usage_has_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_the_command_runs_as_documented(tmp_path: Path) -> None:
    path = made_up.save(tmp_path, made_up.cfg_style())
    command = [sys.executable, "-m", "longshort_convert", path, "--out", tmp_path / "zoo" / "model" / "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "2 layers, width 8" in done.stdout
    files = sorted(file.name for file in (tmp_path / "zoo" / "model" / "1").iterdir())
    assert files == ["config.json", "model.safetensors"]
