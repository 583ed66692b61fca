"""The Open Inference Protocol, by NVIDIA's tritonclient as it is: streams of requests and answers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tritonclient.grpc as triton

from integration import open_inference, tokens
from integration.images import some_pixels
from integration.open_inference import Stream, is_final, prompt, strings, tensor, text_of
from integration.server_process import Server, less, wait_until

ENDLESS = {"max_tokens": 60_000}


def all_text(results: list[Any]) -> str:
    return "".join(text_of(result) for result in results if result.as_numpy("text") is not None)


def test_a_generation_comes_bit_by_bit(
    api: SimpleNamespace, server: Server, client: triton.InferenceServerClient
) -> None:
    request = api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "hello"}, max_tokens=40)
    request.sampling.seed = 3
    whole = api.inference_grpc.InferenceStub(server.channel).Generate(request).completions[0].text
    stream = Stream(client)
    parameters = {"max_tokens": 40, "seed": 3}
    stream.send("tiny", [prompt(b"hello")], "plain", parameters=parameters)
    results = stream.until_final()
    assert all_text(results) == whole
    assert len(results) > 1
    assert {result.get_response().id for result in results} == {"plain"}
    assert text_of(results[-1], "finish_reason") == "length"
    assert results[-1].get_response().parameters["generated_tokens"].int64_param == 40

    stream.send("tiny", [prompt(b"hello")], "empty", parameters=parameters, enable_empty_final_response=True)
    results = stream.until_final()
    assert all_text(results) == whole
    assert text_of(results[-2], "finish_reason") == "length"
    assert len(results[-1].get_response().outputs) == 0
    client.stop_stream()


def test_all_families_share_a_stream_which_outlives_what_is_wrong(client: triton.InferenceServerClient) -> None:
    stream = Stream(client)
    image = tensor("image", some_pixels(1), "UINT8")
    expected = client.infer("images", [image]).as_numpy("logits")
    for number in range(30):
        stream.send("images", [image], f"image {number}")
        stream.send("texts", [strings("document", b"a")], f"text {number}")
    for number in range(30):
        result = stream.next()
        assert result.get_response().id == f"image {number}", "in the order of the requests"
        assert is_final(result)
        assert result.as_numpy("logits") == pytest.approx(expected, abs=1e-5)
        assert stream.next().get_response().id == f"text {number}"
    stream.send("texts", [image], "wrong")
    error = stream.next_error().message()
    assert error == 'INVALID_ARGUMENT: input "image" is unknown; model texts takes document'
    stream.send("stranger", [image], "lost")
    assert stream.next_error().message().startswith("NOT_FOUND: ")
    stream.send("tiny", [prompt(b"a")], "late", timeout=20_000, parameters=ENDLESS)
    while True:
        result, error = stream.answers.get(timeout=open_inference.SECONDS)
        if error is not None:
            break
        assert not is_final(result)
    assert error.message().startswith("DEADLINE_EXCEEDED: ")
    stream.send("tiny", [strings("document", b"hello")], "scored")
    assert stream.next().as_numpy("token_count")[0] == 5
    client.stop_stream()


def test_requests_of_a_stream_count_against_their_callers_limit(repository: Path, tmp_path: Path) -> None:
    line = tokens.line("caller", "call", "scopes=infer models=texts calls-per-second=0.001")
    secret = tokens.write(tmp_path / "tokens", line)
    with (
        Server(repository, tmp_path / "server", f"--token-file={secret}") as server,
        open_inference.client_of(server) as client,
    ):
        stream = Stream(client, {"authorization": "Bearer call"})
        document = [strings("document", b"a")]
        stream.send("texts", document, "one")
        error = stream.next_error().message()
        assert error.startswith("RESOURCE_EXHAUSTED: "), "the stream itself was the call of a thousand seconds"
        client.stop_stream()


def test_a_cancelled_stream_stops_its_work(server: Server, client: triton.InferenceServerClient) -> None:
    stream = Stream(client)
    for name in ("one", "two"):
        stream.send("tiny", [prompt(b"a")], name, parameters=ENDLESS)
    stream.next()
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 2)
    client.stop_stream(cancel_requests=True)
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 0)
    cancelled = {"rpc": "ModelStreamInfer.request", "model": "tiny", "code": "CANCELLED"}
    wait_until(lambda: server.metric("longshort_requests_total", **cancelled) == 2)
    wait_until(lambda: server.metric("longshort_requests_total", rpc="ModelStreamInfer", code="CANCELLED") == 1)


def test_a_client_that_vanishes_stops_its_work(server: Server) -> None:
    with open_inference.client_of(server) as client:
        stream = Stream(client)
        stream.send("tiny", [prompt(b"a")], "left", parameters=ENDLESS)
        stream.next()
        wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 1)
        client._channel.close()
        wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 0)


def test_a_stopping_server_ends_streams_when_their_requests_are_answered(repository: Path, tmp_path: Path) -> None:
    with (
        Server(repository, tmp_path, "--drain-timeout=10m") as server,
        open_inference.client_of(server) as client,
        open_inference.client_of(server) as idle_client,
    ):
        stream, idle = Stream(client), Stream(idle_client)
        idle.send("texts", [strings("document", b"a")], "1")
        assert is_final(idle.next())
        stream.send("tiny", [prompt(b"hello")], "g", parameters={"max_tokens": less(2000)})
        stream.next()
        server.terminate()
        results = stream.until_final()
        assert results[-1].get_response().parameters["generated_tokens"].int64_param == less(2000)
        for ended in (stream, idle):
            assert ended.next_error().status() == "StatusCode.UNAVAILABLE"
        assert server.wait() == 0
