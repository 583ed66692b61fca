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
        given = [{"hex": entry["utf8_hex"]} for entry in texts]
        wanted = [{"ids": entry["ids"]} for entry in texts]
        differences["byte_text"] = wrong(build, "bytes_plus_one", given, wanted)
    for name, tokenizer in _LISTOPS.items():
        if name in config:
            differences[name] = _wrong_of_listops(build, tokenizer, config[name], name)
    if "byte_level_bpe" in config:
        differences["byte_level_bpe"] = _wrong_of_byte_level_bpe(build, case, config["byte_level_bpe"])
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
        given = [{"hex": text["source"].encode().hex()} for text in entry["cases"]]
        wanted = [{"ids": text["ids"]} for text in entry["cases"]]
        return wrong(build, tokenizer, given, wanted, f"--vocabulary={path}")


def _wrong_of_byte_level_bpe(build: programs.Build, case: Path, entries: list[dict[str, Any]]) -> int:
    path = case / "tokenizer.json"
    if not path.is_file():
        raise CaseError(f"{path.name} is not there")
    given = [{key: entry[key] for key in ("hex", "pair_hex", "limit") if key in entry} for entry in entries]
    wanted = [{key: entry[key] for key in ("ids", "characters") if key in entry} for entry in entries]
    return wrong(build, "byte_level_bpe", given, wanted, f"--vocabulary={path}", "--characters")


def wrong(
    build: programs.Build,
    tokenizer: str,
    given: Sequence[dict[str, Any]],
    wanted: Sequence[dict[str, Any]],
    *arguments: object,
) -> int:
    """The number of texts for which the tokenizer does not answer what is wanted. Errors: CaseError."""
    lines = "".join(json.dumps(text) + "\n" for text in given)
    name = "longshort-golden-tokenize"
    answers = programs.json_lines_of(build, name, f"--tokenizer={tokenizer}", *arguments, given=lines)
    if len(answers) != len(given):
        raise CaseError(f"{name} answered {len(answers)} of {len(given)} texts")
    return sum(any(answer[key] != of[key] for key in of) for answer, of in zip(answers, wanted, strict=True))
