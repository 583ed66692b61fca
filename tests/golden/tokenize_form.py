"""Form `tokenize`: texts, and the expected ids of the tokenizers of documents."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from golden import programs
from golden.outcome import CaseError, Outcome

_LISTOPS = {"listops_vendored_2020": "listops_2020", "listops_lra_2021": "listops_2021"}


def judge(case: Path, config: dict[str, Any], build: programs.Build) -> Outcome:
    """Counts the texts whose ids differ; none may. Errors: CaseError."""
    differences: dict[str, float] = {}
    if texts := config.get("byte_text", []):
        wanted = [entry["ids"] for entry in texts]
        differences["byte_text"] = _wrong(build, "bytes_plus_one", [entry["utf8_hex"] for entry in texts], wanted)
    for name, tokenizer in _LISTOPS.items():
        if name in config:
            differences[name] = _wrong_of_listops(build, tokenizer, config[name], name)
    if not differences:
        raise CaseError("config.json has no texts")
    return Outcome(differences, 0.0)


def _wrong_of_listops(build: programs.Build, tokenizer: str, entry: dict[str, Any], name: str) -> int:
    vocabulary = entry["vocab"]
    if entry["unk_id"] != len(vocabulary) + 1:
        raise CaseError(f"{name}: unk_id is {entry['unk_id']}, not the id after the last symbol")
    if not entry["cases"]:
        raise CaseError(f"{name} has no texts")
    with tempfile.TemporaryDirectory(prefix="longshort-golden-") as scratch:
        path = Path(scratch) / "vocabulary.txt"
        path.write_text("".join(f"{symbol}\n" for symbol in vocabulary))
        texts = [text["source"].encode().hex() for text in entry["cases"]]
        wanted = [text["ids"] for text in entry["cases"]]
        return _wrong(build, tokenizer, texts, wanted, f"--vocabulary={path}")


def _wrong(
    build: programs.Build, tokenizer: str, texts: Sequence[str], wanted: Sequence[list[int]], *arguments: object
) -> int:
    given = "".join(json.dumps({"hex": text}) + "\n" for text in texts)
    name = "longshort-golden-tokenize"
    lines = programs.json_lines_of(build, name, f"--tokenizer={tokenizer}", *arguments, given=given)
    if len(lines) != len(texts):
        raise CaseError(f"{name} answered {len(lines)} of {len(texts)} texts")
    return sum(line["ids"] != ids for line, ids in zip(lines, wanted, strict=True))
