"""The number of unanswered documents of a server, adapted to its load. Callers pass in the time."""

from __future__ import annotations

# The window at the beginning.
_FIRST_SIZE = 8
# Below this share of the usual rate, the server must have other clients, too.
_MIN_USUAL_SHARE = 0.6
# Minimum gain of rate by a doubled window, on a server with other clients.
_MIN_GAIN = 1.1
# Shares of a document's time until its answer that it waits. Above the first, a larger window gains nothing. Above the
# second, the server's queue is needlessly long. Documents also wait for their batch, and for the network.
_WAIT_ENOUGH = 0.85
_WAIT_TOO_LONG = 0.9
# Weight of the last round in the usual rate: rounds differ by a fifth.
_WEIGHT = 0.3
# Factor by which the usual rate decreases each round.
_FORGETTING = 0.995
# Fixed cost of a document, in tokens.
_DOCUMENT_COST = 500
_ROUND_SECONDS = 0.3
_MAX_PAUSE = 32


class AdaptiveWindow:
    """Adapts after each round: about two windows of answers, and at least 0.3 s.

    - The window grows up to the documents that the server works on at a time, until most of their time is waiting.
    - It shrinks when the server refuses documents, or answers far fewer than usual, since other clients use it.
    - On a server with other clients, it grows only while the rate increases.
    """

    def __init__(self) -> None:
        # Documents that the server works on at a time (Limits.window). It does not read further ahead.
        self.max_size = _FIRST_SIZE
        # Maximum number of unanswered documents.
        self.size = _FIRST_SIZE
        # Usual work in a second; 0: not known yet.
        self._usual = 0.0
        # Whether other clients use the server.
        self._shared = False
        # The window before a larger one on trial, and its rate.
        self._before: tuple[int, float] | None = None
        # Rounds until the next trial.
        self._pause = 0
        self._next_pause = 2
        self._starved = False
        self._begun: float | None = None
        self._answers = 0
        self._work = 0
        self._seconds = self._served_seconds = 0.0

    def on_starved(self) -> None:
        """The window had room for more documents than were waiting, so this round does not count."""
        self._starved = self._begun is not None

    def on_answer(self, tokens: int, seconds: float, served_seconds: float, now: float) -> None:
        """A document was answered.

        seconds         from sending it to its answer
        served_seconds  the part of them in which the server worked on it
        now             seconds of any steady clock
        """
        if self._begun is None:
            self._begun = now
            return
        self._answers += 1
        self._work += tokens + _DOCUMENT_COST
        self._seconds += seconds
        self._served_seconds += min(seconds, served_seconds)
        if self._answers >= 2 * self.size and now - self._begun >= _ROUND_SECONDS:
            self._end_round(now - self._begun)
            self._begin_round(now)

    def on_refusal(self) -> None:
        """The server has refused documents, or was lost."""
        self._shrink(max(1, self.size // 2))
        self._begin_round(None)

    def _begin_round(self, now: float | None) -> None:
        self._begun, self._answers, self._work, self._starved = now, 0, 0, False
        self._seconds = self._served_seconds = 0.0

    def _end_round(self, elapsed: float) -> None:
        if self._starved:
            return
        rate = self._work / elapsed
        waited = 1 - self._served_seconds / self._seconds if self._seconds > 0 else 0.0
        if waited > _WAIT_TOO_LONG and self.size > 1:
            self.size = max(1, self.size * 4 // 5)
            self._before = None
        elif rate >= _MIN_USUAL_SHARE * self._usual:
            self._shared, self._before = False, None
            before = self._usual or rate
            self._usual = max((1 - _WEIGHT) * before + _WEIGHT * rate, _FORGETTING * before)
            if waited < _WAIT_ENOUGH:
                self.size = min(self.max_size, 2 * self.size)
        elif not self._shared:
            self._shrink(max(1, round(self.size * rate / self._usual)))
        else:
            self._usual *= _FORGETTING
            self._try_more(rate)

    def _shrink(self, size: int) -> None:
        self.size, self._shared, self._before = size, True, None
        self._pause = self._next_pause = 2

    def _try_more(self, rate: float) -> None:
        if self._before is not None and rate < _MIN_GAIN * self._before[1]:
            self.size, self._before = self._before[0], None
            self._pause, self._next_pause = self._next_pause, min(_MAX_PAUSE, 2 * self._next_pause)
        elif self._pause > 0:
            self._pause -= 1
        elif self.size < self.max_size:
            self._before = (self.size, rate)
            self.size = min(self.max_size, 2 * self.size)
