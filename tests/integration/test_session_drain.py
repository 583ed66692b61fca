"""`longshort session drain`: all sessions of a server go on at another one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect, tokens
from integration.running_stream import stream_that_stands_still
from integration.server_process import BINARY, Server, wait_until
from integration.session_calls import drain_command, expect_same, list_sessions, say, write_key
from integration.test_envoy import NO_RETRIES, started

NOT_FOUND = grpc.StatusCode.NOT_FOUND
DENIED = grpc.StatusCode.PERMISSION_DENIED
REFUSED, UNAVAILABLE, OTHER = 2, 3, 5


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"--session-key-file={write_key(tmp_path_factory.mktemp('keys'), 'key')}"


# Tests share the servers, and each has its own names: a session that has moved does not begin again where it was.
@pytest.fixture(scope="module")
def here(repository: Path, key: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(repository, tmp_path_factory.mktemp("here"), key) as server:
        yield server


@pytest.fixture(scope="module")
def there(repository: Path, key: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(repository, tmp_path_factory.mktemp("there"), key) as server:
        yield server


def drain(server: Server, to: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """Its exit code, its summary, and what it says of what went wrong."""
    done = subprocess.run(drain_command(server, to, *options), capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def address(server: Server) -> str:
    return f"127.0.0.1:{server.grpc_port}"


def close_all(api: SimpleNamespace, server: Server) -> None:
    stub = api.sessions_grpc.SessionsStub(server.channel)
    for session in list_sessions(api, server, all_owners=True):
        request = api.sessions.CloseSessionRequest(session_id=session.session_id, owner=session.owner)
        stub.CloseSession(request, timeout=30)


def test_everybodys_sessions_go_on_there_as_if_they_had_never_moved(
    api: SimpleNamespace, here: Server, there: Server, repository: Path, tmp_path: Path
) -> None:
    clients: list[tokens.Metadata] = [[], [("x-client-id", "alice")], [("x-client-id", "bob")]]
    with Server(repository, tmp_path) as never_moved:
        for number, client in enumerate(clients):
            for server in (here, never_moved):
                for session in ("talk", f"own-{number}"):
                    say(api, server, session, f"Once upon a time there were {number} towers, and " * 8, client, seed=7)
        code, summary, errors = drain(here, address(there))
        assert (code, errors) == (0, "")
        assert summary["moved"] == 6
        assert summary["left"] == 0
        assert summary["bytes"] > 0
        assert list_sessions(api, here, all_owners=True) == []
        listed = list_sessions(api, there, all_owners=True)
        names = [(session.owner, session.session_id) for session in listed]
        assert names == [(o, s) for n, o in enumerate(("", "alice", "bob")) for s in (f"own-{n}", "talk")]
        for number, client in enumerate(clients):
            for session in ("talk", f"own-{number}"):
                with expect.error(NOT_FOUND, f"session {session} has moved to another server"):
                    say(api, here, session, "x", client)
                moved = say(api, there, session, "in it", client, seed=7)
                stayed = say(api, never_moved, session, "in it", client, seed=7)
                expect_same(moved.completions[0], stayed.completions[0])
                assert moved.usage == stayed.usage, "nothing was read again"
        assert drain(here, address(there))[1]["moved"] == 0, "none is left"
    # And back: what has moved away may come again.
    assert drain(there, address(here))[:2][0] == 0
    assert say(api, here, "talk", "x").session_tokens > 0
    close_all(api, here)


def test_a_session_in_use_is_waited_for(api: SimpleNamespace, here: Server, there: Server) -> None:
    for session in ("busy", "idle"):
        say(api, here, session, "hello")
    stream = stream_that_stands_still(api, here, "busy")
    code, summary, errors = drain(here, address(there), "--drain-timeout=3s")
    assert code == OTHER
    assert (summary["moved"], summary["left"]) == (1, 1)
    assert "session busy, model tiny/1, was not moved: ABORTED: a call is using the session" in errors
    say(api, here, "late", "hello")
    command = drain_command(here, address(there))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        wait_until(lambda: there.metric("longshort_sessions") == 2)
        assert running.poll() is None
        stream.cancel()
        assert running.wait(60) == 0
        assert json.loads(running.stdout.read())["moved"] == 2
    close_all(api, there)


def test_what_a_target_that_dies_did_not_take_is_left_for_a_second_try(
    api: SimpleNamespace, here: Server, there: Server, repository: Path, key: str, tmp_path: Path
) -> None:
    for session in ("held", "free"):
        say(api, here, session, "hello")
    stream = stream_that_stands_still(api, here, "held")
    with Server(repository, tmp_path, key) as dies:
        command = drain_command(here, address(dies), "--drain-timeout=10s")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            wait_until(lambda: dies.metric("longshort_sessions") == 1)
            dies.process.kill()
            dies.wait()
            stream.cancel()
            assert running.wait(60) == UNAVAILABLE
            assert "session held, model tiny/1, was not moved: UNAVAILABLE" in running.stderr.read()
    assert [session.session_id for session in list_sessions(api, here)] == ["held"]
    assert drain(here, address(there))[0] == 0
    assert say(api, there, "held", "x").session_tokens == 45 + 41
    close_all(api, there)


def test_what_an_earlier_try_moved_is_only_closed(api: SimpleNamespace, here: Server, there: Server) -> None:
    """As if the answers to its imports had been lost."""
    stub = api.sessions_grpc.SessionsStub(here.channel)
    for session in ("moved", "gone-on", "went-on"):
        say(api, here, session, "hello")
        parts = list(stub.ExportSession(api.sessions.ExportSessionRequest(session_id=session), timeout=30))
        messages = [api.sessions.ImportSessionRequest(beginning={"session_id": session, "keep_owner": True})]
        messages += [api.sessions.ImportSessionRequest(part=part) for part in parts]
        api.sessions_grpc.SessionsStub(there.channel).ImportSession(iter(messages), timeout=30)
    further = say(api, there, "gone-on", "there").session_tokens
    latest = say(api, here, "went-on", "here").session_tokens
    say(api, here, "other", "mine")
    say(api, there, "other", "yours")
    code, summary, errors = drain(here, address(there))
    assert code == REFUSED
    assert (summary["moved"], summary["left"]) == (3, 1)
    expected = "session other, model tiny/1, was not moved: ALREADY_EXISTS: another session other already exists"
    assert expected in errors
    held = {session.session_id: session.session_tokens for session in list_sessions(api, there)}
    assert held["gone-on"] == further
    assert held["went-on"] == latest
    assert [session.session_id for session in list_sessions(api, here)] == ["other"], "it was not ended"
    for server in (here, there):
        close_all(api, server)


def test_a_session_that_is_led_back_to_its_server_stays_there(api: SimpleNamespace, here: Server) -> None:
    tokens_before = say(api, here, "led-back", "hello").session_tokens
    code, summary, errors = drain(here, address(here), "--drain-timeout=3s")
    assert code == OTHER
    assert (summary["moved"], summary["left"]) == (0, 1)
    assert "this server exported the session" in errors
    assert list_sessions(api, here)[0].session_tokens == tokens_before
    close_all(api, here)


def test_a_server_that_only_waits_to_stop_is_drained(
    api: SimpleNamespace, there: Server, repository: Path, key: str, tmp_path: Path
) -> None:
    with Server(repository, tmp_path, key, "--drain-delay=60s") as stopping:
        say(api, stopping, "talk", "hello")
        stopping.terminate()
        wait_until(lambda: stopping.http("/readyz")[0] == 503)
        assert drain(stopping, address(there))[0] == 0
        code, summary, errors = drain(there, address(stopping), "--drain-timeout=3s")
        assert (code, summary["left"]) == (UNAVAILABLE, 1)
        assert "the server is stopping" in errors, "it takes none"
    close_all(api, there)


OPERATOR = "scopes=infer,sessions,manage"


def write_token(folder: Path, token: str) -> str:
    path = folder / token
    path.write_text(token)
    return f"--token-file={path}"


def test_sessions_of_identities_stay_theirs_and_moving_them_needs_the_scope_manage(
    api: SimpleNamespace, repository: Path, key: str, tmp_path: Path
) -> None:
    lines = [tokens.line(name, name) for name in ("alice", "bob")]
    file = tokens.write(tmp_path / "tokens", *lines, tokens.line("operator", "operator", OPERATOR))
    options = (key, f"--token-file={file}")
    alice, phone = tokens.bearer("alice"), tokens.bearer("alice", "phone")
    with (
        Server(repository, tmp_path / "here", *options) as here,
        Server(repository, tmp_path / "there", *options) as there,
    ):
        held = [say(api, here, "talk", "x" * n, who).session_tokens for n, who in ((5, alice), (7, phone))]
        own = list_sessions(api, here, metadata=alice)
        assert [(session.owner, session.session_id) for session in own] == [
            ("/alice/phone", "talk"),
            ("/alice/", "talk"),
        ]
        assert list_sessions(api, here, metadata=tokens.bearer("bob")) == []
        with expect.error(DENIED, "ListSessions with all_owners needs the scope manage"):
            list_sessions(api, here, all_owners=True, metadata=alice)
        stub = api.sessions_grpc.SessionsStub(here.channel)
        request = api.sessions.ExportSessionRequest(session_id="talk", owner="/alice/phone")
        assert list(stub.ExportSession(request, metadata=alice, timeout=30)), "her own"
        with expect.error(DENIED, "ExportSession with another's owner needs the scope manage"):
            list(stub.ExportSession(request, metadata=tokens.bearer("bob"), timeout=30))
        close = api.sessions.CloseSessionRequest(session_id="talk", owner="/alice/phone")
        with expect.error(DENIED, "CloseSession with another's owner needs the scope manage"):
            stub.CloseSession(close, metadata=tokens.bearer("bob"), timeout=30)
        begin = api.sessions.ImportSessionRequest(beginning={"session_id": "talk", "keep_owner": True})
        with expect.error(DENIED, "ImportSession with beginning.keep_owner needs the scope manage"):
            stub.ImportSession(iter([begin]), metadata=alice, timeout=30)

        code, _, errors = drain(here, address(there), write_token(tmp_path, "alice"))
        assert code == REFUSED
        assert "ListSessions with all_owners needs the scope manage" in errors
        assert drain(here, address(there), write_token(tmp_path, "operator"))[0] == 0
        assert [say(api, there, "talk", "y", who).session_tokens for who in (alice, phone)] == [n + 41 for n in held]
        must = {"must_exist": True}
        for stranger in (tokens.bearer("bob"), tokens.bearer("operator"), tokens.bearer("bob", "phone")):
            with expect.error(NOT_FOUND, "there is no session", "talk"):
                say(api, there, "talk", "y", stranger, session_options=must)


def test_sessions_do_not_move_between_servers_with_and_without_tokens(
    api: SimpleNamespace, here: Server, repository: Path, key: str, tmp_path: Path
) -> None:
    file = tokens.write(tmp_path / "tokens", tokens.line("operator", "operator", OPERATOR))
    say(api, here, "open", "hello", [("x-client-id", "alice")])
    with Server(repository, tmp_path / "guarded", key, f"--token-file={file}") as guarded:
        token = write_token(tmp_path, "operator")
        code, _, errors = drain(here, address(guarded), token)
        assert code == REFUSED
        assert 'the session\'s owner is "alice"; here it must be /IDENTITY/CLIENT' in errors
        assert drain(guarded, address(here), token)[0] == 0, "it has none"
    close_all(api, here)


def test_a_target_that_asks_to_wait_is_waited_for(
    api: SimpleNamespace, repository: Path, key: str, tmp_path: Path
) -> None:
    files = [
        tokens.write(tmp_path / name, tokens.line("operator", "operator", f"{OPERATOR}{limit}"))
        for name, limit in (("free", ""), ("limited", " calls-per-second=5"))
    ]
    with (
        Server(repository, tmp_path / "here", key, f"--token-file={files[0]}") as here,
        Server(repository, tmp_path / "there", key, f"--token-file={files[1]}") as there,
    ):
        for number in range(12):
            say(api, here, f"talk-{number}", "hello", tokens.bearer("operator"))
        code, summary, errors = drain(here, address(there), write_token(tmp_path, "operator"))
        assert (code, errors) == (0, "")
        assert summary["moved"] == 12
        assert there.log().count("code=RESOURCE_EXHAUSTED") > 0


def test_pages_are_checked(api: SimpleNamespace, here: Server) -> None:
    for number in range(5):
        say(api, here, f"page-{number}", "hello")
    stub = api.sessions_grpc.SessionsStub(here.channel)
    request = api.sessions.ListSessionsRequest(page_size=2)
    seen = []
    while True:
        page = stub.ListSessions(request, timeout=30)
        assert len(page.sessions) <= 2
        seen += [session.session_id for session in page.sessions]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == [f"page-{number}" for number in range(5)]
    for wrong, part in (
        ({"page_size": -1}, "page_size is -1; it must be in [0, 2147483647]"),
        ({"page_token": "nothing"}, 'page_token is "nothing"; it must be the token of the previous page'),
        ({"page_token": "alice/talk"}, "page_token"),
    ):
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, part):
            stub.ListSessions(api.sessions.ListSessionsRequest(**wrong), timeout=30)
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "expected_tokens is -1; it must be at least 0"):
        stub.CloseSession(api.sessions.CloseSessionRequest(session_id="page-0", expected_tokens=-1), timeout=30)
    listing = subprocess.run(
        [BINARY.with_name("longshort"), f"--server={address(here)}", "session", "list"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert listing.stdout.splitlines()[1].split()[:4] == ["tiny/1", "-", "page-0", "45"]
    close_all(api, here)


def test_through_a_proxy_sessions_are_found_where_its_ring_leads(
    api: SimpleNamespace, repository: Path, key: str, tmp_path: Path
) -> None:
    """As long as the proxy takes the server for a healthy one, it leads the sessions back there."""
    names = [f"talk-{number}" for number in range(12)]
    with (
        Server(repository, tmp_path / "first", key, "--drain-delay=60s") as first,
        Server(repository, tmp_path / "second", key) as second,
        started(tmp_path / "envoy", (first, second)) as proxy,
        proxy.new_channel(NO_RETRIES) as channel,
    ):
        stub = api.inference_grpc.InferenceStub(channel)

        def go_on(session: str, expected: int) -> int:
            wanted = {"id": session, "expected_tokens": expected}
            question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=2, session=wanted)
            return stub.Generate(question, timeout=30, metadata=[("x-session-id", session)]).session_tokens

        held = {name: go_on(name, 0) for name in names}
        mine = first.metric("longshort_sessions")
        assert 0 < mine < len(names), "both have some"
        ca = tmp_path / "proxy.pem"
        ca.write_bytes(proxy.authority.pem)
        command = drain_command(first, f"127.0.0.1:{proxy.port}", f"--to-tls-ca={ca}", "--to-tls-server-name=localhost")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            wait_until(lambda: first.log().count("this server exported the session") > mine)
            assert first.metric("longshort_sessions") == mine
            first.terminate()
            assert running.wait(60) == 0
            assert json.loads(running.stdout.read())["moved"] == mine
        assert second.metric("longshort_sessions") == len(names)
        for name in names:
            assert go_on(name, held[name]) == held[name] + 3
