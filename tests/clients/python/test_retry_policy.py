"""The retry policy with a fake clock and fake random numbers."""

from __future__ import annotations

import random
from typing import Any

import grpc
import longshort
import pytest
from longshort import errors, retries
from longshort._proto import error_details_pb2
from longshort.retries import Attempts, RetryPolicy

FULL = longshort.ResourceExhausted("full", retry_after=3.0)
TOO_LARGE = longshort.ResourceExhausted("larger than max")
GONE = longshort.Unavailable("gone")
IN_USE = longshort.Aborted("in use")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def attempts(policy: RetryPolicy, timeout: float, clock: Clock, draw: float = 0.5, safe: bool = True) -> Attempts:
    return Attempts(policy, timeout, safe, clock=clock, draw=lambda: draw)


@pytest.mark.parametrize(
    ("error", "safe", "repeated"),
    [
        (GONE, True, True),
        (GONE, False, False),
        (FULL, True, True),
        (FULL, False, True),  # refused before anything was done
        (TOO_LARGE, True, False),
        (IN_USE, True, True),
        (IN_USE, False, True),
        (longshort.Unavailable("gone", may_retry=False), True, False),
        (longshort.Unavailable("Ssl handshake failed: CERTIFICATE_VERIFY_FAILED"), True, False),
        (longshort.Unavailable("SSL routines::certificate verify failed"), True, False),
        (longshort.Unavailable("SSL routines::wrong version number"), True, False),
        *(
            (errors.of_code(code, "x", retry_after=1.0), True, False)
            for code in grpc.StatusCode
            if code.name not in ("OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED")
        ),
    ],
)
def test_what_is_tried_again(error: longshort.LongshortError, safe: bool, repeated: bool) -> None:
    tries = attempts(RetryPolicy(), 60, Clock(), safe=safe)
    if repeated:
        assert tries.wait_after(error) > 0
        assert tries.failures == 1
    else:
        with pytest.raises(type(error)) as caught:
            tries.wait_after(error)
        assert caught.value is error


def test_waits_grow_to_the_longest_and_are_jittered() -> None:
    policy = RetryPolicy(attempts=9, first_wait=1, multiplier=2, longest_wait=10)
    for draw, share in ((0.0, 0.5), (0.5, 0.75), (0.999, 0.9995)):
        tries = attempts(policy, float("inf"), Clock(), draw)
        waits = [tries.wait_after(GONE) for _ in range(8)]
        assert waits == pytest.approx([share * wait for wait in (1, 2, 4, 8, 10, 10, 10, 10)])
        with pytest.raises(longshort.Unavailable):
            tries.wait_after(GONE)  # the ninth failure


def test_no_retry_comes_sooner_than_the_refusal_allows() -> None:
    die = random.Random(1)
    for _ in range(2000):
        retry_after = die.choice([0.0, 0.001, die.uniform(0, 2), die.uniform(0, 100)])
        policy = RetryPolicy(first_wait=die.uniform(0, 1), longest_wait=die.uniform(1, 20))
        refusal = longshort.ResourceExhausted("full", retry_after=retry_after)
        wait = policy.wait(refusal, die.randint(1, 200), die.random())
        assert retry_after <= wait <= retry_after * 1.1 + 1e-9


def test_no_wait_leads_past_the_deadline() -> None:
    die = random.Random(2)
    for _ in range(500):
        clock = Clock()
        timeout = die.uniform(0.1, 30)
        tries = Attempts(RetryPolicy(attempts=100), timeout, clock=clock, draw=die.random)
        end = clock.now + timeout
        with pytest.raises(longshort.LongshortError):
            while True:
                left = tries.remaining()
                assert left is not None and 0 < left < timeout + 1e-9
                clock.now += die.uniform(0, left)  # the try fails meanwhile
                clock.now += tries.wait_after(die.choice([GONE, FULL, IN_USE]))
                assert clock.now < end


def test_a_refusal_beyond_the_deadline_is_raised_at_once() -> None:
    with pytest.raises(longshort.ResourceExhausted) as caught:
        attempts(RetryPolicy(), 2.9, Clock()).wait_after(FULL)
    assert caught.value.retry_after == 3.0


def test_one_attempt_is_one_attempt() -> None:
    with pytest.raises(longshort.Unavailable):
        attempts(RetryPolicy(attempts=1), 60, Clock()).wait_after(GONE)


def test_a_stream_that_goes_on_has_all_attempts_again() -> None:
    tries = attempts(RetryPolicy(attempts=2), float("inf"), Clock())
    for _ in range(10):
        tries.wait_after(GONE)
        tries.succeeded()
    assert tries.remaining() is None


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"first_wait": -1.0}, {"multiplier": 0.5}, {"first_wait": 20.0}],
)
def test_policies_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        RetryPolicy(**wrong)


class Failed:
    """A gRPC call that failed with these trailers."""

    def __init__(self, **trailers: str | bytes) -> None:
        self._trailers = tuple((key.replace("_", "-"), value) for key, value in trailers.items())

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.RESOURCE_EXHAUSTED

    def details(self) -> str:
        return "full"

    def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return self._trailers


def retry_info(seconds: int, nanos: int = 0) -> bytes:
    info = error_details_pb2.RetryInfo(retry_delay=error_details_pb2.Delay(seconds=seconds, nanos=nanos))
    detail = error_details_pb2.Detail(type_url=errors.RETRY_INFO, value=info.SerializeToString())
    other = error_details_pb2.Detail(type_url="type.googleapis.com/google.rpc.Help", value=b"\xff")
    return error_details_pb2.ErrorStatus(details=[other, detail]).SerializeToString()


@pytest.mark.parametrize(
    ("trailers", "retry_after", "repeated"),
    [
        ({}, None, False),
        ({"grpc_retry_pushback_ms": "1500"}, 1.5, True),
        ({"grpc_status_details_bin": retry_info(2, 250_000_000)}, 2.25, True),
        ({"grpc_retry_pushback_ms": "1500", "grpc_status_details_bin": retry_info(2)}, 2.0, True),
        ({"grpc_retry_pushback_ms": "-1", "grpc_status_details_bin": retry_info(2)}, None, False),
        ({"grpc_retry_pushback_ms": "soon"}, None, False),
        ({"grpc_status_details_bin": b"\xff\xff"}, None, False),
    ],
)
def test_the_details_of_refusals(trailers: dict[str, str | bytes], retry_after: float | None, repeated: bool) -> None:
    error = errors.of_rpc(Failed(**trailers, longshort_queue_depth="12"), "mine")
    assert isinstance(error, longshort.ResourceExhausted)
    assert error.retry_after == retry_after
    assert error.queue_depth == 12
    assert error.request_id == "mine"
    assert retries.may_repeat(error, safe=False) == repeated


class Ended(grpc.RpcError):
    """A call that has ended."""

    def __init__(self, code: str, details: str, **trailers: str) -> None:
        self._code, self._details, self._trailers = grpc.StatusCode[code], details, trailers

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> list[tuple[str, str]]:
        return [(name.replace("_", "-"), value) for name, value in self._trailers.items()]


@pytest.mark.parametrize("details", ["Received RST_STREAM with error code 2", "Received unexpected eos", ""])
def test_an_internal_error_without_the_servers_trailers_is_a_lost_connection(details: str) -> None:
    error = errors.of_rpc(Ended("INTERNAL", details), "mine")
    assert isinstance(error, longshort.Unavailable)
    assert details in error.message
    assert attempts(RetryPolicy(), 60, Clock()).wait_after(error) > 0


@pytest.mark.parametrize("code", ["CANCELLED", "UNKNOWN"])
def test_other_codes_of_a_reset_stream_are_a_lost_connection(code: str) -> None:
    assert isinstance(errors.of_rpc(Ended(code, "Received RST_STREAM with error code 8"), ""), longshort.Unavailable)
    assert not isinstance(errors.of_rpc(Ended(code, "something else"), ""), longshort.Unavailable)


def test_the_servers_own_internal_error_and_this_clients_stay() -> None:
    of_server = errors.of_rpc(Ended("INTERNAL", "the model failed", x_request_id="1"), "")
    assert type(of_server) is longshort.Internal
    assert type(errors.of_rpc(Ended("INTERNAL", "Exception deserializing response!"), "")) is longshort.Internal


def lost_after(tries: Attempts, clock: Clock, seconds: float, why: str = "Connection reset by peer") -> float:
    tries.begin()
    clock.now += seconds
    return tries.wait_after(longshort.Unavailable(why))


def test_a_connection_lost_twice_after_the_same_silence_is_not_tried_again() -> None:
    clock = Clock()
    tries = attempts(RetryPolicy(), 600, clock)
    lost_after(tries, clock, 30)
    with pytest.raises(longshort.Unavailable, match="no message came for 31 s .* --ping-interval"):
        lost_after(tries, clock, 31)


def test_a_message_ends_the_silence() -> None:
    clock = Clock()
    tries = attempts(RetryPolicy(attempts=100), 600, clock)
    for _ in range(3):
        tries.begin()
        clock.now += 40
        tries.was_alive(clock.now - 1)
        tries.wait_after(longshort.Unavailable("Connection reset by peer"))


def test_other_losses_are_tried_again() -> None:
    clock = Clock()
    tries = attempts(RetryPolicy(attempts=100), 600, clock)
    for seconds in (30, 10, 1, 1, 1):
        lost_after(tries, clock, seconds)
    for _ in range(2):  # a server that does not start
        lost_after(tries, clock, 20, "failed to connect to all addresses")
    lost_after(tries, clock, 30)
    tries.succeeded()
    lost_after(tries, clock, 30)
