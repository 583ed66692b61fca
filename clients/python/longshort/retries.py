"""When a failed call is tried again, and when it is not. No clock and no randomness but what is passed in."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from longshort import errors
from longshort.errors import LongshortError

# What gRPC says of a handshake that another try will not change.
_LASTING = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "Hostname Verification Check failed")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how fast to try again.

    Tried again are only calls of which the server has done nothing, or whose repetition changes nothing:

    - RESOURCE_EXHAUSTED of a full server, which says when to come back (RetryInfo, grpc-retry-pushback-ms): not sooner;
    - ABORTED, while another call uses the session;
    - UNAVAILABLE, unless the call began to answer, or goes on in a session without `expected_tokens`.
    """

    # Tries in all, the first included. 1: none is repeated.
    attempts: int = 5
    # Seconds before the second try; each later wait is `multiplier` times as long, up to `longest_wait`. What is waited
    # is between half of that and all of it, so that clients that failed together do not come back together.
    first_wait: float = 0.5
    multiplier: float = 2.0
    longest_wait: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first_wait < 0 or self.multiplier < 1 or self.longest_wait < self.first_wait:
            raise ValueError(f"{self}: attempts and multiplier must be at least 1, and 0 <= first_wait <= longest_wait")

    def wait(self, error: LongshortError, failures: int, draw: float) -> float:
        """Seconds to wait after so many failures in a row; `draw` is a random number in [0, 1)."""
        backoff = min(self.longest_wait, self.first_wait * self.multiplier ** min(failures - 1, 64))
        if error.retry_after is None:
            return backoff * (1 + draw) / 2
        return not_all_at_once(error.retry_after, draw)


DEFAULT_POLICY = RetryPolicy()
# For work that goes on however long servers are full or away.
PATIENT = RetryPolicy(attempts=1 << 30, first_wait=0.2, longest_wait=10.0)


def not_all_at_once(seconds: float, draw: float) -> float:
    """A wait that a server told: never less, and up to a tenth more, so that its clients do not come back together."""
    return seconds * (1 + 0.1 * draw)


def may_repeat(error: LongshortError, safe: bool) -> bool:
    """Whether the call may be tried again. `safe`: doing it twice would change nothing."""
    if not error.may_retry:
        return False
    if isinstance(error, errors.ResourceExhausted):
        return error.retry_after is not None  # otherwise too large a message
    if isinstance(error, errors.Aborted):
        return True
    return isinstance(error, errors.Unavailable) and safe and not any(why in error.message for why in _LASTING)


def checked_timeout(timeout: float) -> float:
    """Raises TypeError for what is no number of seconds."""
    if not isinstance(timeout, Real):
        raise TypeError(f"timeout is {timeout!r}; it must be a number of seconds, inf for no limit")
    return timeout


class Attempts:
    """The tries of one call: when each must end, and whether there is another."""

    def __init__(
        self,
        policy: RetryPolicy,
        timeout: float,
        safe: bool = True,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`timeout`: seconds for all tries and waits together; inf is unlimited."""
        self._policy = policy
        self._safe = safe
        self._clock = clock
        self._draw = draw
        self._end = clock() + checked_timeout(timeout)
        # In a row.
        self.failures = 0

    def remaining(self) -> float | None:
        """Seconds that the next try may take, as gRPC wants it: None is unlimited."""
        left = self._end - self._clock()
        return None if left == float("inf") else max(left, 0.0)

    def succeeded(self) -> None:
        """A stream went on: what fails later is a new failure."""
        self.failures = 0

    def wait_after(self, error: LongshortError) -> float:
        """Seconds to wait before the next try. Raises the error if there is none, or no time for it."""
        if self.failures + 1 >= self._policy.attempts or not may_repeat(error, self._safe):
            raise error
        return self.wait_until_better(error)

    def wait_until_better(self, error: LongshortError) -> float:
        """The same for an error that is known to pass."""
        self.failures += 1
        wait = self._policy.wait(error, self.failures, self._draw())
        if self._clock() + wait >= self._end:
            raise error
        return wait
