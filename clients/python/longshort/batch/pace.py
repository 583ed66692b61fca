"""How many documents a server is given at once. No clock but what is passed in."""

from __future__ import annotations

# Documents at the beginning.
_FIRST = 8
# With so little of the usual work a second, others use the server, too.
_LARGEST_DROP = 0.6
# What twice as many documents must bring, to a server that others use, too.
_LEAST_GAIN = 1.1
# Shares of the time until the answer in which the server did not work on a document: with the first, more documents
# bring nothing; with the second, its queue is long for nothing. Documents also wait for a batch, and on their way.
_WAIT_ENOUGH = 0.85
_WAIT_TOO_LONG = 0.9
# How much the last round counts in what is usual: rounds differ by a fifth.
_WEIGHT = 0.3
# How fast what was usual is forgotten.
_FORGETTING = 0.995
# What a document costs beside its tokens, in tokens.
_DOCUMENT_COST = 500
_ROUND_SECONDS = 0.3
_LONGEST_PAUSE = 32


class Pace:
    """The window adapts. It grows up to what the server works on, as long as documents do not mostly wait there. It
    shrinks when the server refuses, or does much less of them than usual, since others use it; then it grows only
    while that pays.

    It looks back after each round: about two windows of answers, and at least 0.3 s.
    """

    def __init__(self) -> None:
        # Documents that the server works on at a time (Limits.window): it reads no more ahead.
        self.most = _FIRST
        # How many documents may be unanswered.
        self.size = _FIRST
        # Work a second; 0: not known yet.
        self._usual = 0.0
        # Whether others use the server.
        self._yielding = False
        # The window that was left for a larger one on trial, and what was done with it.
        self._before: tuple[int, float] | None = None
        # Rounds until the next trial.
        self._pause = 0
        self._next_pause = 2
        self._starved = False
        self._begun: float | None = None
        self._answers = 0
        self._work = 0
        self._seconds = self._served_seconds = 0.0

    def starved(self) -> None:
        """There were fewer documents than room: this round tells nothing."""
        self._starved = True

    def answered(self, tokens: int, seconds: float, served_seconds: float, now: float) -> None:
        """A document was answered.

        seconds         from its being sent to its answer
        served_seconds  of those, while the server worked on it
        now             any steady clock's seconds
        """
        if self._begun is None:
            self._begun = now
            return
        self._answers += 1
        self._work += tokens + _DOCUMENT_COST
        self._seconds += seconds
        self._served_seconds += min(seconds, served_seconds)
        if self._answers >= 2 * self.size and now - self._begun >= _ROUND_SECONDS:
            self._look_back(now - self._begun)
            self._begin_round(now)

    def refused(self) -> None:
        """The server is full, or was lost."""
        self._yield_to_others(max(1, self.size // 2))
        self._begin_round(None)

    def _begin_round(self, now: float | None) -> None:
        self._begun, self._answers, self._work, self._starved = now, 0, 0, False
        self._seconds = self._served_seconds = 0.0

    def _look_back(self, elapsed: float) -> None:
        if self._starved:
            return
        rate = self._work / elapsed
        waited = 1 - self._served_seconds / self._seconds if self._seconds > 0 else 0.0
        if waited > _WAIT_TOO_LONG and self.size > 1:
            self.size = max(1, self.size * 4 // 5)
            self._before = None
        elif rate >= _LARGEST_DROP * self._usual:
            self._yielding, self._before = False, None
            before = self._usual or rate
            self._usual = max((1 - _WEIGHT) * before + _WEIGHT * rate, _FORGETTING * before)
            if waited < _WAIT_ENOUGH:
                self.size = min(self.most, 2 * self.size)
        elif not self._yielding:
            self._yield_to_others(max(1, round(self.size * rate / self._usual)))
        else:
            self._usual *= _FORGETTING
            self._try_more(rate)

    def _yield_to_others(self, size: int) -> None:
        self.size, self._yielding, self._before = size, True, None
        self._pause = self._next_pause = 2

    def _try_more(self, rate: float) -> None:
        if self._before is not None and rate < _LEAST_GAIN * self._before[1]:
            self.size, self._before = self._before[0], None
            self._pause, self._next_pause = self._next_pause, min(_LONGEST_PAUSE, 2 * self._next_pause)
        elif self._pause > 0:
            self._pause -= 1
        elif self.size < self.most:
            self._before = (self.size, rate)
            self.size = min(self.most, 2 * self.size)
