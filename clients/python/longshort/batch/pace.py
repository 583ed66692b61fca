"""How many documents a server is given at once. No clock but what is passed in."""

from __future__ import annotations

# Documents at the beginning: enough for a look at what more would bring.
_FIRST = 8
# Twice as many documents must bring so much more work done, or there were enough.
_LEAST_GAIN = 1.03
# A server that has as much waiting as it works on is full: more would bring nothing. With three times as much, its
# queue is long for nothing.
_WAIT_ENOUGH = 0.5
_WAIT_TOO_LONG = 0.75
# When so little of the usual is done with as many documents, others use the server, too, and its queue grows.
_LARGEST_DROP = 0.6
# How much the last round counts in what is usual: rounds differ by a fifth.
_WEIGHT = 0.3
_ROUND_SECONDS = 0.3
_LONGEST_PAUSE = 32


class Pace:
    """The window adapts: it grows while that pays, and shrinks when the server refuses, when documents mostly wait
    there, or when it does less of them than it did.

    It looks back after each round: about two windows of answers, and at least 0.3 s. A window that others make too
    large is made smaller by as much as the server does less: so what waits of it there takes no longer than before.
    """

    def __init__(self) -> None:
        # Documents that the server works on at a time (Limits.window): it reads no more ahead.
        self.most = _FIRST
        # How many documents may be unanswered.
        self.size = _FIRST
        # Work a second with this window; 0: not known yet.
        self._usual = 0.0
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

    def answered(self, work: int, seconds: float, served_seconds: float, now: float) -> None:
        """A document was answered.

        work            its tokens
        seconds         from its being sent to its answer
        served_seconds  of those, while the server worked on it
        now             any steady clock's seconds
        """
        if self._begun is None:
            self._begun = now
            return
        self._answers += 1
        self._work += work
        self._seconds += seconds
        self._served_seconds += min(seconds, served_seconds)
        if self._answers >= 2 * self.size and now - self._begun >= _ROUND_SECONDS:
            self._look_back(now - self._begun)
            self._begin_round(now)

    def refused(self) -> None:
        """The server is full, or was lost."""
        self._settle(max(1, self.size // 2), 0.0)
        self._pause = 4
        self._begin_round(None)

    def _begin_round(self, now: float | None) -> None:
        self._begun, self._answers, self._work, self._starved = now, 0, 0, False
        self._seconds = self._served_seconds = 0.0

    def _look_back(self, elapsed: float) -> None:
        rate = self._work / elapsed
        waited = 1 - self._served_seconds / self._seconds if self._seconds > 0 else 0.0
        if self._starved:
            if self._before is not None:
                self._settle(*self._before)
        elif self._before is not None and rate < _LEAST_GAIN * self._before[1]:
            self._settle(*self._before)
            self._pause, self._next_pause = self._next_pause, min(_LONGEST_PAUSE, 2 * self._next_pause)
        elif rate < _LARGEST_DROP * self._usual:
            self._settle(max(1, round(self.size * rate / self._usual)), rate)
            self._pause, self._next_pause = 2, 2
        elif waited > _WAIT_TOO_LONG and self.size > 1:
            self._settle(max(1, self.size * 4 // 5), rate)
            self._pause = 2
        else:
            self._before = None
            self._usual = rate if self._usual == 0 else (1 - _WEIGHT) * self._usual + _WEIGHT * rate
            self._try_more(waited)

    def _try_more(self, waited: float) -> None:
        if self._pause > 0:
            self._pause -= 1
        elif self.size < self.most and waited < _WAIT_ENOUGH:
            self._before = (self.size, self._usual)
            self.size, self._usual = min(self.most, 2 * self.size), 0.0

    def _settle(self, size: int, usual: float) -> None:
        self.size, self._usual, self._before = size, usual, None
