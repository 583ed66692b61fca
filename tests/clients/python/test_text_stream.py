"""Generation is cancelled when its stream has no reader."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import longshort
import pytest
from integration import model_directory
from integration.server_process import BINARY, Server, wait_until

from clients.python.conftest import address
from clients.python.drivers import Driver

MANY = 60000


def active(server: Server) -> float:
    return server.metric("longshort_streams_active")


def cancelled(server: Server) -> float:
    return server.metric("longshort_requests_total", rpc="GenerateStream", code="CANCELLED")


@pytest.fixture
def before(server: Server) -> float:
    return cancelled(server)


def assert_cancelled_once(server: Server, before: float) -> None:
    wait_until(lambda: cancelled(server) == before + 1)
    wait_until(lambda: active(server) == 0)


def test_break_ends_the_work(driver: Driver, client: Any, server: Server, before: float) -> None:
    stream = client.generate("x", max_tokens=MANY)  # still held while the work ends
    assert len(driver.collect(stream, most=3)) == 3
    assert_cancelled_once(server, before)
    assert stream.text
    with pytest.raises(RuntimeError, match="not read to the end"):
        _ = stream.result


def test_an_exception_ends_the_work(driver: Driver, client: Any, server: Server, before: float) -> None:
    stream = client.generate("x", max_tokens=MANY)
    with pytest.raises(ArithmeticError):
        driver.leave_by_error(stream)
    assert_cancelled_once(server, before)


def test_the_end_of_a_with_ends_the_work(driver: Driver, client: Any, server: Server, before: float) -> None:
    stream = driver.enter(client.generate("x", max_tokens=MANY))
    wait = driver.collect(stream.deltas(), most=1)
    assert wait
    driver.leave(stream)
    assert_cancelled_once(server, before)


def test_a_stream_without_a_reader_ends(driver: Driver, client: Any, server: Server, before: float) -> None:
    deltas = client.generate("x", max_tokens=MANY).deltas()
    driver.done(deltas.__anext__() if driver.kind == "async" else next(deltas))
    del deltas
    gc.collect()
    driver.done(asyncio.sleep(0) if driver.kind == "async" else None)
    assert_cancelled_once(server, before)


def test_close_from_another_thread_ends_the_loop(server: Server, before: float) -> None:
    with longshort.Client(address(server)) as client:
        stream = client.generate("x", max_tokens=MANY)
        read: list[str] = []
        reader = threading.Thread(target=lambda: read.extend(stream))
        reader.start()
        wait_until(lambda: stream.text != "")
        stream.close()
        reader.join(60)
        assert not reader.is_alive()
    assert_cancelled_once(server, before)


def test_a_cancelled_task_ends_the_work(server: Server, before: float) -> None:
    async def read_until_cancelled() -> None:
        async with longshort.AsyncClient(address(server)) as client:
            stream = client.generate("x", max_tokens=MANY)

            async def read() -> None:
                async for _ in stream:
                    pass

            task = asyncio.create_task(read())
            while stream.text == "":
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(read_until_cancelled())
    assert_cancelled_once(server, before)


def test_a_cancelled_task_ends_a_call_with_one_answer(server: Server) -> None:
    async def ask() -> None:
        async with longshort.AsyncClient(address(server)) as client:
            task = asyncio.create_task(client.score("x" * 400_000))
            running = server.metric("longshort_requests_total", rpc="ScoreText", code="CANCELLED")
            while await asyncio.to_thread(active, server) == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while server.metric("longshort_requests_total", rpc="ScoreText", code="CANCELLED") == running:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(ask(), 60))


def test_the_timeout_ends_a_stream_and_keeps_what_came(driver: Driver, client: Any) -> None:
    stream = client.generate("x", max_tokens=MANY, timeout=0.5)
    with pytest.raises(longshort.DeadlineExceeded):
        driver.collect(stream)
    assert stream.text


def test_a_stream_is_not_retried_after_its_first_message(driver: Driver, repository: Any, tmp_path: Any) -> None:
    with Server(repository, tmp_path) as server:
        client = driver.client(address(server))
        stream = client.generate("x", max_tokens=MANY, timeout=60)
        deltas = stream.deltas()
        driver.done(deltas.__anext__() if driver.kind == "async" else next(deltas))
        server.process.kill()
        with pytest.raises(longshort.Unavailable):
            driver.collect(deltas)
        assert stream.text
        driver.done(client.close())


def test_the_ids_are_the_text_of_a_model_without_vocabulary(driver: Driver, tmp_path: Path) -> None:
    model = model_directory.write(tmp_path / "repository")
    (model / "vocabulary.txt").unlink()
    (model / "config.json").write_text(json.dumps({**model_directory.CONFIG, "tokenizer": "none"}))
    with Server(tmp_path / "repository", tmp_path / "server") as server:
        client = driver.enter(driver.client(address(server)))
        stream = client.generate([5, 6, 7], max_tokens=4, seed=1)
        pieces = driver.collect(stream)
        ids = [token.id for token in stream.result.completions[0].tokens]
        assert len(ids) == 4
        assert "".join(pieces) == stream.text == stream.result.completions[0].text == " ".join(map(str, ids))
        driver.leave(client)
        for option in ((), ("--no-stream",), ("--raw",)):
            command = (
                BINARY.with_name("longshort"),
                f"--server={address(server)}",
                "generate",
                "--ids",
                "--prompt=5 6 7",
            )
            answer = subprocess.run(
                (*command, "--max-tokens=4", "--seed=1", *option), check=True, capture_output=True, text=True
            )
            assert answer.stdout.split() == [str(id) for id in ids]


def test_tokens_without_text_of_a_model_with_vocabulary_are_no_ids(driver: Driver, client: Any) -> None:
    """The incomplete characters of a byte model."""
    stream = client.generate("x", max_tokens=30, seed=3, token_log_probabilities=True)
    driver.collect(stream)
    completion = stream.result.completions[0]
    assert completion.text == b"".join(token.raw for token in completion.tokens).decode(errors="replace")
