"""How the window of a server adapts."""

from __future__ import annotations

import pytest
from longshort.batch.run.adaptive_window import AdaptiveWindow


class Simulated:
    """A server of so many places, which takes a second for each document; others may take some of its places. What is
    asked beyond its places waits."""

    def __init__(self, places: int, most: int = 64) -> None:
        self.places = places
        self.window = AdaptiveWindow()
        self.window.max_size = most
        self.now = 0.0

    def run(self, seconds: float) -> float:
        """Returns the documents answered in a second."""
        end, done = self.now + seconds, 0
        while self.now < end:
            self.now += 1.0
            working = min(self.window.size, self.places)
            until_answered = self.window.size / working
            for _ in range(working):
                self.window.on_answer(100, until_answered, 1.0, self.now)
                done += 1
        return done / seconds


@pytest.mark.parametrize("places", [1, 2, 4, 16, 32, 64])
def test_the_window_grows_until_the_server_is_full_and_no_further(places: int) -> None:
    server = Simulated(places)
    server.run(200)
    assert server.run(1000) == pytest.approx(places, rel=0.05)
    sizes = set()
    for _ in range(1000):
        server.run(1)
        sizes.add(server.window.size)
    assert places <= min(sizes) and max(sizes) <= 10 * places


def test_the_window_is_never_above_what_the_server_works_on() -> None:
    server = Simulated(1000, most=20)
    server.run(100)
    assert server.window.size == 20


def test_places_that_others_take_are_given_up_and_taken_again() -> None:
    server = Simulated(32)
    server.run(100)
    assert server.window.size >= 32
    server.places = 2
    server.run(300)
    assert server.window.size <= 6
    server.places = 32
    server.run(300)
    assert server.window.size >= 32


def test_a_refusal_halves_the_window_down_to_one() -> None:
    window = AdaptiveWindow()
    sizes = []
    for _ in range(5):
        sizes.append(window.size)
        window.on_refusal()
    assert sizes == [8, 4, 2, 1, 1]


def test_rounds_without_enough_documents_change_nothing() -> None:
    window = AdaptiveWindow()
    window.max_size = 64
    for second in range(100):
        for _ in range(8):
            window.on_answer(100, 1.0, 1.0, float(second))
            window.on_starved()
    assert window.size == 8
