"""Clients that take nothing of what a real server has for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect
from integration.running_stream import RunningStream
from integration.server_process import Server, wait_until

CANCELLED = grpc.StatusCode.CANCELLED


@pytest.fixture
def impatient(repository: Path, tmp_path: Path) -> Iterator[Server]:
    """A server that waits half a second for a reader."""
    with Server(repository, tmp_path / "server", "--slow-reader-timeout=500ms") as running:
        yield running


def chatty(api: SimpleNamespace, **fields: Any) -> Any:
    """A request whose tokens come with many alternatives: some 500 bytes each, the window is full after 40."""
    return api.inference.GenerateRequest(
        prompt={"text": "p"}, token_log_probabilities=True, top_alternatives=20, **fields
    )


def test_a_stalled_reader_is_cancelled_and_others_go_on(api: SimpleNamespace, impatient: Server) -> None:
    with impatient.slow_channel() as channel:
        stalled = api.inference_grpc.InferenceStub(channel).GenerateStream(chatty(api, completions=2, max_tokens=3000))
        next(stalled)
        other = RunningStream(api, impatient, "reader")
        wait_until(lambda: impatient.metric("longshort_slow_readers_cancelled_total", rpc="GenerateStream") == 1)
        wait_until(lambda: impatient.metric("longshort_streams_active") == 1)
        messages = other.messages
        wait_until(lambda: other.messages > messages)
        with expect.error(CANCELLED):
            for _ in stalled:
                pass
        other.cancel()
    wait_until(lambda: impatient.metric("longshort_streams_active") == 0)
    assert impatient.metric("longshort_cache_bytes", state="used") == 0
    # A call ends after its stream.
    wait_until(lambda: impatient.metric("longshort_requests_total", rpc="GenerateStream", code="CANCELLED") == 2)
    wait_until(lambda: "--slow-reader-timeout" in impatient.log())
    (line,) = (line for line in impatient.log().splitlines() if "--slow-reader-timeout" in line)
    assert "code=CANCELLED" in line and "500ms" in line


@pytest.mark.cpu_only(reason="6,000 tokens take the emulator minutes")
def test_a_slow_reader_stands_still_and_goes_on_where_it_was(api: SimpleNamespace, server: Server) -> None:
    request = chatty(api, max_tokens=3000, sampling={"seed": 4}, return_raw=True)
    whole = api.inference_grpc.InferenceStub(server.channel).Generate(request, timeout=120).completions[0].raw
    generated = server.metric("longshort_generated_tokens_total")
    with server.slow_channel() as channel:
        stalled = api.inference_grpc.InferenceStub(channel).GenerateStream(request, timeout=120)
        said = [next(stalled), next(stalled)]

        wait_until(lambda: server.metric("longshort_generated_tokens_total") > generated)
        wait_until(lambda: server.metric("longshort_streams_active") == 0)
        generated = server.metric("longshort_generated_tokens_total")
        assert server.metric("longshort_cache_bytes", state="used") == 0, "its pages are there for others"
        said += list(stalled)
    assert b"".join(event.delta.raw for event in said) == whole
    assert server.metric("longshort_generated_tokens_total") - generated > 1000, "much was left to be said"


@pytest.mark.cpu_only(reason="the emulator has not come to the end when the half second is over")
@pytest.mark.cpu_only(reason="the emulator may take longer for 200 tokens than the server waits for a reader")
def test_the_end_of_a_stream_waits_no_longer_for_its_reader(api: SimpleNamespace, impatient: Server) -> None:
    request = chatty(api, max_tokens=200)
    with impatient.slow_channel() as channel:
        stalled = api.inference_grpc.InferenceStub(channel).GenerateStream(request)
        next(stalled)
        wait_until(lambda: impatient.metric("longshort_generated_tokens_total") == 200)
        wait_until(lambda: impatient.metric("longshort_slow_readers_cancelled_total") == 1)
        with expect.error(CANCELLED):
            for _ in stalled:
                pass


def test_documents_without_reading_answers_end_in_cancellation(api: SimpleNamespace, impatient: Server) -> None:
    read_on = threading.Event()

    def documents() -> Iterator[Any]:
        options = {"token_log_probabilities": True, "top_alternatives": 20}
        yield api.inference.ScoreTextsRequest(options=options, input={"text": "x" * 100})
        while not read_on.is_set():
            yield api.inference.ScoreTextsRequest(input={"text": "x" * 100})

    with impatient.slow_channel() as channel:
        call = api.inference_grpc.InferenceStub(channel).ScoreTexts(documents())
        wait_until(lambda: impatient.metric("longshort_slow_readers_cancelled_total", rpc="ScoreTexts") == 1)
        read_on.set()
        with expect.error(CANCELLED):
            for _ in call:
                pass
    wait_until(lambda: impatient.metric("longshort_requests_total", rpc="ScoreTexts", code="CANCELLED") == 1)
