"""Conversations that the server remembers between calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect
from integration.server_process import Server, wait_until

TIME_TO_LIVE = 3.0


@pytest.fixture(scope="module")
def talking(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose sessions end soon."""
    folder = tmp_path_factory.mktemp("talking")
    with Server(repository, folder, f"--session-time-to-live={TIME_TO_LIVE:.0f}s") as server:
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
    return stub.Generate(request, timeout=20)


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
    summary = list(stub.GenerateStream(request, timeout=20))[-1].summary
    assert summary.session_tokens == first.session_tokens + 3 + 7


def test_scoring_goes_on_and_scores_every_new_token(api: SimpleNamespace, stub: Any) -> None:
    generate(api, stub, b"hello", "scored")
    request = api.inference.ScoreTextRequest(inputs=[{"text": " world"}], session={"id": "scored"})
    answer = stub.ScoreText(request, timeout=20)
    assert answer.scores[0].scored_token_count == 6
    assert answer.scores[0].session_tokens == 5 + 12 + 6
    assert answer.usage.cached_tokens == 5 + 12 - 1
    request = api.inference.ScoreTextRequest(inputs=[{"text": "a"}, {"text": "b"}], session={"id": "scored"})
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "inputs", "session"):
        stub.ScoreText(request)


def test_a_client_does_not_see_anothers(api: SimpleNamespace, stub: Any) -> None:
    generate(api, stub, b"secret", "private")
    request = api.inference.GenerateRequest(session={"id": "private", "must_exist": True}, max_tokens=1)
    with expect.error(grpc.StatusCode.NOT_FOUND, "private"):
        stub.Generate(request, metadata=[("x-client-id", "mallory")])
    assert stub.Generate(request).session_tokens == 6 + 12 + 1


def test_two_calls_at_once(api: SimpleNamespace, stub: Any) -> None:
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=20000, session={"id": "busy"})
    running = stub.GenerateStream(request)
    next(running)
    with expect.error(grpc.StatusCode.ABORTED, "busy"):
        generate(api, stub, b"y", "busy")
    running.cancel()
    deadline = time.monotonic() + 10
    while True:
        try:
            assert generate(api, stub, b"y", "busy").session_tokens == 13, "the cancelled call left nothing"
            break
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.ABORTED and time.monotonic() < deadline
            threading.Event().wait(0.05)


def test_it_ends_when_nobody_comes(api: SimpleNamespace, talking: Server, stub: Any) -> None:
    generate(api, stub, b"short", "lived")
    assert talking.metric("longshort_sessions") >= 1
    assert talking.metric("longshort_session_tokens") >= 17
    wait_until(lambda: talking.metric("longshort_sessions") == 0)  # though no call asks for one
    assert talking.metric("longshort_session_tokens") == 0
    with expect.error(grpc.StatusCode.NOT_FOUND, "lived", "has ended"):
        generate(api, stub, b"too late", "lived")


def test_it_ends_when_it_is_closed(api: SimpleNamespace, talking: Server, stub: Any) -> None:
    sessions = api.sessions_grpc.SessionsStub(talking.channel)
    generate(api, stub, b"hello", "closing")
    sessions.CloseSession(api.sessions.CloseSessionRequest(session_id="closing"))
    with expect.error(grpc.StatusCode.NOT_FOUND, "closing"):
        sessions.CloseSession(api.sessions.CloseSessionRequest(session_id="closing"))
    assert generate(api, stub, b"hello", "closing").session_tokens == 17, "the id may be used anew"


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
