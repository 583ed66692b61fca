"""The forms in which checkpoints come: nests, prefixes, pickles, shards, and files that are something else."""

from __future__ import annotations

import argparse
import collections
import datetime
import functools
import json
import os
import pathlib
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from longshort_convert.checkpoint import read_checkpoint
from longshort_convert.errors import ConvertError
from numpy.typing import NDArray
from reference import checkpoint_file, safetensors_file

from models.convert import made_up
from models.convert.converting import convert

_GOLDEN = Path(__file__).parents[2] / "golden"


class Family(NamedTuple):
    state: dict[str, NDArray[Any]]
    options: tuple[object, ...]


def _family(name: str) -> Family:
    """A small state dict with its official names, and the options that its conversion needs."""
    if name == "language_model":
        fields = "chunk_size=4 window_length=6 memory_length=16 window_position_clamp=0 chunk_position_clamp=5 "
        fields += "pre_layer_norm=false activation=relu"
        return Family(made_up.state_dict(), tuple(word for field in fields.split() for word in ("--set", field)))
    if name == "text_classifier":
        state = checkpoint_file.read(_GOLDEN / "text_classifier" / "text_tiny" / "weights.pt")["model_state_dict"]
        return Family(state, ("--set", "heads=2", "--set", "window_size=4", "--set", "cls=last_layer"))
    if name == "vil":
        folder = _GOLDEN / "vil" / "a1_f4_cls"
        net = checkpoint_file.read(folder / "weights.pt")["net"]
        arguments = json.loads((folder / "config.json").read_text())["model_args"]
        options = [
            f"--set={field}={arguments[name]}" for field, name in (("stages", "arch"), ("image_size", "img_size"))
        ]
        options.append(f"--set=average_pooling={json.dumps(arguments['avg_pool'])}")
        return Family({name.removeprefix("module."): value for name, value in net.items()}, tuple(options))
    folder = _GOLDEN / "cvt" / "tiny"
    official = json.loads((folder / "config.json").read_text())
    state = safetensors_file.read(folder / "weights.safetensors")
    options = [f"--set={field}={official[name]}" for field, name in (("stage_heads", "heads"), ("window_sizes", "w"))]
    options += [f"--set={field}={official[name]}" for field, name in _CVT_SETTINGS.items() if name in official]
    return Family(state, tuple(options))


_CVT_SETTINGS = {"embedding_strides": "embed_stride", "embedding_paddings": "embed_pad"}
_FAMILIES = ("language_model", "text_classifier", "vil", "cvt")


def _stored(out: Path) -> dict[str, NDArray[Any]]:
    return safetensors_file.read(out / "model.safetensors")


def _save(path: Path, content: Any) -> Path:
    checkpoint_file.write(path, content)
    return path


def _refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert convert(*arguments) == 2
    return capsys.readouterr().err


def _save_safetensors(path: Path, state: Mapping[str, NDArray[Any]]) -> Path:
    safetensors_file.write(path, {name: np.ascontiguousarray(values) for name, values in state.items()})
    return path


@pytest.fixture
def expected(request: pytest.FixtureRequest) -> dict[str, NDArray[Any]]:
    """What the family's plain state dict is converted to."""
    return _converted(request.param)


@functools.cache
def _converted(name: str) -> dict[str, NDArray[Any]]:
    family = _family(name)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "expected"
        assert convert(_save(Path(folder) / "plain.pt", family.state), *family.options, "--out", out) == 0
        return _stored(out)


def _assert_converted(path: Path, name: str, expected: Mapping[str, NDArray[Any]], *options: object) -> None:
    out = path.parent / "model"
    assert convert(path, *_family(name).options, *options, "--out", out) == 0
    stored = _stored(out)
    assert set(stored) == set(expected)
    assert all(np.array_equal(stored[tensor], expected[tensor]) for tensor in expected)


def _each_family(test: Callable[..., None]) -> Callable[..., None]:
    both = [(name, name) for name in _FAMILIES]
    return pytest.mark.parametrize(("name", "expected"), both, indirect=["expected"])(test)


@_each_family
@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.", "backbone.net."])
def test_a_prefix_is_removed(prefix: str, name: str, expected: dict, tmp_path: Path) -> None:
    state = {prefix + tensor: values for tensor, values in _family(name).state.items()}
    _assert_converted(_save(tmp_path / "c.pt", {"model": state}), name, expected)


@_each_family
def test_a_compiled_part_is_found(name: str, expected: dict, tmp_path: Path) -> None:
    parts = {tensor: tensor.partition(".") for tensor in _family(name).state}
    state = {f"{parts[t][0]}._orig_mod.{parts[t][2]}": values for t, values in _family(name).state.items()}
    _assert_converted(_save(tmp_path / "c.pt", state), name, expected)


@_each_family
@pytest.mark.parametrize(
    "nest",
    [
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": state, "optimizer": {"state": {0: {"exp_avg": np.zeros(3, np.float32)}}}},
        lambda state: {"ema": state},
        lambda state: {"model_ema": {"module": state}, "best": np.zeros((), np.float32)},
        lambda state: {
            "pytorch-lightning_version": "2.1",
            "state_dict": {f"model.{name}": values for name, values in state.items()},
            "hyper_parameters": {"lr": 1e-3},
        },
        lambda state: state | {"epoch": 3},
    ],
)
def test_weights_are_found_in_every_entry(nest: Callable, name: str, expected: dict, tmp_path: Path) -> None:
    _assert_converted(_save(tmp_path / "c.pt", nest(_family(name).state)), name, expected)


@pytest.mark.parametrize(("name", "expected"), [("vil", "vil")], indirect=["expected"])
def test_an_average_beside_the_weights_is_chosen_by_name(
    name: str, expected: dict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = _family(name).state
    other = {tensor: values + 1 if values.dtype == np.float32 else values for tensor, values in state.items()}
    path = _save(tmp_path / "c.pt", {"model": other, "model_ema": state})
    _assert_converted(path, name, expected, "--weights", "model_ema")
    assert "ignored entries of the checkpoint: model" in capsys.readouterr().out
    assert convert(path, *_family(name).options, "--out", tmp_path / "other") == 0
    assert "ignored entries of the checkpoint: model_ema" in capsys.readouterr().out
    assert np.array_equal(_stored(tmp_path / "other")["head.bias"], expected["head.bias"] + 1)

    together = {f"model.{tensor}": values for tensor, values in other.items()}
    together |= {f"model_ema.module.{tensor}": values for tensor, values in state.items()}
    path = _save(tmp_path / "d.pt", {"state_dict": together})
    options = [*_family(name).options, "--weights", "state_dict:model_ema.module", "--out", tmp_path / "together"]
    assert convert(path, *options) == 0
    assert np.array_equal(_stored(tmp_path / "together")["head.bias"], expected["head.bias"])

    path = _save(tmp_path / "e.pt", {"teacher": state, "student": other})
    message = _refused(capsys, path, *_family(name).options, "--out", tmp_path / "none")
    assert "choose with --weights: teacher, student" in message
    assert "--weights=swa" in _refused(capsys, path, "--weights", "swa", "--out", tmp_path / "none")


@_each_family
def test_weights_come_as_safetensors_and_in_shards(name: str, expected: dict, tmp_path: Path) -> None:
    state = {
        tensor: values for tensor, values in _family(name).state.items() if tensor != "decoder.model.out_emb.weight"
    }
    _assert_converted(_save_safetensors(tmp_path / "weights.safetensors", state), name, expected)

    names = list(state)
    halves = {"model-00001-of-00002.safetensors": names[:5], "model-00002-of-00002.safetensors": names[5:]}
    folder = tmp_path / "sharded"
    folder.mkdir()
    for file, tensors in halves.items():
        _save_safetensors(folder / file, {tensor: state[tensor] for tensor in tensors})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {tensor: file for file in halves for tensor in halves[file]}}))
    for number, path in enumerate((index, folder, folder / "model-00002-of-00002.safetensors")):
        out = tmp_path / f"model{number}"
        assert convert(path, *_family(name).options, "--out", out) == 0
        assert set(_stored(out)) == set(expected)


def test_a_broken_set_of_shards_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", tmp_path / "model")
    index = tmp_path / "model.safetensors.index.json"
    shard = _save_safetensors(tmp_path / "model-1-of-2.safetensors", {"a": np.zeros(2, np.float32)})
    assert "no *.index.json beside it names it" in _refused(capsys, shard, *out)
    for weight_map, words in [
        ({"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}, "model-2-of-2.safetensors: no such file"),
        ({"a": "model-1-of-2.safetensors", "b": "model-1-of-2.safetensors"}, "'b' is missing"),
        ({"b": "model-1-of-2.safetensors"}, "'a', which model.safetensors.index.json does not place there"),
        ({"a": "../model-1-of-2.safetensors"}, "is not the name of a file beside it"),
        ({}, "no weight_map"),
    ]:
        index.write_text(json.dumps({"weight_map": weight_map}))
        assert words in _refused(capsys, index, *out)
    assert "without model.safetensors.index.json" in _refused(capsys, _GOLDEN, *out)


@_each_family
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("write", [checkpoint_file.write, checkpoint_file.write_legacy])
def test_every_protocol_is_read(write: Callable, protocol: int, name: str, expected: dict, tmp_path: Path) -> None:
    write(tmp_path / "c.pt", {"model": _family(name).state}, protocol=protocol)
    _assert_converted(tmp_path / "c.pt", name, expected)


def test_every_cut_of_an_older_file_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "whole.pt"
    checkpoint_file.write_legacy(whole, {"a": np.arange(3, dtype=np.float32), "b": np.zeros(2, np.int64)})
    assert read_checkpoint(whole)["a"].read().tolist() == [0, 1, 2]
    content = whole.read_bytes()
    for length in range(len(content)):
        (tmp_path / "cut.pt").write_bytes(content[:length])
        with pytest.raises(ConvertError, match="cut.pt"):
            read_checkpoint(tmp_path / "cut.pt")


class _Hostile:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


class _Settings:
    """A user's own class."""

    def __init__(self) -> None:
        self.rate = 1e-3

    class Nested:
        pass


_VALUES = {
    "bytes": b"\x00\xff",
    "bytearray": bytearray(b"ab"),
    "set": {1, 2},
    "frozenset": frozenset([1]),
    "complex": 1 + 2j,
    "counter": collections.Counter("aab"),
    "ordered": collections.OrderedDict(a=1),
    "default": collections.defaultdict(list, a=[1]),
    "deque": collections.deque([1, 2]),
    "numpy scalar": np.float64(0.5),
    "numpy type": np.dtype("float32"),
    "path": pathlib.PurePosixPath("data/enwik8"),
    "windows path": pathlib.PureWindowsPath("c:\\data"),
    "namespace": argparse.Namespace(lr=0.1, data=pathlib.PurePosixPath("x")),
    "date": datetime.datetime(2021, 7, 5, tzinfo=datetime.UTC),
    "own class": _Settings(),
    "nested class": _Settings.Nested(),
    "type": _Settings,
    "huge": 1 << 4000,
}


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("value", _VALUES)
def test_values_beside_the_weights_are_skipped(value: str, protocol: int, tmp_path: Path) -> None:
    state = made_up.state_dict()
    checkpoint = made_up.cfg_style(state=state) | {"extra_state": {"value": _VALUES[value]}, "list": [_VALUES[value]]}
    checkpoint_file.write(tmp_path / "c.pt", checkpoint, protocol=protocol)
    assert convert(tmp_path / "c.pt", "--out", tmp_path / "model") == 0
    assert np.array_equal(_stored(tmp_path / "model")["in_emb.weight"], state["decoder.model.in_emb.weight"])


def test_names_of_libraries_that_are_not_there_are_skipped(tmp_path: Path) -> None:
    for number, pickled in enumerate(
        [
            b"comegaconf.dictconfig\nDictConfig\n)\x81}X\x08\x00\x00\x00_contentNsb.",
            b"comegaconf.base\nContainerMetadata\n(NNtR}X\x01\x00\x00\x00aNsb.",
            b"ctorch\ndevice\nX\x03\x00\x00\x00cpu\x85R.",
            b"ctorch\nfloat16\n.",
            b"ctorch\nSize\n(K\x01K\x02t\x85R.",
            b"ceasydict\nEasyDict\n)\x81X\x01\x00\x00\x00aK\x01s.",
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85X\x01\x00\x00\x00btRK\x01b.",
            b"cmy.module\nList\n)\x81K\x01aK\x02a.",
        ]
    ):
        path = tmp_path / f"{number}.pt"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/data.pkl", b"\x80\x02" + pickled)
        read_checkpoint(path)


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_names_the_system_is_refused_and_never_run(protocol: int, tmp_path: Path) -> None:
    trace = tmp_path / "was-here"
    checkpoint_file.write(tmp_path / "c.pt", {"model": made_up.state_dict(), "x": _Hostile(trace)}, protocol=protocol)
    with pytest.raises(ConvertError, match="mkdir, which the converter does not run"):
        read_checkpoint(tmp_path / "c.pt")
    with (tmp_path / "plain.pt").open("wb") as file:
        pickle.dump(_Hostile(trace), file, protocol=protocol)
    with pytest.raises(ConvertError, match=r"plain\.pt"):
        read_checkpoint(tmp_path / "plain.pt")
    assert not trace.exists()


_OTHER_FILES = {
    b"": "is empty",
    b"\n<!DOCTYPE html>\n<html><head><title>Google Drive - Virus scan warning</title>": "HTML page ('Google Drive",
    b"\xef\xbb\xbf<HTML><body>Not found": "HTML page",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 133792312\n": "pointer of a file of 133,792,312",
    b"/annex/objects/SHA256E-s12--00\n": "git annex get",
    b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>': "server's error message",
    b"\x1f\x8b\x08\x00": "compressed",
}


@pytest.mark.parametrize("content", _OTHER_FILES)
@pytest.mark.parametrize("file", ["c.pt", "model.safetensors", "labels.txt", "dict.txt", "config.json"])
def test_files_that_are_something_else_are_named(
    content: bytes, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).write_bytes(content)
    out = ("--out", tmp_path / "model")
    good = _save(tmp_path / "good.pt", {"model": _family("text_classifier").state})
    arguments = {
        "labels.txt": (good, *_family("text_classifier").options, "--labels", tmp_path / file),
        "config.json": (good, "--config", tmp_path / file),
        "dict.txt": (made_up.save(tmp_path, made_up.cfg_style()), "--vocabulary", tmp_path / file),
    }.get(file, (tmp_path / file,))
    if content == b"" and file == "dict.txt":
        return  # a dictionary of madeupwords alone may be empty
    message = _refused(capsys, *arguments, *out)
    assert file in message
    if content or file not in ("labels.txt", "config.json"):
        assert _OTHER_FILES[content] in message


_BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("start", [b"", _BOM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_texts_of_windows_are_read(start: bytes, end: bytes, last: bool, tmp_path: Path) -> None:
    def text(name: str, *lines: str) -> Path:
        content = start + end.join(line.encode() for line in lines) + (end if last else b"")
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    family = _family("text_classifier")
    path = _save(tmp_path / "c.pt", family.state)
    config = text("hyperparameters.json", '{"architecture": "text_classifier",', ' "heads": 2}')
    labels = text("labels.txt", "négatif", "positif")
    options = [*family.options, "--config", config, "--labels", labels, "--out", tmp_path / "classifier"]
    assert convert(path, *options) == 0
    assert (tmp_path / "classifier" / "labels.txt").read_bytes().rstrip(b"\n") == "négatif\npositif".encode()

    dictionary = text("dict.txt", "101 5", "32 4")
    path = made_up.save(tmp_path, made_up.cfg_style())
    assert convert(path, "--vocabulary", dictionary, "--out", tmp_path / "model") == 0
    assert (tmp_path / "model" / "vocabulary.txt").read_bytes().rstrip(b"\n") == b"101 5\n32 4"

    tokens = text("tokens.txt", "0", "[MAX")
    path = _save(tmp_path / "listops.pt", family.state)
    options = [
        *family.options,
        "--set",
        "tokenizer=listops_2020",
        "--vocabulary",
        tokens,
        "--out",
        tmp_path / "listops",
    ]
    assert convert(path, *options) == 0
    assert (tmp_path / "listops" / "vocabulary.txt").read_bytes().rstrip(b"\n") == b"0\n[MAX"


def test_texts_in_other_encodings_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    family = _family("text_classifier")
    path = _save(tmp_path / "c.pt", family.state)
    for content, words in [
        ("neg\npos\n".encode("utf-16"), "UTF-16"),
        (b"neg\rpos\r", "carriage return"),
        (b"n\xe9g\npos\n", "not UTF-8 at byte 1"),
    ]:
        (tmp_path / "labels.txt").write_bytes(content)
        arguments = [path, *family.options, "--labels", tmp_path / "labels.txt", "--out", tmp_path / "model"]
        assert words in _refused(capsys, *arguments)
