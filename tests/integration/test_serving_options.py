"""A model's serving.json: how it is served, whatever the server's options say."""

from __future__ import annotations

import concurrent.futures
import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import classifier_directory, expect, model_directory
from integration.server_process import Server, run, wait_until


def write_serving(repository: Path, model: str, options: dict[str, Any] | str) -> None:
    """In one move, as an operator would."""
    beside = repository / model / ".serving.json"
    beside.write_text(options if isinstance(options, str) else json.dumps(options))
    beside.rename(repository / model / "serving.json")


def versions(api: SimpleNamespace, server: Server) -> list[int]:
    models = api.models_grpc.ModelsStub(server.channel).ListModels(api.models.ListModelsRequest()).models
    return [model.version for model in models]


def generate(api: SimpleNamespace, server: Server, client: str, tokens: int) -> Any:
    """A call that is under way."""
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=tokens)
    stub = api.inference_grpc.InferenceStub(server.channel)
    return stub.Generate.future(request, timeout=30, metadata=[("x-client-id", client)])


def start_stream(api: SimpleNamespace, server: Server, client: str) -> Any:
    """A stream that runs, and does not end by itself."""
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=60000)
    stub = api.inference_grpc.InferenceStub(server.channel)
    stream = stub.GenerateStream(request, metadata=[("x-client-id", client)])
    next(stream)
    return stream


def test_a_client_that_waits_with_too_much_is_refused_and_others_are_not(api: SimpleNamespace, tmp_path: Path) -> None:
    model_directory.write(tmp_path)
    write_serving(tmp_path, "tiny", {"max_streams": 1, "max_queued_requests_per_client": 1})
    with Server(tmp_path, tmp_path / "server") as server:
        assert "max_queued_requests_per_client=1, max_streams=1" in server.log()
        running = start_stream(api, server, "greedy")
        waiting = [generate(api, server, "greedy", 1) for _ in range(2)]
        refused = next(concurrent.futures.as_completed([as_future(call) for call in waiting], timeout=20)).result()
        assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, "one may wait"
        assert "1 requests of this client wait, the limit is 1" in refused.details()
        assert ("longshort-queue-depth", "1") in refused.trailing_metadata()
        assert "grpc-status-details-bin" in dict(refused.trailing_metadata()), "when to come back"
        modest = generate(api, server, "modest", 1)
        running.cancel()
        assert modest.result().usage.generated_tokens == 1
        (admitted,) = [call for call in waiting if call is not refused]
        assert admitted.result().usage.generated_tokens == 1


def as_future(call: Any) -> concurrent.futures.Future[Any]:
    """A future of the call itself, once it has ended."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    call.add_done_callback(future.set_result)
    return future


def test_a_client_runs_only_so_much_at_once_and_others_pass_it(api: SimpleNamespace, tmp_path: Path) -> None:
    model_directory.write(tmp_path)
    with Server(tmp_path, tmp_path / "server", "--max-running-per-client=1") as server:
        running = start_stream(api, server, "greedy")
        held_back = generate(api, server, "greedy", 1)
        assert generate(api, server, "modest", 1).result().usage.generated_tokens == 1
        assert not held_back.done()
        running.cancel()
        assert held_back.result().usage.generated_tokens == 1


def test_a_batch_waits_for_company_only_where_it_was_asked_to(api: SimpleNamespace, tmp_path: Path) -> None:
    delay_seconds = 0.4
    for name in ("patient", "eager"):
        classifier_directory.write_text(tmp_path, name, documents=1)
    write_serving(tmp_path, "patient", {"max_batch_size": 2, "max_queue_delay": f"{delay_seconds}s"})
    with Server(tmp_path, tmp_path / "server") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)

        def seconds(model: str, documents: int) -> float:
            request = api.inference.ScoreTextRequest(model={"name": model}, inputs=[{"text": "abc"}] * documents)
            begin = time.monotonic()
            assert len(stub.ScoreText(request, timeout=20).classifications) == documents
            return time.monotonic() - begin

        assert seconds("patient", 1) >= delay_seconds
        assert seconds("patient", 3) >= delay_seconds, "two are a batch, the third waits for another"
        assert server.metric("longshort_batch_items_count", model="patient") == 3
        assert server.metric("longshort_batch_items_sum", model="patient") == 4
        assert min(seconds("patient", 2) for _ in range(3)) < delay_seconds, "a full batch does not wait"
        assert min(seconds("eager", 1) for _ in range(3)) < delay_seconds


def test_a_changed_file_is_followed_and_a_broken_one_leaves_what_serves(api: SimpleNamespace, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    model_directory.write(repository)
    with Server(repository, tmp_path / "server", "--watch-repository=100ms", "--max-streams=3") as server:
        running = start_stream(api, server, "early")
        for broken, why in [
            ("{", "not valid JSON"),
            ({"max_streams": 0}, "max_streams is '0', it must be in [1, 65536]"),
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
        assert "model loaded" not in server.log()
        write_serving(repository, "tiny", {"max_streams": 2})
        wait_until(lambda: "model loaded" in server.log())
        assert 'serving="max_streams=2"' in server.log()
        assert generate(api, server, "late", 1).result().model.version == 1
        assert next(running).WhichOneof("event") is not None, "it goes on where it began"
        running.cancel()


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
        ({"max_queue_time": 5}, "max_queue_time is '5', it must be a string"),
        ({"max_batch_size": 5}, "max_batch_size is '5', it must be absent"),
        ({"devices": "abacus"}, "devices is"),
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
    assert "--max-queued-requests-per-client is -1; it must be in [0, 1048576]" in wrong.stderr


def test_a_refused_call_of_many_items_is_told_the_limit(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_text(tmp_path, "texts", documents=1)
    with Server(tmp_path, tmp_path / "server", "--max-queued-requests-per-client=4") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "number of inputs", "4"):
            stub.ScoreText(api.inference.ScoreTextRequest(inputs=[{"text": "abc"}] * 5))
