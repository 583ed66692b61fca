"""Bits by region: how many bits a language model needs for each region of a document's tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence


class Regions:
    """Sums -log2 of the tokens' probabilities over each region of the document."""

    def __init__(self, window: int) -> None:
        """`window`: tokens in each region. The last region may have fewer."""
        if window < 1:
            raise ValueError(f"window is {window}; it must be at least 1 token")
        self._window = window
        # The first token is in the first region, and needs no bits.
        self._tokens = 1
        self._nats = [0.0]

    def add(self, log_probabilities: Sequence[float]) -> None:
        """Adds the log-probabilities of the next tokens, in nats. The document's second token is the first."""
        begin = 0
        while begin < len(log_probabilities):
            if self._tokens % self._window == 0:
                self._nats.append(0.0)
            end = min(len(log_probabilities), begin + self._window - self._tokens % self._window)
            self._nats[-1] -= math.fsum(log_probabilities[begin:end])
            self._tokens += end - begin
            begin = end

    def bits(self) -> list[float]:
        """[ceil(tokens / window)]"""
        return [nats / math.log(2) for nats in self._nats]


def region_bits(log_probabilities: Sequence[float], window: int) -> list[float]:
    """The bits of each region of a whole document.

    log_probabilities  [tokens - 1]
    """
    regions = Regions(window)
    regions.add(log_probabilities)
    return regions.bits()
