"""The rules for a tokenizer.json of byte-level BPE: those of the server's reader, models/tokenizer/tokenizer_json.cc.

The files of tests/models/tokenizer/files hold both readers to each other, and to Hugging Face's package `tokenizers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longshort_convert.strict_json import Node, parse_object, quoted

_MAX_TOKEN_BYTES = 256
_FIRST, _SECOND = object(), object()  # the sequences in a template
_FRAME = (
    "RobertaProcessing, TemplateProcessing, or a Sequence of ByteLevel and TemplateProcessing, so that sequences "
    "begin with <s> and end with </s>"
)
_TOP_FIELDS = (
    *("version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"),
    "model",
)
_MODEL_FIELDS = (
    *("type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback"),
    *("ignore_merges", "vocab", "merges"),
)
_BYTE_LEVEL_FIELDS = ("type", "add_prefix_space", "trim_offsets", "use_regex")
_TOKEN_FIELDS = ("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True)
class TokenizerIds:
    """The ids of a tokenizer's tokens, the tokens that it puts around a document, and those that are found in text."""

    id_of: Mapping[str, int]
    first: str
    last: str
    added: frozenset[str]


def read_rules(text: str, name: str, vocabulary_size: int) -> TokenizerIds:
    """Raises ConvertError naming the file, the field, and what it must be, for a file that the server refuses."""
    top = Node(parse_object(text, name), "", name)
    top.check_fields(_TOP_FIELDS)
    if "version" in top.value and top["version"].value != "1.0":
        raise top["version"].wrong('"1.0"')
    _check_normalizer(top["normalizer"])
    if isinstance(top["truncation"].value, dict):
        direction = top["truncation"]["direction"]
        if not direction.is_null and direction.value != "Right":
            raise direction.wrong('"Right"')
    _check_pre_tokenizer(top["pre_tokenizer"])
    ids = _Ids(vocabulary_size)
    _check_model(top["model"], ids)
    if "added_tokens" in top.value:
        ids.add(top["added_tokens"])
    first, last = _framing(top["post_processor"], ids)
    return TokenizerIds(ids.of, first, last, frozenset(ids.added))


def _check_normalizer(node: Node) -> None:
    if node.is_null:
        return
    node.object("null")
    if node["type"].value != "Sequence":
        raise node["type"].wrong(
            '"Sequence" of no normalizers, or the normalizer null: texts are tokenized as they are'
        )
    node.check_fields(("type", "normalizers"))
    if node["normalizers"].value != []:
        raise node["normalizers"].wrong("an empty list")


def _check_type(node: Node, type_: str) -> None:
    if node["type"].value != type_:
        raise node["type"].wrong(f'"{type_}"')


def _check_pre_tokenizer(node: Node) -> None:
    node.object("the pre-tokenizer ByteLevel")
    _check_byte_level(node)
    if node.value.get("use_regex") is False:
        raise node["use_regex"].wrong("true")


def _check_byte_level(node: Node) -> None:
    _check_type(node, "ByteLevel")
    node.check_fields(_BYTE_LEVEL_FIELDS)
    for switch in ("use_regex", "add_prefix_space", "trim_offsets"):
        if switch in node.value or switch != "use_regex":
            node[switch].boolean()


class _Ids:
    """The ids that symbols and added tokens have taken."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        self.of: dict[str, int] = {}
        self.added: set[str] = set()
        self._taken: set[int] = set()

    def take(self, symbol: str, node: Node) -> None:
        id_ = node.id(self.vocabulary_size)
        if id_ in self._taken:
            raise node.wrong("an id that no other symbol has")
        self._taken.add(id_)
        self.of[symbol] = id_

    def add(self, tokens: Node) -> None:
        """A token that is not in the vocabulary has the next id, from the number of symbols on."""
        following = len(self.of)
        for entry in tokens.items():
            entry.check_fields(_TOKEN_FIELDS)
            content = entry["content"].text()
            if not 1 <= len(content.encode()) <= _MAX_TOKEN_BYTES:
                raise entry["content"].wrong(f"1 to {_MAX_TOKEN_BYTES} bytes")
            if content in self.added:
                raise entry["content"].wrong("a token that is not yet in the list")
            self.added.add(content)
            id_ = entry["id"].id(self.vocabulary_size)
            for switch in ("single_word", "lstrip", "rstrip", "normalized", "special"):
                entry[switch].boolean()
            expected = self.of.get(content, following)
            if id_ != expected:
                raise entry["id"].wrong(f"{expected}, which Hugging Face gives {quoted(content)}")
            if content not in self.of:
                self.take(content, entry["id"])
                following += 1

    def named(self, node: Node, token: str, id_: int) -> str:
        if self.of.get(token) != id_:
            raise node.wrong(f"the token of id {id_}")
        return token


def _check_model(node: Node, ids: _Ids) -> None:
    if "type" in node.object("an object"):  # older files do not name it
        _check_type(node, "BPE")
    node.check_fields(_MODEL_FIELDS)
    dropout = node["dropout"]
    if not dropout.is_null and (type(dropout.value) not in (int, float) or dropout.value != 0):
        raise dropout.wrong("null: ids must not depend on chance")
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if node[affix].value not in (None, ""):
            raise node[affix].wrong("null or empty")
    if node["byte_fallback"].boolean(if_absent=False):
        raise node["byte_fallback"].wrong("false")
    for switch in ("fuse_unk", "ignore_merges"):
        node[switch].boolean(if_absent=False)
    vocabulary = node["vocab"]
    if not isinstance(vocabulary.value, dict) or not vocabulary.value:
        raise vocabulary.wrong("an object with a symbol's id for each")
    for symbol in vocabulary.value:
        if symbol == "":
            raise vocabulary[symbol].wrong("absent: a symbol is not empty")
        ids.take(symbol, vocabulary[symbol])
    _check_merges(node["merges"], ids.of)
    unknown = node["unk_token"]
    if not unknown.is_null and unknown.text() not in ids.of:
        raise unknown.wrong("null or a symbol of model.vocab")


def _check_merges(node: Node, id_of: Mapping[str, int]) -> None:
    """A pair is a list of two symbols; in older files, a string with a space between them."""
    pairs: set[tuple[str, str]] = set()
    for index, entry in enumerate(node.list("a list")):
        left, right = "", ""
        if isinstance(entry, str):
            if entry.startswith("#version"):
                continue
            left, _, right = entry.partition(" ")
        elif isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, str) for part in entry):
            left, right = entry
        if left not in id_of or right not in id_of or left + right not in id_of:
            raise node.at(index).wrong("two symbols of model.vocab that together are one")
        if (left, right) in pairs:
            raise node.at(index).wrong("a pair that is not yet in the list")
        pairs.add((left, right))


def _framing(node: Node, ids: _Ids) -> tuple[str, str]:
    """The tokens that the tokenizer puts before and behind a document."""
    node.object(_FRAME)
    kind = node["type"].value
    if kind == "RobertaProcessing":
        node.check_fields(("type", "sep", "cls", "trim_offsets", "add_prefix_space"))
        for switch in ("trim_offsets", "add_prefix_space"):
            node[switch].boolean()
        return _named(node["cls"], ids), _named(node["sep"], ids)
    if kind == "TemplateProcessing":
        return _template(node, ids)
    if kind != "Sequence":
        raise node["type"].wrong(_FRAME)
    node.check_fields(("type", "processors"))
    processors = node["processors"]
    if not isinstance(processors.value, list) or [type(part) for part in processors.value] != [dict, dict]:
        raise processors.wrong("a list of ByteLevel and TemplateProcessing")
    byte_level, template = processors.items()
    _check_byte_level(byte_level)
    _check_type(template, "TemplateProcessing")
    return _template(template, ids)


def _named(node: Node, ids: _Ids) -> str:
    """["<s>", 0]"""
    if not isinstance(node.value, list) or len(node.value) != 2:
        raise node.wrong("a token and its id")
    return ids.named(node.at(0), node.at(0).text(), node.at(1).id(ids.vocabulary_size))


def _template(node: Node, ids: _Ids) -> tuple[str, str]:
    node.check_fields(("type", "single", "pair", "special_tokens"))
    single = _pattern(node["single"])
    first, last = (single[0], single[2]) if len(single) == 3 and single[1] is _FIRST else (None, None)
    if not isinstance(first, str) or not isinstance(last, str):
        raise node["single"].wrong("a token, sequence A, a token: <s> A </s>")
    if _pattern(node["pair"]) != [first, _FIRST, last, last, _SECOND, last]:
        raise node["pair"].wrong("<s> A </s></s> B </s> with the tokens of single")
    specials = node["special_tokens"]
    for token in specials.object("an object"):
        specials[token].check_fields(("id", "ids", "tokens"))
        specials[token]["id"].text()
        for part in specials[token]["tokens"].items():
            part.text()
    for token in (first, last):
        found = specials[token]["ids"]
        if not isinstance(found.value, list) or len(found.value) != 1:
            raise found.wrong("a list of one id")
        ids.named(found.at(0), token, found.at(0).id(ids.vocabulary_size))
    return first, last


def _pattern(node: Node) -> list[object]:
    """The tokens of a template, and _FIRST and _SECOND for the sequences."""
    if not isinstance(node.value, list) or len(node.value) > 6:
        raise node.wrong("a list of at most 6 parts")
    parts: list[object] = []
    for part in node.items():
        part.check_fields(("SpecialToken", "Sequence"))
        if len(part.value) != 1:
            raise part.wrong("a SpecialToken or a Sequence")
        is_sequence = "Sequence" in part.value
        content = part["Sequence" if is_sequence else "SpecialToken"]
        content.check_fields(("id", "type_id"))
        id_ = content["id"].text()
        if is_sequence and id_ not in ("A", "B"):
            raise content["id"].wrong('"A" or "B"')
        if not is_sequence and id_ == "":
            raise content["id"].wrong("a token")
        type_ = content["type_id"]
        if type(type_.value) is not int or not 0 <= type_.value < 1 << 32:
            raise type_.wrong("an integer of 32 bits without a sign")
        parts.append(id_ if not is_sequence else _FIRST if id_ == "A" else _SECOND)
    return parts
