"""fairseq's dict.txt: one "symbol count" per line. The symbol on line n (from 0) has id 4 + n."""

from __future__ import annotations

import re

from longshort_convert.errors import ConvertError

NO_TOKENIZER = "none"
BYTES = "fairseq_bytes"
CHARACTERS = "fairseq_characters"

_SPECIAL_SYMBOLS = 4
_LINE = re.compile(r"(.+) ([0-9]+)", re.DOTALL)
_MADE_UP_WORD = re.compile(r"madeupword[0-9]{4,}")


def check_vocabulary(content: str, name: str, vocabulary_size: int, tokenizer: str | None) -> str:
    """The tokenizer of the vocabulary: the given one, or the one that follows from its symbols.

    Raises ConvertError naming the file and an invalid line, or both sizes.
    """
    symbols = read_symbols(content, name)
    if _SPECIAL_SYMBOLS + len(symbols) > vocabulary_size:
        raise ConvertError(
            f"{name}: {_SPECIAL_SYMBOLS} + {len(symbols)} symbols, "
            f"but the checkpoint has {vocabulary_size} embedding rows"
        )
    wrong = {kind: _first_wrong(symbols, kind) for kind in (BYTES, CHARACTERS)}
    if tokenizer is None:
        tokenizer = next((kind for kind in wrong if wrong[kind] is None), None)
    if tokenizer is None:
        raise ConvertError(f"{name}: neither bytes ({wrong[BYTES]}) nor characters ({wrong[CHARACTERS]})")
    if wrong[tokenizer] is not None:
        raise ConvertError(f"{name}: {wrong[tokenizer]}")
    return tokenizer


def read_symbols(text: str, name: str) -> list[str]:
    line_of: dict[str, int] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], start=1):
        if line.endswith(" #fairseq:overwrite"):
            raise ConvertError(f"{name}: line {number}: #fairseq:overwrite is not supported")
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConvertError(f'{name}: line {number}: {line[:60]!r} is not "symbol count"')
        symbol = match[1]
        if symbol in line_of:
            raise ConvertError(f"{name}: line {number}: symbol {symbol[:60]!r} is already on line {line_of[symbol]}")
        line_of[symbol] = number
    return list(line_of)


def _first_wrong(symbols: list[str], tokenizer: str) -> str | None:
    """An error for the first symbol that is invalid for this tokenizer, or None."""
    for number, symbol in enumerate(symbols, start=1):
        if _MADE_UP_WORD.fullmatch(symbol):
            continue
        if tokenizer == BYTES and not _is_byte(symbol):
            return f"line {number}: symbol {symbol[:60]!r} is not the decimal number of a byte other than the newline"
        if tokenizer == CHARACTERS and (len(symbol) != 1 or symbol == " "):
            return f"line {number}: symbol {symbol[:60]!r} is not one character other than the space"
    return None


def _is_byte(symbol: str) -> bool:
    return symbol in _BYTE_SYMBOLS


# The newline has id 2.
_BYTE_SYMBOLS = frozenset(str(byte) for byte in range(256)) - {str(ord("\n"))}
