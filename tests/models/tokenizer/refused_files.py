"""Made-up tokenizer.json files that Longshort refuses, each for one reason, with words of the message."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from models.tokenizer.tokenizer_files import ROWS, added, behind_byte_level, byte_level, current, template, text_of


def refused_files() -> Iterator[tuple[str, str, list[str]]]:
    """Names, contents, and words of the message."""
    for name, path, value, words in (*_OTHER_KINDS, *_WRONG_IDS, *_WRONG_VALUES):
        yield name, text_of(_changed(path, value)), words.split("|")
    for name, path, value, words in _WRONG_TEMPLATES:
        yield name, text_of(_changed("post_processor", _with(template(), path, value))), [f"post_processor.{words}"]
    text = text_of(current())
    yield "cut_off", text[: len(text) // 2] + "\n", []
    yield "repeated_key", text.replace('"normalizer":null', '"normalizer":null,"normalizer":null'), ["'normalizer'"]
    yield "id_of_minus_zero", text.replace('"id":0', '"id":-0'), ["added_tokens[0].id is", "an id in 0..63"]
    yield "not_a_number", text.replace('"dropout":null', '"dropout":NaN'), []
    yield "half_of_a_surrogate_pair", text.replace('"content":"<unk>"', '"content":"\\ud83d"'), ["surrogate pair"]
    yield "a_list", "[]\n", []
    yield "deep", text.replace('"padding":null', '"padding":' + "[" * 20 + "]" * 20), []
    words = ["unknown field 'unk_id' of model"]
    yield "unigram_without_type", text_of(_changed("model", {"unk_id": 0, "vocab": [["<unk>", 0.0]]})), words


_ABSENT = object()


def _changed(path: str, value: object) -> dict[str, Any]:
    return _with(copy.deepcopy(current()), path, value)


def _with(content: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    parent: Any = content
    *parents, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    for part in parents:
        parent = parent[part]
    if value is _ABSENT:
        del parent[last]
    elif isinstance(parent, list) and last == len(parent):
        parent.append(value)
    else:
        parent[last] = value
    return content


_SPLIT = {"type": "Split", "pattern": {"Regex": " "}, "behavior": "Isolated", "invert": False}
_DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level()]}
_BERT = {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
_LEFT = {"direction": "Left", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
_WORD_PIECE = {
    "type": "WordPiece",
    "unk_token": "<unk>",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {"<unk>": 0},
}
_MANY = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}

# Kinds of tokenizers that Longshort does not have.
_OTHER_KINDS = (
    ("nfc", "normalizer", {"type": "NFC"}, "normalizer.type is 'NFC'"),
    ("sequence_of_nfc", "normalizer", _MANY, "normalizer.normalizers is |an empty list"),
    ("lowercase", "normalizer", {"type": "Lowercase"}, "normalizer.type is 'Lowercase'"),
    ("digits_and_byte_level", "pre_tokenizer", _DIGITS, "pre_tokenizer.type is 'Sequence'|\"ByteLevel\""),
    ("split_by_pattern", "pre_tokenizer", _SPLIT, "pre_tokenizer.type is 'Split'"),
    ("whitespace", "pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer.type is 'Whitespace'"),
    ("no_pre_tokenizer", "pre_tokenizer", None, "pre_tokenizer is "),
    ("no_pattern", "pre_tokenizer/use_regex", False, "pre_tokenizer.use_regex is false"),
    ("no_post_processor", "post_processor", None, "post_processor is |<s>"),
    ("gpt2", "post_processor", byte_level(), "post_processor.type is 'ByteLevel'"),
    ("bert_processing", "post_processor", _BERT, "post_processor.type is 'BertProcessing'"),
    ("pair_of_bert", "post_processor", template(pair="<s>A</s>B</s>"), "post_processor.pair"),
    (
        "only_a_template",
        "post_processor",
        {"type": "Sequence", "processors": [template()]},
        "post_processor.processors",
    ),
    ("two_templates", "post_processor", behind_byte_level(_BERT), "post_processor.processors[1].type"),
    ("truncation_from_the_left", "truncation", _LEFT, "truncation.direction is 'Left'|\"Right\""),
    ("word_piece", "model", _WORD_PIECE, "model.type is 'WordPiece'|\"BPE\""),
    ("dropout", "model/dropout", 0.1, "model.dropout is 0.1|chance"),
    ("byte_fallback", "model/byte_fallback", True, "model.byte_fallback is true"),
    ("suffix_of_words", "model/end_of_word_suffix", "e", "model.end_of_word_suffix is 'e'"),
    ("field_of_another_version", "model/more", 1, "unknown field 'more' of model"),
    ("part_of_another_version", "more", 1, "unknown field 'more'"),
)
_BEYOND = f"model.vocab.zz is {ROWS}; it must be an id in 0..{ROWS - 1}, since the model's vocabulary_size is {ROWS}"
_LAST = len(current()["model"]["vocab"]) - 1
_WRONG_IDS = (
    ("id_beyond_the_rows", "model/vocab/zz", ROWS, _BEYOND),
    ("id_of_another_symbol", "model/vocab/zz", 7, "model.vocab.zz is 7|no other symbol"),
    ("negative_id", "model/vocab/zz", -1, "model.vocab.zz is -1"),
    ("id_with_a_point", "model/vocab/zz", 62.0, "model.vocab.zz is 62.0"),
    ("other_id_of_an_added_token", "added_tokens/4/id", 9, f"added_tokens[4].id is 9; it must be {_LAST}"),
    ("gap_before_an_added_token", "added_tokens/5", added("[A]", _LAST + 3), "added_tokens[5].id"),
    ("added_token_twice", "added_tokens/5", added("<s>", 0), "added_tokens[5].content is '<s>'"),
    ("empty_added_token", "added_tokens/5", added("", _LAST + 1), "added_tokens[5].content"),
    ("long_added_token", "added_tokens/5", added("t" * 257, _LAST + 1), "added_tokens[5].content|256 bytes"),
    ("other_id_of_the_last_token", "post_processor/sep", ["</s>", 1], "post_processor.sep[0] is '</s>'"),
)
_WRONG_TEMPLATES = (
    ("type_id_negative", "single/1/Sequence/type_id", -1, "single[1].Sequence.type_id is -1"),
    ("no_type_id", "pair/0/SpecialToken/type_id", _ABSENT, "pair[0].SpecialToken.type_id is "),
    ("special_token_without_id", "special_tokens/<s>/id", _ABSENT, "special_tokens.<s>.id is "),
    ("special_token_without_tokens", "special_tokens/<s>/tokens", None, "special_tokens.<s>.tokens is "),
    ("special_token_of_a_number", "special_tokens/<s>/tokens/0", 7, "special_tokens.<s>.tokens[0] is 7"),
    ("more_special_tokens", "special_tokens/more", "x", "special_tokens.more is 'x'"),
)
_WRONG_VALUES = (
    ("version_2", "version", "2.0", "version is '2.0'"),
    ("version_null", "version", None, "version is "),
    ("added_tokens_null", "added_tokens", None, "added_tokens is |a list"),
    ("byte_level_without_offsets", "pre_tokenizer/trim_offsets", _ABSENT, "pre_tokenizer.trim_offsets is "),
    ("use_regex_null", "pre_tokenizer/use_regex", None, "pre_tokenizer.use_regex is "),
    (
        "use_regex_null_behind",
        "post_processor",
        {"type": "Sequence", "processors": [byte_level() | {"use_regex": None}, template()]},
        "post_processor.processors[0].use_regex is ",
    ),
    ("no_model", "model", _ABSENT, "model is "),
    ("type_null", "model/type", None, 'model.type is |"BPE"'),
    ("no_vocabulary", "model/vocab", {}, "model.vocab"),
    ("no_merges_at_all", "model/merges", None, "model.merges is "),
    ("merge_of_an_unknown_symbol", "model/merges/0", ["t", "q"], "model.merges[0]"),
    ("merge_of_three", "model/merges/0", "t h e", "model.merges[0] is 't h e'"),
    ("merge_without_its_symbol", "model/merges/0", ["x", "x"], "model.merges[0]"),
    ("merge_twice", "model/merges/8", ["t", "h"], "model.merges[8]|not yet in the list"),
    ("unknown_token_that_is_none", "model/unk_token", "[UNK]", "model.unk_token is '[UNK]'"),
    ("fuse_unk_as_a_string", "model/fuse_unk", "no", "model.fuse_unk is 'no'"),
    (
        "byte_level_without_its_space",
        "pre_tokenizer/add_prefix_space",
        _ABSENT,
        "pre_tokenizer.add_prefix_space is ",
    ),
    ("roberta_without_offsets", "post_processor/trim_offsets", _ABSENT, "post_processor.trim_offsets is "),
    ("roberta_without_cls", "post_processor/cls", _ABSENT, "post_processor.cls is "),
    ("added_token_as_a_string", "added_tokens/0", "<s>", "added_tokens[0] is '<s>'"),
    ("added_token_without_switch", "added_tokens/0/lstrip", _ABSENT, "added_tokens[0].lstrip is "),
)
