"""The retry policy of failed calls, with the clock and the random numbers as parameters for tests.

It is also that of clients/cpp/running_call.h, which does not repeat a refused first connection.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from longshort import errors
from longshort.errors import LongshortError

# gRPC's messages for handshake errors that a retry will not fix, with BoringSSL and with OpenSSL.
_LASTING = (
    "CERTIFICATE_VERIFY_FAILED",
    "certificate verify failed",
    "WRONG_VERSION_NUMBER",
    "wrong version number",
    "Hostname Verification Check failed",
)
# gRPC's messages for connections that were lost after they had been established.
_LOST = ("reset", "RST_STREAM", "Socket closed", "closed by peer", "Broken pipe", "watchdog", "End of TCP stream")
# A connection that is lost after a silence of this many seconds, and again after about the same, is probably closed by
# a proxy because it is idle. Then another attempt would end in the same way.
_LONG_SILENCE = 5.0
_SAME_SILENCE = 0.2


@dataclass(frozen=True)
class RetryPolicy:
    """The number of attempts and the delays between them.

    Only calls that the server has not started, or that are safe to repeat, are retried:

    - RESOURCE_EXHAUSTED of a full server, after the delay that it sent (RetryInfo, grpc-retry-pushback-ms);
    - ABORTED, while another call uses the session;
    - UNAVAILABLE, unless an answer has begun, or the call continues a session without `expected_tokens`.
    """

    # Maximum number of attempts, including the first. 1 means no retries.
    attempts: int = 5
    # Seconds before the second attempt; each later wait is `multiplier` times as long, up to `longest_wait`. The actual
    # wait is a random value between half of that and all of it, so that clients do not retry simultaneously.
    first_wait: float = 0.5
    multiplier: float = 2.0
    longest_wait: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first_wait < 0 or self.multiplier < 1 or self.longest_wait < self.first_wait:
            raise ValueError(f"{self}: attempts and multiplier must be at least 1, and 0 <= first_wait <= longest_wait")

    def wait(self, error: LongshortError, failures: int, draw: float) -> float:
        """Returns the seconds to wait after `failures` consecutive failures. `draw`: a random number in [0, 1)."""
        backoff = min(self.longest_wait, self.first_wait * self.multiplier ** min(failures - 1, 64))
        if error.retry_after is None:
            return backoff * (1 + draw) / 2
        return _not_all_at_once(error.retry_after, draw)


DEFAULT_POLICY = RetryPolicy()
# For batch work that outlasts full or absent servers.
PATIENT = RetryPolicy(attempts=1 << 30, first_wait=0.2, longest_wait=10.0)


def _not_all_at_once(seconds: float, draw: float) -> float:
    """Lengthens a server's retry delay by up to 10 %, so that its clients do not retry simultaneously."""
    return seconds * (1 + 0.1 * draw)


def may_repeat(error: LongshortError, safe: bool) -> bool:
    """Whether the call may be retried. `safe`: the call is idempotent."""
    if not error.may_retry:
        return False
    if isinstance(error, errors.ResourceExhausted):
        return error.retry_after is not None  # otherwise the message is too large
    if isinstance(error, errors.Aborted):
        return True
    return isinstance(error, errors.Unavailable) and safe and not any(why in error.message for why in _LASTING)


def checked_timeout(timeout: float) -> float:
    """Raises TypeError if `timeout` is not a number."""
    if not isinstance(timeout, Real):
        raise TypeError(f"timeout is {timeout!r}; it must be a number of seconds, inf for no limit")
    return timeout


class Attempts:
    """The attempts of one call: their deadlines, and the decision to retry."""

    def __init__(
        self,
        policy: RetryPolicy,
        timeout: float,
        safe: bool = True,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`timeout`: seconds for all attempts and waits together; inf means no limit."""
        self._policy = policy
        self._safe = safe
        self._clock = clock
        self._draw = draw
        self._end = clock() + checked_timeout(timeout)
        # Consecutive failures.
        self.failures = 0
        # When the attempt began or made progress; the silence before the last failure.
        self._alive = clock()
        self._silence: float | None = None

    def begin(self) -> None:
        """An attempt begins."""
        self._alive = self._clock()

    def was_alive(self, at: float) -> None:
        """The attempt received a message at this time of the clock, perhaps no answer."""
        self._alive = max(self._alive, at)

    def remaining(self) -> float | None:
        """Begins an attempt. Returns its timeout for gRPC: seconds, or None for no limit."""
        self.begin()
        left = self._end - self._clock()
        return None if left == float("inf") else max(left, 0.0)

    def succeeded(self) -> None:
        """Records progress of a stream: a later failure counts as the first one."""
        self.failures = 0
        self._silence = None
        self.begin()

    def wait_after(self, error: LongshortError) -> float:
        """Returns the seconds to wait before the next attempt. Raises the error if there is none, or no time left."""
        if self.failures + 1 >= self._policy.attempts or not may_repeat(error, self._safe):
            raise error
        self._check_silence(error)
        return self.wait_until_better(error)

    def _check_silence(self, error: LongshortError) -> None:
        """Raises the error if the connection was lost twice after the same silence."""
        if not isinstance(error, errors.Unavailable) or not any(why in error.message for why in _LOST):
            return
        before, self._silence = self._silence, self._clock() - self._alive
        if before is None or min(before, self._silence) < _LONG_SILENCE:
            return
        if abs(before - self._silence) <= _SAME_SILENCE * max(before, self._silence):
            error.message += (
                f"; no message came for {self._silence:.0f} s before that, as in the attempt before: a proxy or load"
                " balancer probably closes idle connections. Raise its idle timeout, or set the server's"
                " --ping-interval and --keepalive-interval below it"
            )
            raise error

    def wait_until_better(self, error: LongshortError) -> float:
        """The same for an error that is known to be temporary."""
        self.failures += 1
        wait = self._policy.wait(error, self.failures, self._draw())
        if self._clock() + wait >= self._end:
            raise error
        return wait

    def wait_of_item(self, seconds: float) -> float:
        """The same for an item that was refused, and that may be sent again after these seconds."""
        return _not_all_at_once(seconds, self._draw())
