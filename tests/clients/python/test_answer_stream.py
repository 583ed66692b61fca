"""Any number of documents over one stream: their order, reading of the source, and restarts of servers."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import longshort
import pytest
from integration import model_directory
from integration.server_process import Server, wait_until
from longshort._proto import inference_pb2
from longshort.window import Window

from clients.python.conftest import address, stall
from clients.python.drivers import Driver


def texts(count: int) -> Iterator[str]:
    """Documents whose lengths identify their positions."""
    return ("x" * (2 + i % 50) for i in range(count))


def assert_each_once(answers: list[longshort.TextScore], count: int) -> None:
    assert [answer.id for answer in answers] == list(range(count))
    assert [answer.token_count for answer in answers] == [2 + i % 50 for i in range(count)]


def test_answers_come_in_order(driver: Driver, client: Any) -> None:
    assert_each_once(driver.collect(client.score_stream(texts(500))), 500)
    assert_each_once(driver.collect(client.score_stream(texts(5), timeout=float("inf"))), 5)


def test_or_as_they_are_done(driver: Driver, client: Any) -> None:
    """Short documents overtake a long one within the window."""
    documents = ["x" * 50_000, *texts(40)]
    answers = driver.collect(client.score_stream(documents, ordered=False, window=8))
    places = [answer.id for answer in answers]
    assert places[0] != 0
    assert sorted(places) == list(range(41))


def test_no_documents_no_call(driver: Driver, client: Any, server: Server) -> None:
    before = server.metric("longshort_requests_total", rpc="ScoreTexts")
    assert driver.collect(client.score_stream([])) == []
    assert server.metric("longshort_requests_total", rpc="ScoreTexts") == before


def test_the_source_is_read_no_further_than_the_window(driver: Driver, client: Any) -> None:
    """The source is endless. For n answers, at most n - 1 + window documents are read."""
    read = 0

    def source() -> Iterator[str]:
        nonlocal read
        for _ in itertools.count():
            read += 1
            yield "xy"

    stream = client.score_stream(source(), window=4)
    assert len(driver.collect(stream, most=10)) == 10
    assert 10 <= read <= 10 - 1 + 4


def test_an_answer_that_is_there_does_not_wait_for_a_document(server: Server) -> None:
    """The stream reads the third document after it has returned the first answer."""
    answered: list[int] = []
    stream: longshort.AnswerStream[longshort.TextScore]

    def source() -> Iterator[str]:
        yield "one"
        wait_until(lambda: stream._stream is not None and stream._stream.ready())
        yield "two"
        assert answered, "the first one's answer came before"
        yield "three"

    with longshort.Client(address(server)) as client:
        stream = client.score_stream(source())
        for answer in stream:
            answered.append(answer.id)
    assert answered == [0, 1, 2]


def test_nor_does_it_for_one_that_is_awaited(server: Server) -> None:
    answered: list[int] = []
    stream: longshort.AsyncAnswerStream[longshort.TextScore]

    async def source() -> AsyncIterator[str]:
        yield "one"
        while stream._stream is None or not await stream._stream.ready():
            await asyncio.sleep(0.01)
        yield "two"
        assert answered, "the first one's answer came before"
        yield "three"

    async def score() -> None:
        nonlocal stream
        async with longshort.AsyncClient(address(server)) as client:
            stream = client.score_stream(source())
            async for answer in stream:
                answered.append(answer.id)

    asyncio.run(asyncio.wait_for(score(), 60))
    assert answered == [0, 1, 2]


def test_asynchronous_sources(server: Server) -> None:
    async def source() -> AsyncIterator[str]:
        for text in texts(100):
            await asyncio.sleep(0)
            yield text

    async def score() -> list[longshort.TextScore]:
        async with longshort.AsyncClient(address(server)) as client:
            return [answer async for answer in client.score_stream(source())]

    assert_each_once(asyncio.run(score()), 100)


def test_what_is_wrong_with_one_document_is_its_own(driver: Driver, client: Any) -> None:
    good, bad, more = driver.collect(client.score_stream(["xy", "", "xyz"]))
    assert (good.token_count, more.token_count) == (2, 3)
    assert bad.error.code == grpc.StatusCode.INVALID_ARGUMENT and bad.id == 1
    assert bad.log_likelihood != bad.log_likelihood, "NaN"
    with pytest.raises(longshort.InvalidArgument, match="item 1: "):
        bad.raise_for_error()


def test_what_is_wrong_with_all_ends_the_stream(driver: Driver, client: Any) -> None:
    with pytest.raises(longshort.NotFound, match="no model stranger"):
        driver.collect(client.score_stream(texts(1000), model="stranger"))
    with pytest.raises(ValueError, match="window is 0"):
        client.score_stream(texts(1), window=0)
    with pytest.raises(ValueError, match="timeout is -1"):
        client.score_stream(texts(1), timeout=-1)


def test_an_error_is_raised_though_many_documents_are_in_flight(driver: Driver, server: Server) -> None:
    """gRPC's asynchronous calls may lose their status when a message can no longer be sent. Here most of them do."""
    client = driver.client(address(server), retry=longshort.RetryPolicy(attempts=1))
    for _ in range(10):
        with pytest.raises(longshort.NotFound, match="no model stranger"):
            driver.collect(client.score_stream(["x" * 300_000] * 20, model="stranger", window=10))
    driver.done(client.close())


def test_an_error_of_the_source_is_raised_and_ends_the_call(driver: Driver, client: Any, server: Server) -> None:
    def source() -> Iterator[str]:
        yield from texts(10)
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        driver.collect(client.score_stream(source()))
    wait_until(lambda: server.metric("longshort_streams_active") == 0)


def test_break_ends_the_call(driver: Driver, client: Any, server: Server) -> None:
    before = server.metric("longshort_requests_total", rpc="ScoreTexts", code="CANCELLED")
    stream = client.score_stream(itertools.repeat("x" * 200))
    assert len(driver.collect(stream, most=20)) == 20
    wait_until(lambda: server.metric("longshort_requests_total", rpc="ScoreTexts", code="CANCELLED") == before + 1)
    assert driver.collect(stream) == []


def test_a_server_that_stalls_is_left(driver: Driver, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path) as server:
        client = driver.client(address(server))

        def source() -> Iterator[str]:
            yield from texts(100)
            stall(server)
            yield from texts(100)

        with pytest.raises(longshort.DeadlineExceeded, match="no answer arrived within 3 s"):
            driver.collect(client.score_stream(source(), timeout=3))
        with pytest.raises(longshort.DeadlineExceeded):
            driver.done(client.score("xy", timeout=0.5))
        server.process.send_signal(signal.SIGCONT)
        driver.done(client.close())


class Pair:
    """Two servers. One at a time stops or dies, and restarts at its port."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self._repository = repository
        self._folder = folder
        self._number = itertools.count()
        self.servers = [self._start(0), self._start(0)]
        self.addresses = [address(server) for server in self.servers]

    def _start(self, port: int) -> Server:
        return Server(self._repository, self._folder / str(next(self._number)), grpc_port=port)

    def replace(self, place: int, gently: bool) -> None:
        with self.servers[place] as server:
            if gently:
                server.terminate()
                assert server.wait() == 0
        self.servers[place] = self._start(server.grpc_port)

    def close(self) -> None:
        for server in self.servers:
            server.__exit__()


@pytest.fixture
def pair(repository: Path, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(repository, tmp_path)
    yield pair
    pair.close()


def test_servers_come_and_go(driver: Driver, pair: Pair) -> None:
    """Each server stops once and dies once during 10,000 documents. No document is lost or answered twice."""
    count = 10_000
    taken = 0
    replaced: list[int] = []

    def replace_servers() -> None:
        for number, (place, gently) in enumerate([(0, True), (1, False), (0, False), (1, True)]):
            wait_until(lambda number=number: taken > 1500 * (number + 1))
            pair.replace(place, gently)
            replaced.append(taken)

    def replacing_keeps_up() -> bool:
        return taken <= 1500 * (len(replaced) + 2) or len(replaced) == 4

    def source() -> Iterator[str]:
        nonlocal taken
        for text in texts(count):
            taken += 1
            wait_until(replacing_keeps_up)
            yield text

    replacing = threading.Thread(target=replace_servers)
    replacing.start()
    client = driver.client(pair.addresses)
    answers = driver.collect(client.score_stream(source()))
    replacing.join(60)
    assert len(replaced) == 4
    assert_each_once(answers, count)
    assert not any(answer.error for answer in answers)
    driver.done(client.close())


def restarted_at(places: Sequence[int], restart: Callable[[], None], count: int) -> Iterator[str]:
    """Yields documents, and restarts a server before some of them."""
    for place, text in enumerate(texts(count)):
        if place in places:
            restart()
        yield text


def test_one_server_comes_back(driver: Driver, repository: Path, tmp_path: Path) -> None:
    """Without another server, the stream waits. The server dies as often as the policy has attempts, since each answer
    resets them."""
    servers = [Server(repository, tmp_path / "0")]
    policy = longshort.RetryPolicy(attempts=4, first_wait=1.5, longest_wait=3)
    client = driver.client(address(servers[0]), retry=policy)

    def restart() -> None:
        servers[-1].__exit__()
        servers.append(Server(repository, tmp_path / str(len(servers)), grpc_port=servers[0].grpc_port))

    documents = restarted_at([150, 300, 450, 600], restart, 750)
    try:
        assert_each_once(driver.collect(client.score_stream(documents)), 750)
    finally:
        servers[-1].__exit__()
    driver.done(client.close())


def test_one_version_scores_all_documents(driver: Driver, tmp_path: Path) -> None:
    """A restarted server with another version gets the rest only if it also has the first version."""
    model_directory.write(tmp_path / "models", version=1)
    servers = [Server(tmp_path / "models", tmp_path / "0")]
    patient = longshort.RetryPolicy(attempts=20, first_wait=1.5, longest_wait=3)
    client = driver.client(address(servers[0]), retry=patient)

    def restart() -> None:
        servers[-1].__exit__()
        if not (tmp_path / "models/tiny/2").exists():
            model_directory.write(tmp_path / "models", version=2, seed=2)
        servers.append(Server(tmp_path / "models", tmp_path / "1", grpc_port=servers[0].grpc_port))

    stream = client.score_stream(restarted_at([150], restart, 300))
    found: list[longshort.TextScore] = []
    try:
        with pytest.raises(longshort.NotFound, match="tiny"):
            found += driver.collect(stream)
        assert [model.version for model in driver.done(client.models())] == [2]
    finally:
        servers[-1].__exit__()
    driver.done(client.close())


def test_no_server_at_any_address(driver: Driver, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path) as server:
        gone = address(server)
    client = driver.client(gone, retry=longshort.RetryPolicy(attempts=3, first_wait=0.01))
    with pytest.raises(longshort.Unavailable, match="likely cause: cannot connect to 127.0.0.1"):
        driver.collect(client.score_stream(texts(5)))
    driver.done(client.close())


def answer(id: int) -> inference_pb2.ScoreTextsResponse:
    return inference_pb2.ScoreTextsResponse(id=id)


def test_the_window_takes_each_answer_once() -> None:
    window = Window(3, ordered=True)
    for text in ("a", "b", "c"):
        assert window.has_room()
        window.add(text)
    assert not window.has_room()
    window.answer(answer(1))
    window.answer(answer(7))
    assert window.take() is None, "0 is not there"
    assert [request.id for request in window.unanswered()] == [0, 2]
    assert not window.has_room(), "an answer that waits has its place"
    window.answer(answer(0))
    window.answer(answer(0))
    assert [one.id for one in iter(window.take, None)] == [0, 1]
    assert window.has_room() and window.count_unanswered() == 1
