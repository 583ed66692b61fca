"""The tokenizer byte_level_bpe against Hugging Face's package `tokenizers`: 100,000 lines, and all code points."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from golden import programs, tokenize_form

pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
from golden import byte_level_bpe

pytestmark = pytest.mark.slow
BUILD = programs.Build(Path(__file__).parents[2] / "build/release")
LINES = 100_000
CODE_POINTS = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]


@pytest.fixture(scope="module", params=byte_level_bpe.SETTINGS)
def tokenizer(request: pytest.FixtureRequest) -> Iterator[tuple[byte_level_bpe.Setting, Any, Path]]:
    setting = byte_level_bpe.SETTINGS[request.param]
    trained = byte_level_bpe.trained(setting, 5_000)
    with tempfile.TemporaryDirectory(prefix="longshort-bpe-") as scratch:
        path = Path(scratch) / "tokenizer.json"
        trained.save(str(path))
        yield setting, trained, path


def batched(points: list[str], size: int) -> Iterator[list[str]]:
    yield from (points[i : i + size] for i in range(0, len(points), size))


def wrong(path: Path, given: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> int:
    options = (f"--vocabulary={path}", "--vocabulary_size=6000", "--characters")
    return tokenize_form.wrong(BUILD, "byte_level_bpe", given, wanted, *options)


def test_lines_have_the_same_ids_and_offsets(tokenizer: tuple[byte_level_bpe.Setting, Any, Path]) -> None:
    setting, trained, path = tokenizer
    lines = list(byte_level_bpe.texts(LINES // len(byte_level_bpe.SETTINGS) + 1, 7, byte_level_bpe.corpus()))
    given = [{"hex": line.hex()} for line in lines]
    assert wrong(path, given, [byte_level_bpe.expected(trained, line, setting) for line in lines]) == 0


def test_pairs_are_truncated_alike(tokenizer: tuple[byte_level_bpe.Setting, Any, Path]) -> None:
    _, trained, path = tokenizer
    lines = list(byte_level_bpe.texts(2_000, 8, byte_level_bpe.corpus()))
    pairs = [(first, second, 4 + i % 61) for i, (first, second) in enumerate(zip(lines, lines[1:], strict=False))]
    given = [{"hex": first.hex(), "pair_hex": second.hex(), "limit": limit} for first, second, limit in pairs]
    wanted = [{"ids": byte_level_bpe.joined(trained, *pair)} for pair in pairs]
    assert wrong(path, given, wanted) == 0


@pytest.mark.parametrize("around", ["{}", "a{}a", "1{}1", " {} "])
def test_every_code_point_has_its_class(tokenizer: tuple[byte_level_bpe.Setting, Any, Path], around: str) -> None:
    setting, trained, path = tokenizer
    if setting != byte_level_bpe.SETTINGS["roberta"]:
        pytest.skip("the classes do not depend on the setting")
    texts = ["".join(around.replace("{}", point) for point in points) for points in batched(CODE_POINTS, 32)]
    encodings = trained.encode_batch(texts)
    given = [{"hex": text.encode().hex()} for text in texts]
    assert wrong(path, given, [{"ids": encoding.ids} for encoding in encodings]) == 0
