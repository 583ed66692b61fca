"""The converter, Hugging Face's package `tokenizers` and the server read each tokenizer.json alike.

The server's test is tests/models/tokenizer/tokenizer_json_test.cc: it reads the same files and expectations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from longshort_convert.bpe_tokenizer import read_tokenizer
from longshort_convert.errors import ConvertError
from longshort_convert.hugging_face import Ids

from models.tokenizer import make_files

_FOLDER = Path(__file__).parents[1] / "tokenizer/files"
_EXPECTED: dict[str, dict[str, Any]] = json.loads((_FOLDER / "expected.json").read_text())
_GOOD = [name for name in _EXPECTED if "ids" in _EXPECTED[name]]
_REFUSED = [name for name in _EXPECTED if "ids" not in _EXPECTED[name]]


def _converted(name: str) -> bytes:
    return read_tokenizer(_FOLDER / f"{name}.json", _EXPECTED[name]["vocabulary_size"], Ids())


def test_there_are_many_files_of_both_kinds() -> None:
    assert {path.stem for path in _FOLDER.glob("*.json")} == {*_EXPECTED, "expected"}
    assert len(_GOOD) >= 15
    assert len(_REFUSED) >= 25
    assert {_EXPECTED[name]["package_reads"] for name in _REFUSED} == {True, False}


@pytest.mark.parametrize("name", _GOOD)
def test_a_good_file_is_converted_and_has_the_ids_of_the_package(name: str) -> None:
    converted = _converted(name)
    assert converted == (_FOLDER / f"{name}.json").read_bytes()
    assert make_files.ids_of_package(converted.decode()) == _EXPECTED[name]["ids"]


@pytest.mark.parametrize("name", _REFUSED)
def test_another_file_is_refused_in_the_words_of_the_server(name: str) -> None:
    with pytest.raises(ConvertError) as refusal:
        _converted(name)
    for word in [f"{name}.json", *_EXPECTED[name]["words"]]:
        assert word in str(refusal.value)
    assert make_files.package_reads((_FOLDER / f"{name}.json").read_text()) == _EXPECTED[name]["package_reads"]


def test_the_files_are_those_of_the_script(tmp_path: Path) -> None:
    make_files.write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in _FOLDER.iterdir()
    }
