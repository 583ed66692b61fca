"""Reference cases of the tokenizer byte_level_bpe, from Hugging Face's package `tokenizers`.

    python -m pip install tokenizers==0.23.3
    PYTHONPATH=tests python -m golden.byte_level_bpe tests/golden/text_classifier/byte_level_bpe

makes the folder's cases again. test_byte_level_bpe.py compares many more texts with the package.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors, trainers

ROOT = Path(__file__).parents[2]
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SEPARATOR = 2
# One text has bytes of each kind.
SCRIPTS = (
    (0x20, 0x7E), (0x41, 0x7A), (0xA0, 0xFF), (0x100, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x58F),
    (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x10A0, 0x10FF), (0x1100, 0x11FF),
    (0x1680, 0x169F), (0x2000, 0x206F), (0x2150, 0x218F), (0x2460, 0x24FF), (0x3000, 0x30FF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3), (0xFE00, 0xFE6F), (0xFF00, 0xFFEF), (0x10140, 0x1018F), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF),
    (0x20000, 0x323AF), (0xE0000, 0xE01EF),
)  # fmt: skip
SEQUENCES = (
    "👩‍👩‍👧‍👦", "🇪🇺", "👍🏽", "e\u0301", "नि", "don't", "we're", "I'LL", "'S", "''ve", "'lls",
    "x²", "½ cup", "一二三",
    "\r\n", "\n\n  ", " \t ", "\u3000", "\u00a0\u00a0 a", "\u200b", "\ufeff", "\x00", "\x1c\x1d", "\x7f",
    "   ", "\u2028x",
)  # fmt: skip
MALFORMED = (
    b"\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80",
    b"\xe0\x80\x80", b"\xf0\x80", b"\xe2\x28\xa1",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What tokenizer.json may vary."""

    add_prefix_space: bool = False
    trim_offsets: bool = True
    template: bool = False  # ByteLevel and TemplateProcessing in place of RobertaProcessing
    initial_alphabet: bool = True  # without it, bytes that training did not see have no symbol
    unknown: bool = False
    fuse_unknown: bool = False
    ignore_merges: bool = False
    mask: AddedToken | None = None
    more: tuple[AddedToken, ...] = ()


SETTINGS = {
    "roberta": Setting(mask=AddedToken("<mask>", lstrip=True, normalized=False, special=True)),
    "prefix_space": Setting(add_prefix_space=True, mask=AddedToken("<mask>", lstrip=True, special=True)),
    "template": Setting(template=True, trim_offsets=False, add_prefix_space=True, ignore_merges=True),
    "unknown": Setting(initial_alphabet=False, unknown=True, fuse_unknown=True),
    "dropped": Setting(initial_alphabet=False),
    "added": Setting(
        more=(
            AddedToken("der", single_word=True, normalized=False),
            AddedToken("[A]", rstrip=True, normalized=True),
            AddedToken("[A]b", lstrip=True, rstrip=True, normalized=True),
            AddedToken("é", single_word=True, normalized=True),
            AddedToken("<", normalized=True),
        ),
    ),
}


def corpus() -> list[str]:
    """Text that the checkout has."""
    paths = [ROOT / "deploy/paragraph.txt", ROOT / "deploy/letter.txt", *sorted((ROOT / "docs").glob("*.md"))]
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines(keepends=True)]


def trained(setting: Setting, vocabulary_size: int) -> Tokenizer:
    tokenizer = Tokenizer(
        models.BPE(
            unk_token="<unk>" if setting.unknown else None,
            fuse_unk=setting.fuse_unknown,
            ignore_merges=setting.ignore_merges,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=setting.add_prefix_space)
    specials = [setting.mask if token == "<mask>" and setting.mask else token for token in SPECIALS]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if setting.initial_alphabet else []
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_tokens(list(setting.more))
    trimming = {"trim_offsets": setting.trim_offsets, "add_prefix_space": setting.add_prefix_space}
    if setting.template:
        template = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", SEPARATOR)]
        )
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(**trimming), template])
    else:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", SEPARATOR), ("<s>", 0), **trimming)
    return tokenizer


def texts(count: int, seed: int, lines: Sequence[str] = ()) -> Iterator[bytes]:
    """Lines of many scripts, emoji, control characters, added tokens, pieces of `lines`, and malformed UTF-8."""
    draw = random.Random(seed)

    def characters() -> bytes:
        first, last = draw.choice(SCRIPTS)
        points = [draw.randint(first, last) for _ in range(draw.randint(1, 8))]
        return "".join(map(chr, points)).encode()

    def any_character() -> bytes:
        point = draw.randrange(0x110000 - 0x800)
        return chr(point if point < 0xD800 else point + 0x800).encode()

    def added() -> bytes:
        return draw.choice([*SPECIALS, "der", "[A]", "[A]b", "é", "<", "  <mask>  "]).encode()

    def piece() -> bytes:
        line = draw.choice(lines).encode() if lines else b"The cat"
        begin = draw.randrange(len(line) + 1)
        return line[begin : begin + draw.randint(1, 60)]

    def number() -> bytes:
        return str(draw.randrange(10 ** draw.randint(1, 9))).encode()

    kinds = {
        piece: 10, characters: 8, any_character: 2, added: 2, number: 2, lambda: b" " * draw.randint(1, 3): 8,
        lambda: draw.choice(SEQUENCES).encode(): 5, lambda: draw.choice(MALFORMED): 2,
        lambda: bytes([draw.randrange(256)]): 1, lambda: b"ab" * draw.randint(1, 60): 1,
    }  # fmt: skip
    makers, weights = list(kinds), list(kinds.values())
    for _ in range(count):
        parts = draw.choices(makers, weights, k=draw.randint(0, 12))
        yield b"".join(make() for make in parts)


def decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


def expected(tokenizer: Tokenizer, text: bytes, setting: Setting) -> dict[str, Any]:
    encoding = tokenizer.encode(decoded(text))
    # Behind bytes without a symbol, which it drops, the package counts wrongly within a word.
    if not setting.initial_alphabet and not setting.unknown:
        return {"ids": encoding.ids}
    return {"ids": encoding.ids, "characters": [place for offsets in encoding.offsets for place in offsets]}


def joined(tokenizer: Tokenizer, first: bytes, second: bytes, limit: int) -> list[int]:
    tokenizer.enable_truncation(limit, strategy="longest_first")
    ids = tokenizer.encode(decoded(first), decoded(second)).ids
    tokenizer.no_truncation()
    return ids


def cut(tokenizer: Tokenizer, text: bytes, limit: int) -> list[int]:
    tokenizer.enable_truncation(limit)
    ids = tokenizer.encode(decoded(text)).ids
    tokenizer.no_truncation()
    return ids


def make_case(folder: Path, setting: Setting, count: int, seed: int) -> None:
    tokenizer = trained(setting, 400)
    folder.mkdir(parents=True, exist_ok=True)
    document = json.loads(tokenizer.to_str())
    (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = corpus()
    cases: list[dict[str, Any]] = [
        {"hex": text.hex(), **expected(tokenizer, text, setting)} for text in texts(count, seed, lines)
    ]
    some = list(texts(count // 2, seed + 1, lines))
    for i, (first, second) in enumerate(zip(some[::2], some[1::2], strict=False)):
        limit = 4 + i
        cases.append({"hex": first.hex(), "limit": limit, "ids": cut(tokenizer, first, limit)})
        pair = joined(tokenizer, first, second, limit)
        cases.append({"hex": first.hex(), "pair_hex": second.hex(), "limit": limit, "ids": pair})
    config = {"form": "tokenize", "byte_level_bpe": "CASES"}
    # One case a line.
    listed = "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]"
    (folder / "config.json").write_text(json.dumps(config).replace('"CASES"', listed) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for seed, (name, setting) in enumerate(SETTINGS.items()):
        make_case(folder / name, setting, count=60, seed=seed)


if __name__ == "__main__":
    main()
