"""Random ListOps expressions and their values (Nangia and Bowman, 2018), also of Long Range Arena's lengths.

An expression is a digit, or an operator with 2 to 10 expressions: MIN, MAX, MED (the median, rounded down), SM (the sum
modulo 10), such as "[MAX 4 3 [MIN 2 3 ] 1 0 ]". Its length is its number of digits, "[OP" and "]".
"""

import random
from collections.abc import Callable

OPERATORS: dict[str, Callable[[list[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda values: (sorted(values)[(len(values) - 1) // 2] + sorted(values)[len(values) // 2]) // 2,
    "[SM": lambda values: sum(values) % 10,
}
MAX_DEPTH = 10
OPERATOR_SHARE = 0.25
LONG_RANGE_ARENA = range(501, 2000)


class _TooLongError(Exception):
    pass


def _grow(draw: random.Random, symbols: list[str], stop: int, depth: int = 1) -> int:
    """Appends a random expression to the symbols and returns its value. Gives up when there are `stop` symbols."""
    if len(symbols) >= stop:
        raise _TooLongError
    if depth >= MAX_DEPTH or draw.random() > OPERATOR_SHARE:
        value = draw.randrange(10)
        symbols.append(str(value))
        return value
    operator = draw.choice([*OPERATORS])
    symbols.append(operator)
    values = [_grow(draw, symbols, stop, depth + 1) for _ in range(draw.randint(2, 10))]
    symbols.append("]")
    return OPERATORS[operator](values)


def random_expressions(
    count: int, seed: int, lengths: range = LONG_RANGE_ARENA, bins: int = 1
) -> list[tuple[str, str]]:
    """Different expressions and their values. Each of `bins` equal parts of the lengths gets as many of them; with one
    part, most are short.
    """
    draw = random.Random(seed)
    missing = [count // bins + (one < count % bins) for one in range(bins)]
    found: dict[str, str] = {}
    while len(found) < count:
        symbols: list[str] = []
        try:
            value = _grow(draw, symbols, lengths.stop)
        except _TooLongError:
            continue
        if len(symbols) not in lengths:
            continue
        place = (len(symbols) - lengths.start + 1) * bins // (len(lengths) + 1)
        text = " ".join(symbols)
        if missing[place] and text not in found:
            missing[place] -= 1
            found[text] = str(value)
    rows = [*found.items()]
    draw.shuffle(rows)
    return rows
