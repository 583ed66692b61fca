"""How many documents a server is given at once. No clock but what is passed in."""

from __future__ import annotations

# Documents at the beginning: enough for a look at what more would bring.
_FIRST = 8
# A server with as much waiting as it works on is full: more would bring nothing.
_WAIT_ENOUGH = 0.5
# Above that its queue is long for nothing, or others use it, too: then less is right.
_TOO_LONG_A_WAIT = 0.67
# More documents must bring so much more work done, or there were enough.
_LEAST_GAIN = 1.03
_ROUND_SECONDS = 0.3
_LONGEST_PAUSE = 32


class Pace:
    """The window adapts: it grows while that pays, and shrinks when the server refuses or when documents mostly wait.

    It looks back after each round: about two windows of answers, and at least 0.3 s.
    """

    def __init__(self) -> None:
        # Documents that the server works on at a time (Limits.window): it reads no more ahead.
        self.most = _FIRST
        # How many documents may be unanswered.
        self.size = _FIRST
        # What a window was that was left for a larger one, and how much was done with it.
        self._before: tuple[int, float] | None = None
        self._pause = 0
        self._next_pause = 2
        # As long as more has always paid, it is twice as much.
        self._doubling = True
        self._starved = False
        self._begun: float | None = None
        self._answers = 0
        self._work = 0
        self._seconds = 0.0
        self._served_seconds = 0.0

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
        self._served_seconds += min(served_seconds, seconds)
        if self._answers >= 2 * self.size and now - self._begun >= _ROUND_SECONDS:
            self._look_back(now - self._begun)
            self._begin_round(now)

    def refused(self) -> None:
        """The server is full, or was lost."""
        self.size = max(1, self.size // 2)
        self._before, self._doubling = None, False
        self._pause = 4
        self._begin_round(None)

    def _begin_round(self, now: float | None) -> None:
        self._begun, self._answers, self._work, self._starved = now, 0, 0, False
        self._seconds = self._served_seconds = 0.0

    def _look_back(self, elapsed: float) -> None:
        if self._starved:
            self._before = None
            return
        rate = self._work / elapsed
        waited = 1 - self._served_seconds / self._seconds if self._seconds > 0 else 0.0
        before, self._before = self._before, None
        if before is not None and rate < _LEAST_GAIN * before[1]:
            self.size, self._doubling = before[0], False
            self._pause, self._next_pause = self._next_pause, min(_LONGEST_PAUSE, 2 * self._next_pause)
        elif waited > _TOO_LONG_A_WAIT and self.size > 1:
            self.size = max(1, self.size * 4 // 5)
            self._pause, self._doubling = 2, False
        elif self._pause > 0:
            self._pause -= 1
        elif self.size < self.most and waited < _WAIT_ENOUGH:
            self._before = (self.size, rate)
            self.size = min(self.most, self.size + max(1, self.size if self._doubling else self.size // 2))
