"""Conversations that the server remembers between calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect
from integration.running_stream import stream_that_stands_still
from integration.server_process import Server, wait_until


@pytest.fixture(scope="module")
def talking(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose sessions do not end during a test."""
    options = ("--session-time-to-live=1h", "--slow-reader-timeout=1h")
    with Server(repository, tmp_path_factory.mktemp("talking"), *options) as server:
        yield server


@pytest.fixture
def stub(api: SimpleNamespace, talking: Server) -> Any:
    return api.inference_grpc.InferenceStub(talking.channel)


def generate(api: SimpleNamespace, stub: Any, prompt: bytes | None, session: str | None) -> Any:
    request = api.inference.GenerateRequest(max_tokens=12, sampling={"seed": 1}, return_raw=True)
    if prompt is not None:
        request.prompt.raw = prompt
    if session is not None:
        request.session.id = session
    return stub.Generate(request, timeout=120)


def test_three_calls_say_what_one_call_says(api: SimpleNamespace, stub: Any) -> None:
    said = b""
    for prompt in (b"Once upon a time", b" there was", None):
        before = said + (prompt or b"")
        answer = generate(api, stub, prompt, "tale")
        alone = generate(api, stub, before, None)
        assert answer.completions[0].raw == alone.completions[0].raw
        said = before + answer.completions[0].raw
    assert answer.session_tokens == alone.usage.prompt_tokens + 12
    assert answer.usage.prompt_tokens == 0
    assert answer.usage.cached_tokens == answer.session_tokens - 13, "all but the token that was sampled last"


def test_a_stream_goes_on_too(api: SimpleNamespace, stub: Any) -> None:
    first = generate(api, stub, b"abc", "stream")
    request = api.inference.GenerateRequest(prompt={"text": "def"}, max_tokens=7, session={"id": "stream"})
    summary = list(stub.GenerateStream(request, timeout=120))[-1].summary
    assert summary.session_tokens == first.session_tokens + 3 + 7


def test_scoring_goes_on_and_scores_every_new_token(api: SimpleNamespace, stub: Any) -> None:
    generate(api, stub, b"hello", "scored")
    request = api.inference.ScoreTextRequest(inputs=[{"text": " world"}], session={"id": "scored"})
    answer = stub.ScoreText(request, timeout=120)
    assert answer.scores[0].scored_token_count == 6
    assert answer.scores[0].session_tokens == 5 + 12 + 6
    assert answer.usage.cached_tokens == 5 + 12 - 1
    request = api.inference.ScoreTextRequest(inputs=[{"text": "a"}, {"text": "b"}], session={"id": "scored"})
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "inputs", "session"):
        stub.ScoreText(request)


def test_an_echo_describes_every_new_token(api: SimpleNamespace, stub: Any) -> None:
    """With a session before it, the prompt's first token too."""
    fields = {"prompt": {"raw": b"abc"}, "echo": True, "token_log_probabilities": True, "max_tokens": 1}
    alone = stub.Generate(api.inference.GenerateRequest(**fields)).completions[0]
    assert [token.raw for token in alone.tokens[:-1]] == [b"b", b"c"]
    generate(api, stub, b"hello", "echoed")
    behind = stub.Generate(api.inference.GenerateRequest(session={"id": "echoed"}, **fields)).completions[0]
    assert [token.raw for token in behind.tokens[:-1]] == [b"a", b"b", b"c"]


def test_it_goes_on_only_from_what_its_client_knows(api: SimpleNamespace, stub: Any) -> None:
    def say(expected_tokens: int) -> Any:
        session = {"id": "known", "expected_tokens": expected_tokens}
        return stub.Generate(api.inference.GenerateRequest(prompt={"text": "abc"}, max_tokens=7, session=session))

    with expect.error(grpc.StatusCode.NOT_FOUND, "known"):
        say(5)
    assert say(0).session_tokens == 10
    for wrong in (0, 9, 11):
        with expect.error(grpc.StatusCode.FAILED_PRECONDITION, "known", "10", str(wrong)):
            say(wrong)
    assert say(10).session_tokens == 20
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "session.expected_tokens", "-1"):
        say(-1)


def test_a_client_does_not_see_anothers(api: SimpleNamespace, stub: Any) -> None:
    generate(api, stub, b"secret", "private")
    request = api.inference.GenerateRequest(session={"id": "private", "must_exist": True}, max_tokens=1)
    with expect.error(grpc.StatusCode.NOT_FOUND, "private"):
        stub.Generate(request, metadata=[("x-client-id", "mallory")])
    assert stub.Generate(request).session_tokens == 6 + 12 + 1


def test_two_calls_at_once(api: SimpleNamespace, talking: Server, stub: Any) -> None:
    running = stream_that_stands_still(api, talking, session="busy")
    with expect.error(grpc.StatusCode.ABORTED, "busy"):
        generate(api, stub, b"y", "busy")
    running.cancel()

    def is_free() -> bool:
        try:
            assert generate(api, stub, b"y", "busy").session_tokens == 13, "the cancelled call left nothing"
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.ABORTED
            return False
        return True

    wait_until(is_free)


def test_it_expires_without_calls(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--session-time-to-live=1s") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        assert generate(api, stub, b"short", "lived").session_tokens == 17
        wait_until(lambda: server.metric("longshort_sessions") == 0)  # though no call asks for one
        assert server.metric("longshort_session_tokens") == 0
        with expect.error(grpc.StatusCode.NOT_FOUND, "lived", "has expired"):
            generate(api, stub, b"too late", "lived")


def test_it_ends_when_it_is_closed(api: SimpleNamespace, talking: Server, stub: Any) -> None:
    sessions = api.sessions_grpc.SessionsStub(talking.channel)
    before, tokens = talking.metric("longshort_sessions"), talking.metric("longshort_session_tokens")
    generate(api, stub, b"hello", "closing")
    wait_until(lambda: talking.metric("longshort_sessions") == before + 1)
    wait_until(lambda: talking.metric("longshort_session_tokens") == tokens + 17)
    sessions.CloseSession(api.sessions.CloseSessionRequest(session_id="closing"))
    wait_until(lambda: talking.metric("longshort_sessions") == before)
    with expect.error(grpc.StatusCode.NOT_FOUND, "closing"):
        sessions.CloseSession(api.sessions.CloseSessionRequest(session_id="closing"))
    assert generate(api, stub, b"hello", "closing").session_tokens == 17, "the id may be used again"


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"session": {"id": ""}}, ("session.id",)),
        ({"session": {"id": "two words"}}, ("session.id", "two words")),
        ({"session": {"id": "x" * 129}}, ("session.id",)),
        ({"session": {"id": "fine"}, "completions": 2, "prompt": {"text": "x"}}, ("completions", "session")),
        ({"session": {"id": "nothing-said"}}, ("prompt",)),
    ],
)
def test_what_is_no_session_is_named(api: SimpleNamespace, stub: Any, fields: Any, parts: tuple[str, ...]) -> None:
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, *parts):
        stub.Generate(api.inference.GenerateRequest(**fields))
