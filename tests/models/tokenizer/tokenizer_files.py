"""Made-up tokenizer.json files that are good: as versions of transformers and tokenizers wrote them since 2020."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Content = dict[str, Any]

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"
_MERGES = (("t", "h"), ("th", "e"), ("\u0120", "the"), ("e", "n"), ("\u0120", "t"), ("d", "o"), ("do", "n"), ("'", "t"))
_LETTERS = "abcdehmnoptxyTABC',!.0123456789[]<>/\u0120\u010a"
# Embedding rows: the vocabulary below, and some that have no token.
ROWS = 64


def _characters_of_bytes() -> list[str]:
    """GPT-2's printable characters, in the order of their code points."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [chr(point) for point in printable] + [chr(0x100 + index) for index in range(256 - len(printable))]


def current(symbols: str | None = _LETTERS) -> Content:
    """As transformers saves a RoBERTa's tokenizer today; with the symbols of all bytes if `symbols` is None."""
    tokens = [*SPECIAL, *(_characters_of_bytes() if symbols is None else symbols)]
    merges = [[left, right] for left, right in _MERGES]
    vocabulary = {token: id_ for id_, token in enumerate([*tokens, *(left + right for left, right in merges), MASK])}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(token, vocabulary[token]) for token in (*SPECIAL, MASK)],
        "normalizer": None,
        "pre_tokenizer": byte_level(),
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": ["</s>", 2],
            "cls": ["<s>", 0],
            "trim_offsets": True,
            "add_prefix_space": False,
        },
        "decoder": byte_level() | {"add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges,
        },
    }


def byte_level() -> Content:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def added(token: str, id_: int, **changes: bool) -> Content:
    switches = {"single_word": False, "lstrip": token == MASK, "rstrip": False, "normalized": False, "special": True}
    return {"id": id_, "content": token, **switches, **changes}


def template(first: str = "<s>", last: str = "</s>", pair: str = "<s>A</s></s>B</s>") -> Content:
    """TemplateProcessing; `pair` has A and B for the sequences."""

    def pattern(text: str) -> list[Content]:
        parts = text.replace("A", "|A|").replace("B", "|B|").replace("><", ">|<").split("|")
        kinds = [("Sequence" if part in ("A", "B") else "SpecialToken", part) for part in parts]
        return [{kind: {"id": part, "type_id": 0}} for kind, part in kinds]

    ids = {token: {"id": token, "ids": [id_], "tokens": [token]} for token, id_ in ((first, 0), (last, 2))}
    return {
        "type": "TemplateProcessing",
        "single": pattern(f"{first}A{last}"),
        "pair": pattern(pair.replace("<s>", first).replace("</s>", last)),
        "special_tokens": ids,
    }


def behind_byte_level(processor: Content) -> Content:
    return {"type": "Sequence", "processors": [byte_level(), processor]}


def _without(content: Content, *fields: str) -> Content:
    return {field: value for field, value in content.items() if field not in fields}


def of_the_hub() -> Content:
    """As roberta-base and roberta-large lie on the Hub since 2020, before `model.type` and `use_regex` existed."""
    content = current(None)
    model = content["model"]
    model["merges"] = [" ".join(pair) for pair in model["merges"]]
    content["model"] = _without(model, "type", "byte_fallback", "ignore_merges")
    for part in ("pre_tokenizer", "decoder"):
        content[part] = _without(content[part], "use_regex")
    for token in content["added_tokens"]:
        token["normalized"] = token["content"] != MASK
    return content


def text_of(content: Content, **options: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), **options) + "\n"


def good_files() -> Iterator[tuple[str, str, int]]:
    """Names, contents, and embedding rows."""
    yield "hub_2020", text_of(of_the_hub()), 270
    yield "current_of_all_bytes", text_of(current(None)), 269
    for name, content in _variants():
        yield name, text_of(content), ROWS
    yield "with_escapes_and_space", json.dumps(current(), indent=1) + "\n", ROWS


def _variants() -> Iterator[tuple[str, Content]]:
    yield "current", current()
    yield "without_type", current() | {"model": _without(current()["model"], "type")}
    yield "without_optional_parts", _without(current(), "truncation", "padding", "decoder", "normalizer")
    yield "no_added_tokens", current() | {"added_tokens": []}
    yield "template", current() | {"post_processor": template()}
    yield "template_behind_byte_level", current() | {"post_processor": behind_byte_level(template())}
    yield "empty_normalizer_sequence", current() | {"normalizer": {"type": "Sequence", "normalizers": []}}
    yield "truncation_and_padding", current() | _TRUNCATION_AND_PADDING
    yield "decoder_of_another_kind", current() | {"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}
    yield "prefix_space", current() | {"pre_tokenizer": byte_level() | {"add_prefix_space": True}}
    yield "offsets_with_spaces", current() | {"pre_tokenizer": byte_level() | {"trim_offsets": False}}
    yield "added_token_with_a_new_id", _with_tokens(added("[A]", _NEXT, rstrip=True, normalized=True, special=False))
    yield "added_word", _with_tokens(added("then", _NEXT, single_word=True, special=False))
    yield "special_token_of_another_name", _renamed("<pad>", "[PAD]")
    model = current()["model"]
    strings = [" ".join(pair) for pair in model["merges"]]
    for name, changes in (
        ("merges_as_strings", {"merges": strings}),
        ("version_line_before_merges", {"merges": ["#version: 0.2 - Trained by `huggingface/tokenizers`", *strings]}),
        ("no_merges", {"merges": []}),
        ("unknown_token", {"unk_token": "<unk>"}),
        ("fused_unknown_tokens", {"unk_token": "<unk>", "fuse_unk": True}),
        ("ignore_merges", {"ignore_merges": True, "merges": model["merges"][1:]}),
        ("affixes_null", {"continuing_subword_prefix": None, "end_of_word_suffix": None}),
    ):
        yield name, current() | {"model": model | changes}


# The id after the vocabulary's.
_NEXT = len(current()["model"]["vocab"])
_TRUNCATION_AND_PADDING = {
    "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
    "padding": {
        "strategy": {"Fixed": 8},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 1,
        "pad_type_id": 0,
        "pad_token": "<pad>",
    },
}


def _with_tokens(*tokens: Content) -> Content:
    content = current()
    content["added_tokens"] += tokens
    return content


def _renamed(old: str, new: str) -> Content:
    return json.loads(text_of(current()).replace(json.dumps(old), json.dumps(new)))
