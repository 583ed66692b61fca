"""Surprise by region: how many bits a language model needs for each window of a document's tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def region_bits(log_probabilities: Sequence[float], window: int) -> list[float]:
    """-log2 of the probabilities, added up over each window of `window` tokens of the document.

    log_probabilities  [tokens - 1], nats: of the document's tokens from the second one on
    returns            [ceil(tokens / window)], bits; the first token is in the first window and costs nothing, the last
                       window may be shorter
    """
    if window < 1:
        raise ValueError(f"window is {window}; it must be at least 1 token")
    ends = [0, *range(window - 1, len(log_probabilities), window), len(log_probabilities)]
    if ends[-2] == ends[-1] and len(ends) > 2:
        ends.pop()
    return [_bits(log_probabilities[begin:end]) for begin, end in zip(ends, ends[1:], strict=False)]


def _bits(log_probabilities: Iterable[float]) -> float:
    return -math.fsum(log_probabilities) / math.log(2) + 0.0
