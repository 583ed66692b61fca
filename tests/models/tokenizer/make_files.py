"""The tokenizer.json files that the converter, the server and Hugging Face's package `tokenizers` must read alike.

    PYTHONPATH=tests .venv/bin/python -m models.tokenizer.make_files tests/models/tokenizer/files

writes NAME.json, and the expectations of all of them to expected.json:

  vocabulary_size   the embedding rows of the model
  ids               of a file that is good: the ids of texts, from the package
  words             of another: words of the message of both readers
  package_reads     whether the package reads a file that Longshort refuses: it is then of a kind that Longshort lacks
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from models.tokenizer.refused_files import refused_files
from models.tokenizer.tokenizer_files import ROWS, good_files

TEXTS = (
    "",
    "the",
    " the then",
    "The theme, don't!  then\nthe",
    "caf\u00e9 \u00fcber \u4e2d\u6587 \U0001f600",
    "a <mask> b",
    "x<mask>y</s><s>the",
    "12 345",
    "the[A] the [A]b",
)


def files() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Names, contents and expectations."""
    for name, content, rows in good_files():
        yield name, content, {"vocabulary_size": rows, "ids": ids_of_package(content)}
    for name, content, words in refused_files():
        yield name, content, {"vocabulary_size": ROWS, "words": words, "package_reads": package_reads(content)}


def ids_of_package(content: str) -> dict[str, list[int]]:
    tokenizer = Tokenizer.from_str(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return {text: tokenizer.encode(text).ids for text in TEXTS}


def package_reads(content: str) -> bool:
    try:
        Tokenizer.from_str(content)
    except Exception:  # the package raises nothing more special
        return False
    return True


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, content, expectation in files():
        (folder / f"{name}.json").write_text(content, encoding="utf-8")
        expected[name] = expectation
    lines = [f"{json.dumps(name)}: {json.dumps(expected[name])}" for name in sorted(expected)]
    (folder / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
