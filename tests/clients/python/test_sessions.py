"""Conversations: begun by use, continued, moved, closed."""

from __future__ import annotations

import io
import stat
import subprocess
from pathlib import Path
from typing import Any

import longshort
import pytest
from integration.server_process import BINARY, Server, wait_until
from longshort import session_file

from clients.python.conftest import address
from clients.python.drivers import Driver


def finish(driver: Driver, session: Any, prompt: str | None, **options: Any) -> Any:
    return driver.done(session.generate(prompt, temperature=0, **options).finish())


def test_a_session_goes_on_where_it_ended(driver: Driver, client: Any) -> None:
    """The result equals that of one prompt with the whole text."""
    session = driver.enter(client.session())
    assert session.tokens == 0
    first = finish(driver, session, "It was ", max_tokens=5)
    assert session.tokens == first.session_tokens == len("It was ") + 5
    pieces = driver.collect(session.generate(" But ", temperature=0, max_tokens=5))
    assert session.tokens == len("It was ") + 5 + len(" But ") + 5
    ids = driver.done(client.tokenize("It was " + first.text + " But ")).ids
    if len(ids) == len("It was ") + 5 + len(" But "):  # the tiny model writes what is no UTF-8, too
        whole = driver.done(client.generate(ids, temperature=0, max_tokens=5).finish())
        assert "".join(pieces) == whole.text
    more = finish(driver, session, None, max_tokens=3)
    assert more.usage.prompt_tokens == 0
    score = driver.done(session.score("the end"))
    assert score.scored_token_count == len("the end")
    assert session.tokens == score.session_tokens
    driver.leave(session)
    with pytest.raises(longshort.NotFound):
        finish(driver, session, "x", max_tokens=1)


def test_a_session_that_ended_meanwhile_is_left_quietly(driver: Driver, client: Any) -> None:
    session = driver.enter(client.session())
    finish(driver, session, "x", max_tokens=1)
    driver.done(session.close())
    driver.leave(session)


def test_a_session_is_found_again_by_its_id(driver: Driver, client: Any) -> None:
    name = f"talk-{driver.kind}"
    tokens = finish(driver, client.session(name, tokens=0), "It was ", max_tokens=2).session_tokens
    with pytest.raises(longshort.FailedPrecondition):
        finish(driver, client.session(name, tokens=tokens - 1), "x", max_tokens=1)
    again = client.session(name)
    assert again.tokens is None
    finish(driver, again, "x", max_tokens=1)
    assert again.tokens == tokens + 2
    driver.done(again.close())


def test_a_stream_that_was_left_keeps_what_was_read(driver: Driver, client: Any) -> None:
    """The next call waits until the server has noticed the cancellation (ABORTED is retried)."""
    session = driver.enter(client.session())
    first = finish(driver, session, "It was ", max_tokens=2, return_raw=True).completions[0]
    before = session.tokens
    stream = session.generate("x", temperature=0, max_tokens=60000, return_raw=True)
    read = driver.collect(stream.deltas(), most=3)
    kept = session.tokens
    assert kept == before + 1 + sum(delta.token_count for delta in read)
    answer = finish(driver, session, "y", max_tokens=8, return_raw=True)
    assert session.tokens == kept + 1 + 8
    whole = b"It was " + first.raw + b"x" + b"".join(delta.raw for delta in read) + b"y"
    expected = driver.done(client.generate(whole, temperature=0, max_tokens=8, return_raw=True).finish())
    assert answer.completions[0].raw == expected.completions[0].raw, "it goes on from there"
    driver.leave(session)


def test_a_first_turn_that_was_left_before_anything_was_read_is_begun_again(driver: Driver, client: Any) -> None:
    session = driver.enter(client.session())
    assert driver.collect(session.generate("It was ", max_tokens=60000).messages(), most=1)  # the start
    finish(driver, session, "y", max_tokens=1)
    assert session.tokens == 2
    driver.leave(session)


def test_without_keep_partial_a_stream_that_was_left_changes_nothing(driver: Driver, client: Any) -> None:
    session = driver.enter(client.session())
    finish(driver, session, "It was ", max_tokens=2)
    before = session.tokens
    assert driver.collect(session.generate("x", max_tokens=60000, keep_partial=False), most=1)
    assert session.tokens == before
    finish(driver, session, "y", max_tokens=1)
    assert session.tokens == before + 2
    driver.leave(session)


def test_a_client_that_lost_its_place_is_told(driver: Driver, client: Any) -> None:
    name = f"lost-{driver.kind}"
    session = client.session(name, tokens=0)
    finish(driver, session, "It was ", max_tokens=2)
    assert driver.collect(session.generate("x", max_tokens=60000), most=2)
    place = session.tokens
    finish(driver, client.session(name, tokens=place), "y", max_tokens=1)  # another client goes on
    with pytest.raises(longshort.FailedPrecondition, match=f"holds {place + 2} tokens, not the expected {place}"):
        finish(driver, session, "z", max_tokens=1)
    with pytest.raises(longshort.InvalidArgument, match="keep_partial"):
        driver.done(client.generate("x", keep_partial=True).finish())


@pytest.fixture
def other(repository: Path, key: Path, tmp_path: Path) -> Any:
    """Another server with the same session key."""
    with Server(repository, tmp_path / "other", f"--session-key-file={key}") as server:
        yield server


def test_a_session_moves_to_another_server(driver: Driver, client: Any, other: Server, tmp_path: Path) -> None:
    session = client.session(f"moves-{driver.kind}", tokens=0)
    finish(driver, session, "It was ", max_tokens=5)
    path = tmp_path / "talk.session"
    assert driver.done(session.export(path)).session_tokens == session.tokens
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.glob("talk.session*")) == [path], "nothing is left beside"
    stayed = finish(driver, session, " But ", max_tokens=20)

    there = driver.client(address(other))
    moved = driver.done(there.import_session("moved", path))
    assert moved.tokens == stayed.session_tokens - len(" But ") - 20
    assert finish(driver, moved, " But ", max_tokens=20).text == stayed.text

    taken = there.session("taken")
    finish(driver, taken, "It was not ", max_tokens=5)
    with pytest.raises(longshort.AlreadyExists):
        driver.done(there.import_session("taken", path))
    listed = {each.session_id: each for each in driver.done(there.list_sessions())}
    assert set(listed) == {"moved", "taken"}
    assert listed["moved"].session_tokens == moved.tokens
    assert not listed["moved"].in_use

    memory = io.BytesIO()
    driver.done(moved.export(memory))
    memory.seek(0)
    driver.done(driver.done(there.import_session("again", memory)).close())
    driver.done(there.close())
    driver.done(session.close())


def test_files_are_those_of_the_cpp_client(driver: Driver, client: Any, server: Server, tmp_path: Path) -> None:
    def longshort_session(*arguments: str | Path) -> None:
        program = [BINARY.with_name("longshort"), f"--server={address(server)}", "session", *arguments]
        subprocess.run(program, check=True, timeout=60)

    name = f"shared-{driver.kind}"
    session = client.session(name, tokens=0)
    finish(driver, session, "It was ", max_tokens=5)
    driver.done(session.export(tmp_path / "ours"))
    longshort_session("import", f"{name}-2", tmp_path / "ours")
    longshort_session("export", f"{name}-2", tmp_path / "theirs")
    imported = driver.done(client.import_session(f"{name}-3", tmp_path / "theirs"))
    assert imported.tokens == session.tokens
    for one in (session, client.session(f"{name}-2"), imported):
        driver.done(one.close())


def test_a_file_that_is_no_session(driver: Driver, client: Any, tmp_path: Path) -> None:
    session = client.session(f"cut-{driver.kind}", tokens=0)
    finish(driver, session, "It was ", max_tokens=5)
    whole = tmp_path / "whole"
    driver.done(session.export(whole))
    driver.done(session.close())
    content = whole.read_bytes()
    for wrong in (content[:-5], b"\xff" * 20, content[:1]):
        (tmp_path / "wrong").write_bytes(wrong)
        with pytest.raises(ValueError, match=r"wrong is not an exported session, or is damaged"):
            driver.done(client.import_session("wrong", tmp_path / "wrong"))
    with pytest.raises(FileNotFoundError):
        driver.done(client.import_session("wrong", tmp_path / "none"))
    changed = bytearray(content)
    changed[-1] ^= 1
    (tmp_path / "changed").write_bytes(changed)
    with pytest.raises(longshort.LongshortError):
        driver.done(client.import_session("wrong", tmp_path / "changed"))


def test_a_file_that_is_not_written_to_its_end_is_none(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"what was there")
    with pytest.raises(ArithmeticError), session_file.written(path) as file:
        file.write(b"half")
        raise ArithmeticError
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"what was there"]


def test_an_export_that_fails_changes_no_file(driver: Driver, client: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"what was there")
    with pytest.raises(longshort.NotFound):
        driver.done(client.session("stranger").export(path))
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"what was there"]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Records the clients' waits before retries, which take no time here."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("longshort._sync.transport.sleep", waited.append)
    monkeypatch.setattr("longshort._async.transport.sleep", wait)
    return waited


def test_a_call_to_a_lost_server_is_retried_only_with_known_tokens(
    driver: Driver, repository: Path, tmp_path: Path, waits: list[float]
) -> None:
    """UNAVAILABLE may follow a complete answer. With `tokens` unknown, no call is retried."""
    with Server(repository, tmp_path) as server:
        client = driver.client(address(server))
        known, unknown = client.session("known", tokens=0), client.session("unknown")
        finish(driver, known, "It was ", max_tokens=1)
    calls = {
        "generate": lambda session: finish(driver, session, "x", max_tokens=1),
        "score": lambda session: driver.done(session.score("xy")),
    }
    for name, call in calls.items():
        with pytest.raises(longshort.Unavailable):
            call(unknown)
        assert waits == [], name
        with pytest.raises(longshort.Unavailable):
            call(known)
        assert len(waits) == 4, name  # five tries
        waits.clear()
    driver.done(client.close())


def test_the_calls_of_a_session_go_to_one_of_several_servers(driver: Driver, server: Server, other: Server) -> None:
    """Other calls use both in turn. Another client finds the session, whatever the order of its addresses."""

    def asked(one: Server) -> float:
        return one.metric("longshort_requests_total", rpc="Tokenize")

    client = driver.client([address(server), address(other)])
    before = asked(server), asked(other)
    for _ in range(6):
        driver.done(client.tokenize("x"))
    wait_until(lambda: (asked(server) - before[0], asked(other) - before[1]) == (3, 3))

    sessions = [client.session(f"several-{driver.kind}-{i}", tokens=0) for i in range(8)]
    for _ in range(3):
        for session in sessions:
            finish(driver, session, "x", max_tokens=1)
    assert [session.tokens for session in sessions] == [6] * 8
    held = [one.metric("longshort_sessions") for one in (server, other)]
    assert all(held), "both have some"
    second = driver.client(f"{address(other)},{address(server)}")
    for session in sessions:
        finish(driver, second.session(session.id, tokens=6), "x", max_tokens=1)
        driver.done(second.session(session.id).close())
    driver.done(client.close())
    driver.done(second.close())
