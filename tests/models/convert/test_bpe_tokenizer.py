"""The tokenizer.json of a converted RoBERTa: kept as it is, or made of older files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import roberta
from tokenizers import Tokenizer

from models.convert.converting import convert, refusal
from models.tokenizer import tokenizer_files

_TEXTS = Path(__file__).parents[2] / "golden/text_classifier/roberta_texts"
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def _golden() -> dict[str, Any]:
    """What transformers saved."""
    return json.loads((_TEXTS / "tokenizer.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A RoBERTa without tokenizer."""
    model = roberta.config(vocab_size=420, hidden_size=6)
    return roberta.write_folder(tmp_path / "roberta", model, roberta.weights(model, np.random.default_rng(5)))


def _write_older(folder: Path, vocabulary: dict[str, int], tokens: str, merges: str) -> None:
    (folder / tokens).write_text(json.dumps(vocabulary))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in _golden()["model"]["merges"])]
    (folder / merges).write_text("\n".join(lines) + "\n")


def test_a_tokenizer_is_kept_byte_by_byte(folder: Path, tmp_path: Path) -> None:
    shutil.copy(_TEXTS / "tokenizer.json", folder)
    assert convert(folder, "--out", tmp_path / "model") == 0
    assert (tmp_path / "model/tokenizer.json").read_bytes() == (_TEXTS / "tokenizer.json").read_bytes()
    assert json.loads((tmp_path / "model/config.json").read_text())["tokenizer"] == "byte_level_bpe"


def test_a_tokenizer_elsewhere_is_named(folder: Path, tmp_path: Path) -> None:
    for index, path in enumerate((_TEXTS, _TEXTS / "tokenizer.json")):
        assert convert(folder, "--bpe", path, "--out", tmp_path / str(index)) == 0
        assert (tmp_path / str(index) / "tokenizer.json").is_file()


def test_the_framing_may_be_a_template_behind_byte_level(folder: Path, tmp_path: Path) -> None:
    tokenizer = _golden()
    tokenizer["post_processor"] = tokenizer_files.behind_byte_level(tokenizer_files.template())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert convert(folder, "--out", tmp_path / "model") == 0
    assert (tmp_path / "model/tokenizer.json").is_file()


def test_a_tokenizer_that_is_not_used_is_not_given(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--bpe", _TEXTS, "--set", "tokenizer=none")
    assert "--set tokenizer=byte_level_bpe" in refusal(capsys, tmp_path / "model", folder, *options)


def test_one_can_do_without(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(_TEXTS / "tokenizer.json", folder)
    assert convert(folder, "--set", "tokenizer=none", "--out", tmp_path / "model") == 0
    assert not (tmp_path / "model/tokenizer.json").exists()
    assert "token ids only" in capsys.readouterr().err


def _comparable(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """Without what the versions of transformers differ in: whether the mask takes the space before it."""
    for token in tokenizer["added_tokens"]:
        token.pop("lstrip")
    return tokenizer


def test_older_files_of_hugging_face_give_the_same_tokenizer(folder: Path, tmp_path: Path) -> None:
    _write_older(folder, _golden()["model"]["vocab"], "vocab.json", "merges.txt")
    assert convert(folder, "--out", tmp_path / "model") == 0
    made = json.loads((tmp_path / "model/tokenizer.json").read_text())
    assert _comparable(made) == _comparable(_golden())


def test_a_space_is_added_as_the_tokenizers_config_says(folder: Path, tmp_path: Path) -> None:
    _write_older(folder, _golden()["model"]["vocab"], "vocab.json", "merges.txt")
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": True}))
    assert convert(folder, "--out", tmp_path / "model") == 0
    made = json.loads((tmp_path / "model/tokenizer.json").read_text())
    assert made["pre_tokenizer"]["add_prefix_space"] is True
    assert made["post_processor"]["add_prefix_space"] is True


def _write_fairseq(folder: Path) -> dict[str, int]:
    """GPT-2's files, and a dict.txt in another order; returns the ids of the model."""
    tokens = [token for token in _golden()["model"]["vocab"] if token not in _SPECIAL]
    _write_older(folder, {token: id_ for id_, token in enumerate(tokens)}, "encoder.json", "vocab.bpe")
    order = np.random.default_rng(3).permutation(len(tokens) - 1)  # the last token never occurred
    (folder / "dict.txt").write_text("".join(f"{id_} 9\n" for id_ in order) + "madeupword0000 0\n")
    ids = [*_SPECIAL[:4], *(tokens[id_] for id_ in order), "madeupword0000", "<mask>"]
    return {token: id_ for id_, token in enumerate(ids)}


def test_fairseqs_dictionary_gives_the_order_of_the_ids(folder: Path, tmp_path: Path) -> None:
    wanted = _write_fairseq(folder)
    assert len(wanted) == 420
    assert convert(folder, "--out", tmp_path / "model") == 0
    made = json.loads((tmp_path / "model/tokenizer.json").read_text())
    assert Tokenizer.from_file(str(tmp_path / "model/tokenizer.json")).get_vocab() == wanted
    assert made["model"]["vocab"] == wanted
    # The dictionary does not have the last token, so no merge makes it.
    assert made["model"]["merges"] == _golden()["model"]["merges"][:-1]
    assert {token["content"]: token["id"] for token in made["added_tokens"]} == {
        token: wanted[token] for token in _SPECIAL
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content["model"].update(type="WordPiece"), ["'WordPiece'", "BPE"]),
        (lambda content: content.update(pre_tokenizer={"type": "Whitespace"}), ["pre_tokenizer", "ByteLevel"]),
        (lambda content: content.update(post_processor=None), ["post_processor is null", "begin with <s>"]),
        (lambda content: content["model"]["vocab"].update(new=420), ["model.vocab.new is 420", "0..419"]),
        (lambda content: content["model"]["vocab"].update(new=7), ["model.vocab.new is 7", "no other symbol"]),
        (lambda content: content["added_tokens"][1].update(content="[P]"), ["added_tokens[1].id is 1", "'[P]'"]),
        (lambda content: content["post_processor"].update(sep=["<mask>", 4]), ["'<mask>'", "id 4", "eos_token_id"]),
        (lambda content: content.update(added_tokens=[3]), ["added_tokens[0] is 3", "an object"]),
    ],
)
def test_a_tokenizer_of_another_model_is_refused(
    change: Callable[[dict[str, Any]], None],
    words: list[str],
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = _golden()
    change(content)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    message = refusal(capsys, tmp_path / "model", folder)
    for word in ["tokenizer.json", *words]:
        assert word in message


def test_broken_older_files_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = _golden()["model"]["vocab"]
    _write_older(folder, vocabulary, "vocab.json", "merges.txt")
    (folder / "merges.txt").write_text("a b\nc\n")
    assert "merges.txt: line 2" in refusal(capsys, tmp_path / "model", folder)
    (folder / "merges.txt").unlink()
    assert "merges.txt: no such file" in refusal(capsys, tmp_path / "model", folder)
    (folder / "added_tokens.json").write_text("{}")
    assert "added_tokens.json" in refusal(capsys, tmp_path / "model", folder)


def test_a_dictionary_that_does_not_fit_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_fairseq(folder)
    lines = (folder / "dict.txt").read_text().splitlines()
    for changed, word in (
        (lines[:-3], "417"),
        ([*lines[:-1], "5000 1"], "line 415: symbol '5000'"),
        ([*lines[:-1], lines[0]], "line 415"),
    ):
        (folder / "dict.txt").write_text("\n".join(changed) + "\n")
        assert word in refusal(capsys, tmp_path / "model", folder)
    (folder / "dict.txt").unlink()
    assert "no dict.txt" in refusal(capsys, tmp_path / "model", folder)
