"""The tokenizer.json of byte-level BPE: as Hugging Face stores it, or made of older files.

The older files are vocab.json and merges.txt of Hugging Face's RoBERTa, or fairseq's dict.txt with GPT-2's encoder.json
and vocab.bpe: dict.txt gives GPT-2's ids in the order of the model's ids, which begin at 4.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from longshort_convert import vocabulary
from longshort_convert.errors import ConvertError
from longshort_convert.hugging_face import Ids
from longshort_convert.input_files import read_json_object, read_text
from longshort_convert.strict_json import quoted
from longshort_convert.tokenizer_json import TokenizerIds, read_rules

TOKENIZER = "tokenizer.json"
_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
_DICTIONARY = "dict.txt"
# fairseq's first ids, and the mask, which its task appends.
_FIRST, _PADDING, _LAST, _UNKNOWN, _MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
_FAIRSEQ_SPECIAL = (_FIRST, _PADDING, _LAST, _UNKNOWN)


def find_tokenizer(folder: Path) -> Path | None:
    """What of a folder is a tokenizer: its tokenizer.json, or the folder itself."""
    if (folder / TOKENIZER).is_file():
        return folder / TOKENIZER
    return folder if any((folder / pair[0]).is_file() for pair in _PAIRS) else None


def read_tokenizer(path: Path, vocabulary_size: int, ids: Ids) -> bytes:
    """The content of that tokenizer.json, or of one made of a folder's older files. Raises ConvertError or OSError."""
    if path.is_dir():
        found = find_tokenizer(path)
        if found is None:
            wanted = ", or ".join([TOKENIZER, *(" and ".join(pair) for pair in _PAIRS)])
            raise ConvertError(f"{path}: has no {wanted}")
        if found != path:
            return read_tokenizer(found, vocabulary_size, ids)
        text = json.dumps(_from_older_files(path, vocabulary_size), ensure_ascii=False)
    else:
        text = read_text(path)
    _check_ids(read_rules(text, str(path), vocabulary_size), str(path), ids)
    return text.encode()


def _check_ids(tokenizer: TokenizerIds, name: str, ids: Ids) -> None:
    """Whether it is the tokenizer of this model."""
    wanted = (("bos_token_id", ids.first, tokenizer.first), ("eos_token_id", ids.separator, tokenizer.last))
    for field, id_, token in wanted:
        if id_ is not None and tokenizer.id_of[token] != id_:
            raise ConvertError(
                f"{name}: it frames documents with {quoted(token)} of id {tokenizer.id_of[token]}, but the model's "
                f"{field} is {id_}"
            )
    padding = next((token for token, id_ in tokenizer.id_of.items() if id_ == ids.padding), _PADDING)
    if padding in (tokenizer.first, tokenizer.last) or not (padding == _PADDING or padding in tokenizer.added):
        raise ConvertError(
            f"{name}: id {ids.padding} is {quoted(padding)}, but it is the model's pad_token_id, which no text may have"
        )


def _from_older_files(folder: Path, vocabulary_size: int) -> dict[str, Any]:
    tokens_file, merges_file = next(pair for pair in _PAIRS if (folder / pair[0]).is_file())
    if (folder / "added_tokens.json").is_file():
        raise ConvertError(
            f"{folder / 'added_tokens.json'}: its tokens are not read; save the tokenizer as {TOKENIZER}, "
            "by save_pretrained() of a PreTrainedTokenizerFast"
        )
    ids = read_json_object(folder / tokens_file)
    if any(type(id_) is not int for id_ in ids.values()):
        raise ConvertError(f"{folder / tokens_file}: its values are not ids")
    merges = _merges(folder / merges_file)
    if tokens_file == "encoder.json":
        if not (folder / _DICTIONARY).is_file():
            raise ConvertError(f"{folder}: has {tokens_file}, GPT-2's ids, and no {_DICTIONARY} with the model's order")
        ids = _in_order_of_dictionary(folder / _DICTIONARY, folder / tokens_file, ids, vocabulary_size)
        # A token that did not occur in training has no id: its parts stand for it.
        merges = [pair for pair in merges if all(symbol in ids for symbol in (*pair, "".join(pair)))]
    for token in _FAIRSEQ_SPECIAL:
        if token not in ids:
            raise ConvertError(f"{folder / tokens_file}: has no token {token}, which RoBERTa's vocabulary has")
    return _tokenizer(ids, merges, _adds_space(folder))


def _in_order_of_dictionary(
    path: Path, encoder: Path, gpt2_ids: dict[str, int], vocabulary_size: int
) -> dict[str, int]:
    token_of = {id_: token for token, id_ in gpt2_ids.items()}
    ids = {token: id_ for id_, token in enumerate(_FAIRSEQ_SPECIAL)}
    for number, symbol in enumerate(vocabulary.read_symbols(read_text(path), str(path)), start=1):
        token: str | None = symbol
        if not symbol.startswith("madeupword"):
            token = token_of.get(int(symbol)) if symbol.isdecimal() else None
        if token is None or token in ids:
            raise ConvertError(f"{path}: line {number}: symbol {symbol!r} is not a new id of {encoder.name}")
        ids[token] = len(ids)
    if len(ids) < vocabulary_size:
        ids[_MASK] = len(ids)
    if len(ids) != vocabulary_size:
        raise ConvertError(f"{path}: has {len(ids)} ids with the special ones, but the model has {vocabulary_size}")
    return ids


def _merges(path: Path) -> list[list[str]]:
    lines = read_text(path).split("\n")
    merges = []
    for number, line in enumerate(lines, start=1):
        if line == "" or (number == 1 and line.startswith("#version")):
            continue
        parts = line.split(" ")
        if len(parts) != 2 or "" in parts:
            raise ConvertError(f"{path}: line {number}: {line[:60]!r} is not two parts of a token")
        merges.append(parts)
    return merges


def _adds_space(folder: Path) -> bool:
    path = folder / "tokenizer_config.json"
    value = read_json_object(path).get("add_prefix_space", False) if path.is_file() else False
    if type(value) is not bool:
        raise ConvertError(f"{path}: add_prefix_space is {value!r}, not true or false")
    return value


def _tokenizer(ids: dict[str, int], merges: list[list[str]], adds_space: bool) -> dict[str, Any]:
    """As transformers saves a RobertaTokenizerFast."""
    special = [token for token in (*_FAIRSEQ_SPECIAL, _MASK) if token in ids]
    added = [
        {
            "id": ids[token],
            "content": token,
            "single_word": False,
            "lstrip": token == _MASK,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token in sorted(special, key=lambda token: ids[token])
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": adds_space,
            "trim_offsets": True,
            "use_regex": True,
        },
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": [_LAST, ids[_LAST]],
            "cls": [_FIRST, ids[_FIRST]],
            "trim_offsets": True,
            "add_prefix_space": adds_space,
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": merges,
        },
    }
