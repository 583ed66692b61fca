"""A model's serving.json: how it is served, whatever the server's options say."""

from __future__ import annotations

import json
import queue
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import classifier_directory, expect, model_directory
from integration.images import png, some_pixels
from integration.running_stream import RunningStream, stream_that_stands_still
from integration.server_process import Server, run, wait_until


def write_serving(repository: Path, model: str, options: dict[str, Any] | str) -> None:
    """In one move, as an operator would."""
    beside = repository / model / ".serving.json"
    beside.write_text(options if isinstance(options, str) else json.dumps(options))
    beside.rename(repository / model / "serving.json")


def versions(api: SimpleNamespace, server: Server) -> list[int]:
    models = api.models_grpc.ModelsStub(server.channel).ListModels(api.models.ListModelsRequest()).models
    return [model.version for model in models]


def generate(api: SimpleNamespace, server: Server, client: str, tokens: int, priority: str = "normal") -> Any:
    """A call that is under way."""
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=tokens)
    stub = api.inference_grpc.InferenceStub(server.channel)
    return stub.Generate.future(request, timeout=120, metadata=[("x-client-id", client), ("x-priority", priority)])


def one_that_waits(calls: list[Any]) -> tuple[Any, Any]:
    """Of two calls of a client that may have one waiting: which waits, and which was refused."""
    ended: queue.Queue[Any] = queue.Queue()
    for call in calls:
        call.add_done_callback(ended.put)
    refused = ended.get(timeout=120)
    (waiting,) = [call for call in calls if call is not refused]
    return waiting, refused


def test_a_client_that_waits_with_too_much_is_refused_and_others_are_not(api: SimpleNamespace, tmp_path: Path) -> None:
    model_directory.write(tmp_path)
    write_serving(tmp_path, "tiny", {"max_streams": 1, "max_queued_requests_per_client": 1})
    with Server(tmp_path, tmp_path / "server", "--trust-client-id") as server:
        wait_until(lambda: "max_queued_requests_per_client=1, max_streams=1" in server.log())
        running = RunningStream(api, server, "greedy")
        waiting, refused = one_that_waits([generate(api, server, "greedy", 1) for _ in range(2)])
        assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "1 requests of this client wait, the limit is 1" in refused.details()
        assert ("longshort-queue-depth", "1") in refused.trailing_metadata()
        assert "grpc-status-details-bin" in dict(refused.trailing_metadata()), "when to come back"
        modest = generate(api, server, "modest", 1)
        running.cancel()
        assert modest.result().usage.generated_tokens == 1
        assert waiting.result().usage.generated_tokens == 1


def test_without_tokens_a_client_is_an_address_whatever_it_calls_itself(api: SimpleNamespace, tmp_path: Path) -> None:
    model_directory.write(tmp_path)
    write_serving(tmp_path, "tiny", {"max_streams": 1, "max_queued_requests_per_client": 1})
    with Server(tmp_path, tmp_path / "server") as server:
        running = RunningStream(api, server, "one")
        waiting, refused = one_that_waits([generate(api, server, name, 1) for name in ("two", "three")])
        assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        running.cancel()
        assert waiting.result().usage.generated_tokens == 1


def test_priorities_share_as_the_file_says(api: SimpleNamespace, tmp_path: Path) -> None:
    model_directory.write(tmp_path)
    # What is high goes first, and by its first request, which takes more than 10 ms, has more than its share.
    weights = {"high": 1, "normal": 1, "low": 1_000_000}
    write_serving(
        tmp_path, "tiny", {"max_streams": 1, "max_queued_requests_per_client": 1, "priority_weights": weights}
    )
    with Server(tmp_path, tmp_path / "server", "--trust-client-id") as server:
        running = RunningStream(api, server, "first")
        order: list[str] = []
        calls = []
        for priority in ("low", "high") * 3:
            pair = [generate(api, server, f"client-{len(calls)}", 500, priority) for _ in range(2)]
            calls.append(one_that_waits(pair)[0])
            calls[-1].add_done_callback(lambda _, priority=priority: order.append(priority))
        running.cancel()
        wait_until(lambda: len(order) == len(calls))
        assert all(call.code() == grpc.StatusCode.OK for call in calls)
        assert order == ["high", "low", "low", "low", "high", "high"]


def test_a_client_runs_only_so_much_at_once_and_others_pass_it(api: SimpleNamespace, tmp_path: Path) -> None:
    model_directory.write(tmp_path)
    with Server(tmp_path, tmp_path / "server", "--max-running-per-client=1", "--trust-client-id") as server:
        running = RunningStream(api, server, "greedy")
        held_back = generate(api, server, "greedy", 1)
        assert generate(api, server, "modest", 1).result().usage.generated_tokens == 1
        assert not held_back.done()
        running.cancel()
        assert held_back.result().usage.generated_tokens == 1


def test_a_batch_waits_for_company_only_where_it_was_asked_to(api: SimpleNamespace, tmp_path: Path) -> None:
    delay_seconds = 0.4
    for name in ("patient", "more-patient", "eager"):
        classifier_directory.write_text(tmp_path, name, documents=1)
    write_serving(tmp_path, "patient", {"max_batch_size": 2, "max_queue_delay": f"{delay_seconds}s"})
    write_serving(tmp_path, "more-patient", {"max_batch_size": 2, "max_queue_delay": "1m"})
    with Server(tmp_path, tmp_path / "server") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)

        def seconds(model: str, documents: int) -> float:
            request = api.inference.ScoreTextRequest(model={"name": model}, inputs=[{"text": "abc"}] * documents)
            begin = time.monotonic()
            assert len(stub.ScoreText(request, timeout=50).classifications) == documents
            return time.monotonic() - begin

        alone = seconds("patient", 1)
        assert alone >= delay_seconds
        assert seconds("patient", 3) >= delay_seconds, "two are a batch, the third waits for another"
        assert server.metric("longshort_batch_items_count", model="patient") == 3
        assert server.metric("longshort_batch_items_sum", model="patient") == 4
        seconds("more-patient", 2)  # a full batch does not wait, or the call's time would have run out
        assert min(seconds("eager", 1) for _ in range(3)) < alone


def test_a_model_has_the_workers_of_its_own_file(api: SimpleNamespace, tmp_path: Path) -> None:
    for name in ("one", "three"):
        model_directory.write(tmp_path, name)
    write_serving(tmp_path, "three", {"devices": "cpu:3"})
    with Server(tmp_path, tmp_path / "server", "--devices=cpu:1") as server:
        wait_until(lambda: server.log().count("architecture=") == 2)
        lines = [line for line in server.log().splitlines() if "architecture=" in line]
        assert [f"workers={count} " in line for count, line in zip((1, 3), lines, strict=True)] == [True, True]
        stub = api.inference_grpc.InferenceStub(server.channel)
        request = api.inference.GenerateRequest(model={"name": "three"}, prompt={"text": "x"}, max_tokens=20)
        assert stub.Generate(request, timeout=120).usage.generated_tokens == 20


def test_a_changed_file_is_followed_and_a_broken_one_leaves_what_serves(api: SimpleNamespace, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    model_directory.write(repository)
    with Server(repository, tmp_path / "server", "--watch-repository=100ms", "--max-streams=3") as server:
        running = RunningStream(api, server, "early")
        for broken, why in [
            ("{", "not valid JSON"),
            ({"max_streams": 0}, "max_streams is 0; it must be in [1, 65536]"),
            ({"max_batch_size": 4}, "it must be absent: the model is a language model"),
            ({"max_stream": 4}, "unknown field 'max_stream'"),
            ({"version_policy": {"specific": [7]}}, "there are: 1"),
        ]:
            failures = server.metric("longshort_model_load_failures_total")
            write_serving(repository, "tiny", broken)
            wait_until(lambda: server.metric("longshort_model_load_failures_total") == failures + 1)  # noqa: B023
            wait_until(lambda: why in server.log())  # noqa: B023
            assert str(repository / "tiny/serving.json") in server.log()
            assert generate(api, server, "early", 1).result().model.version == 1
        assert "model reloaded" not in server.log()
        write_serving(repository, "tiny", {"max_streams": 2})
        wait_until(lambda: "model reloaded" in server.log() and "changed=serving.json" in server.log())
        assert 'serving="max_streams=2"' in server.log()
        assert generate(api, server, "late", 1).result().model.version == 1
        messages = running.messages
        wait_until(lambda: running.messages > messages)  # it goes on where it began
        running.cancel()


def test_sessions_survive_a_reload_of_the_same_weights_but_not_other_weights(
    api: SimpleNamespace, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    first = model_directory.write(repository)
    options = ("--watch-repository=100ms", "--devices=cpu:2", "--slow-reader-timeout=1h")
    with Server(repository, tmp_path / "server", *options) as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        alike: dict[str, Any] = {"max_tokens": 8, "sampling": {"seed": 1}, "return_raw": True}

        def say(session: str, prompt: bytes, must_exist: bool = False) -> Any:
            request = api.inference.GenerateRequest(prompt={"raw": prompt}, **alike)
            request.session.id, request.session.must_exist = session, must_exist
            return stub.Generate(request, timeout=120)

        def reload(options: dict[str, Any]) -> None:
            loads = server.log().count("model reloaded")
            write_serving(repository, "tiny", options)
            wait_until(lambda: server.log().count("model reloaded") == loads + 1)

        answer, alone = say("talk", b"my name is bob. "), b"my name is bob. "
        assert answer.session_tokens == 16 + 8
        alone += answer.completions[0].raw + b"what is it? "
        running = stream_that_stands_still(api, server, session="busy")

        reload({"devices": "cpu:1", "session_time_to_live": "1h"})
        answer = say("talk", b"what is it? ", must_exist=True)
        assert answer.session_tokens == 16 + 8 + 12 + 8
        expected = api.inference.GenerateRequest(prompt={"raw": alone}, **alike)
        assert answer.completions[0].raw == stub.Generate(expected, timeout=120).completions[0].raw
        with expect.error(grpc.StatusCode.ABORTED, "busy"):
            say("busy", b"x")
        running.cancel()

        reload({"session_time_to_live": "1s"})
        wait_until(lambda: server.metric("longshort_sessions") == 0)
        with expect.error(grpc.StatusCode.NOT_FOUND, "talk", "has expired", "1s"):
            say("talk", b"x")

        reload({"session_time_to_live": "1h"})
        say("another", b"hello")
        model_directory.write(tmp_path / "aside", seed=9)
        shutil.move(tmp_path / "aside/tiny/1", first.with_name("2"))
        wait_until(lambda: versions(api, server) == [2])
        with expect.error(grpc.StatusCode.NOT_FOUND, "another"):
            say("another", b"hello", must_exist=True)
        assert say("another", b"hello").session_tokens == 5 + 8


def test_the_versions_that_are_wanted_serve(api: SimpleNamespace, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    first = model_directory.write(repository)
    for version in (2, 3):
        shutil.copytree(first, first.with_name(str(version)))
    write_serving(repository, "tiny", {"version_policy": {"latest": 2}})
    with Server(repository, tmp_path / "server", "--watch-repository=100ms") as server:
        assert versions(api, server) == [2, 3]
        write_serving(repository, "tiny", {"version_policy": {"specific": [1, 3]}})
        wait_until(lambda: versions(api, server) == [1, 3])
        write_serving(repository, "tiny", {"version_policy": "all"})
        wait_until(lambda: versions(api, server) == [1, 2, 3])
        (repository / "tiny/serving.json").unlink()
        wait_until(lambda: versions(api, server) == [3])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_queue_time": 5}, "max_queue_time is 5; it must be a string"),
        ({"max_batch_size": 5}, "max_batch_size is '5'; it must be absent"),
        ({"devices": "abacus"}, "devices is 'abacus'; there is no device 'abacus'"),
        ('{"max_streams": 1, "max_streams": 2}', "duplicate key"),
    ],
)
def test_check_config_finds_what_is_wrong(tmp_path: Path, options: Any, why: str) -> None:
    model_directory.write(tmp_path)
    write_serving(tmp_path, "tiny", options)
    checked = run(f"--model-repository={tmp_path}", "--check-config")
    assert checked.returncode == 1
    assert str(tmp_path / "tiny/serving.json") in checked.stderr
    assert why in checked.stderr


def test_a_limit_of_the_command_line_is_checked(tmp_path: Path) -> None:
    model_directory.write(tmp_path)
    wrong = run(f"--model-repository={tmp_path}", "--max-queued-requests-per-client=-1", "--check-config")
    assert wrong.returncode == 1
    assert "--max-queued-requests-per-client is '-1'; it must be in [0, 1048576]" in wrong.stderr


def test_a_call_of_more_texts_than_may_wait_is_served_in_parts(api: SimpleNamespace, tmp_path: Path) -> None:
    for name in ("bounded", "free"):
        classifier_directory.write_text(tmp_path, name, documents=1)
    write_serving(tmp_path, "bounded", {"max_queued_requests": 9, "max_queued_requests_per_client": 4})
    write_serving(tmp_path, "free", {"max_queued_requests_per_client": 0})
    with Server(tmp_path, tmp_path / "server", "--max-queued-requests-per-client=5") as server:
        models = api.models_grpc.ModelsStub(server.channel).ListModels(api.models.ListModelsRequest()).models
        assert {model.name: model.limits.inputs for model in models} == {"bounded": 2048, "free": 2048}
        stub = api.inference_grpc.InferenceStub(server.channel)
        inputs = [{"text": "abc"}] * 100
        for name in ("bounded", "free"):
            answer = stub.ScoreText(api.inference.ScoreTextRequest(model={"name": name}, inputs=inputs), timeout=60)
            assert len(answer.classifications) == 100


def test_the_items_of_a_call_are_not_in_each_others_way(api: SimpleNamespace, tmp_path: Path) -> None:
    """A call that comes while nothing waits is taken, however long all of its items may take."""
    model_directory.write(tmp_path, "tiny")
    classifier_directory.write_text(tmp_path, "texts", documents=1)
    classifier_directory.write_images(tmp_path, "images")
    for name in ("tiny", "texts", "images"):
        write_serving(tmp_path, name, {"max_queue_time": "1ms", "max_queue_time_per_client": "1ms"})
    with Server(tmp_path, tmp_path / "server") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        image = {"encoded": png(some_pixels(1))}
        long = {"text": "abc" * 20}
        # What the first calls take is learned from.
        for _ in range(12):
            for name in ("tiny", "texts"):
                request = api.inference.ScoreTextRequest(model={"name": name}, inputs=[long] * 32)
                stub.ScoreText(request, timeout=60)
            classify = api.inference.ClassifyImageRequest(model={"name": "images"}, images=[image] * 32)
            results = stub.ClassifyImage(classify, timeout=60).results
            assert all(result.HasField("classification") for result in results)
            generation = api.inference.GenerateRequest(
                model={"name": "tiny"}, prompt=long, max_tokens=20, completions=8
            )
            assert len(stub.Generate(generation, timeout=60).completions) == 8
