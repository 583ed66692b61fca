"""Models come, go and are replaced while the server runs."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from reference import safetensors_file

from integration import expect, model_directory
from integration.server_process import Server, less, wait_until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A server that follows its repository, which has `tiny` in version 1."""
    repository = tmp_path / "repository"
    model_directory.write(repository)
    with Server(repository, tmp_path / "server", "--watch-repository=100ms", "--model-control") as server:
        yield SimpleNamespace(server=server, repository=repository)


def add_version(repository: Path, version: int) -> Path:
    """A copy of version 1, put in place in one move as an operator would."""
    copy = repository / ".incoming"
    shutil.copytree(repository / "tiny/1", copy)
    return copy.rename(repository / "tiny" / str(version))


def versions(api: SimpleNamespace, server: Server) -> list[int]:
    models = api.models_grpc.ModelsStub(server.channel).ListModels(api.models.ListModelsRequest()).models
    return [model.version for model in models if model.name == "tiny"]


def health(server: Server, name: str) -> Any:
    return health_pb2_grpc.HealthStub(server.channel).Check(health_pb2.HealthCheckRequest(service=name)).status


def test_a_new_version_takes_over_without_a_failed_call(api: SimpleNamespace, watched: SimpleNamespace) -> None:
    server, repository = watched.server, watched.repository
    done = threading.Event()
    answered: list[int] = []
    failures: list[grpc.RpcError] = []

    def call_again_and_again() -> None:
        stub = api.inference_grpc.InferenceStub(server.new_channel())
        request = api.inference.GenerateRequest(prompt={"text": "hello"}, max_tokens=5)
        while not done.is_set():
            try:
                answered.append(stub.Generate(request, timeout=20).model.version)
            except grpc.RpcError as error:
                failures.append(error)

    callers = [threading.Thread(target=call_again_and_again) for _ in range(4)]
    stub = api.inference_grpc.InferenceStub(server.channel)
    long_stream = stub.GenerateStream(api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=less(3000)))
    assert next(long_stream).start.model.version == 1
    for caller in callers:
        caller.start()
    for version in range(2, 6):
        add_version(repository, version)
        wait_until(lambda: versions(api, server) == [version])  # noqa: B023
        wait_until(lambda: version in answered)  # noqa: B023
    done.set()
    for caller in callers:
        caller.join()
    assert not failures
    summary = list(long_stream)[-1].summary
    assert summary.usage.generated_tokens == less(3000), "it finishes on the version it began with"
    assert health(server, "tiny/5") == SERVING
    assert health(server, "tiny/1") == NOT_SERVING


def fingerprint(api: SimpleNamespace, server: Server) -> str:
    request = api.models.GetModelRequest(model={"name": "tiny", "version": 1})
    return str(api.models_grpc.ModelsStub(server.channel).GetModel(request).fingerprint)


def test_weights_that_are_written_again_are_reloaded_without_a_failed_call(
    api: SimpleNamespace, watched: SimpleNamespace, tmp_path: Path
) -> None:
    server, repository = watched.server, watched.repository
    served = repository / "tiny/1/model.safetensors"
    stub = api.inference_grpc.InferenceStub(server.channel)
    long_stream = stub.GenerateStream(api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=less(3000)))
    next(long_stream)
    done = threading.Event()
    failures: list[grpc.RpcError] = []

    def call_again_and_again() -> None:
        caller = api.inference_grpc.InferenceStub(server.new_channel())
        while not done.is_set():
            try:
                caller.Generate(api.inference.GenerateRequest(prompt={"text": "hello"}, max_tokens=5), timeout=20)
            except grpc.RpcError as error:
                failures.append(error)

    caller = threading.Thread(target=call_again_and_again)
    caller.start()
    for seed in (5, 6):
        before = fingerprint(api, server)
        new = model_directory.write(tmp_path / f"seed{seed}", seed=seed) / "model.safetensors"
        if seed == 5:
            served.write_bytes(new.read_bytes())  # in place, of the same size
        else:
            new.rename(served)
        wait_until(lambda: fingerprint(api, server) != before)  # noqa: B023
        wait_until(lambda: f"fingerprint={fingerprint(api, server)}" in server.log())
    served.touch()
    wait_until(lambda: "model unchanged" in server.log())
    done.set()
    caller.join()
    assert not failures
    assert list(long_stream)[-1].summary.usage.generated_tokens == less(3000), (
        "it finishes on the weights it began with"
    )
    assert server.log().count("model reloaded model=tiny version=1") == 2
    assert versions(api, server) == [1]


def test_load_model_reloads_what_has_changed_and_says_so(api: SimpleNamespace, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    served = model_directory.write(repository)
    with Server(repository, tmp_path / "server", "--model-control") as server:
        models = api.models_grpc.ModelsStub(server.channel)

        def load() -> tuple[int, str, str]:
            request = api.models.LoadModelRequest(model={"name": "tiny"})
            model, call = models.LoadModel.with_call(request, timeout=20)
            trailers = dict(call.trailing_metadata())
            return model.load_outcome, trailers["longshort-load-outcome"], model.fingerprint

        unchanged, _, old = load()
        assert unchanged == api.models.LOAD_OUTCOME_UNCHANGED
        weights = (model_directory.write(tmp_path / "new", seed=5) / "model.safetensors").read_bytes()
        (served / "model.safetensors").write_bytes(weights[:1000])
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "model.safetensors"):
            load()
        assert fingerprint(api, server) == old
        (served / "model.safetensors").write_bytes(weights)
        outcome, said, new = load()
        assert (outcome, said) == (api.models.LOAD_OUTCOME_RELOADED, "reloaded")
        assert new != old and fingerprint(api, server) == new
        wait_until(lambda: "model reloaded model=tiny version=1" in server.log())
        (served / "vocabulary.txt").touch()
        assert load()[:2] == (api.models.LOAD_OUTCOME_UNCHANGED, "unchanged")


def test_a_broken_version_changes_nothing_until_it_is_mended(api: SimpleNamespace, watched: SimpleNamespace) -> None:
    server, repository = watched.server, watched.repository
    weights = (repository / "tiny/1/model.safetensors").read_bytes()
    broken = repository / "tiny/2"
    shutil.copytree(repository / "tiny/1", repository / ".incoming")
    (repository / ".incoming/model.safetensors").write_bytes(weights[:1000])
    (repository / ".incoming").rename(broken)
    wait_until(lambda: server.metric("longshort_model_load_failures_total") == 1)
    assert versions(api, server) == [1]
    wait_until(lambda: "tiny version 2" in server.log())
    (broken / "model.safetensors").write_bytes(weights)
    wait_until(lambda: versions(api, server) == [2])


def test_a_version_that_computes_nonsense_is_not_loaded(api: SimpleNamespace, watched: SimpleNamespace) -> None:
    server, repository = watched.server, watched.repository
    incoming = repository / ".incoming"
    shutil.copytree(repository / "tiny/1", incoming)
    tensors = {name: values.copy() for name, values in safetensors_file.read(incoming / "model.safetensors").items()}
    tensors["layers.1.norm2.bias"][5] = float("nan")
    safetensors_file.write(incoming / "model.safetensors", tensors)
    incoming.rename(repository / "tiny/2")
    wait_until(lambda: "tensor layers.1.norm2.bias has 1 values" in server.log())
    shutil.copytree(repository / "tiny/1", incoming)
    (incoming / "vocabulary.txt").write_text("")
    incoming.rename(repository / "tiny/3")
    wait_until(lambda: "tiny/3/vocabulary.txt: there are no symbols" in server.log())
    assert versions(api, server) == [1]


def test_weights_that_are_written_in_place_while_they_are_read_fail_at_most_one_load(
    api: SimpleNamespace, watched: SimpleNamespace
) -> None:
    server, repository = watched.server, watched.repository
    incoming = repository / ".incoming"
    shutil.copytree(repository / "tiny/1", incoming)
    weights = (incoming / "model.safetensors").read_bytes()
    done = threading.Event()

    def write_again_and_again() -> None:
        with (incoming / "model.safetensors").open("r+b", buffering=0) as file:
            while not done.is_set():
                file.truncate(1000)
                file.seek(0)
                file.write(weights)

    models = api.models_grpc.ModelsStub(server.channel)
    second = {"name": "tiny", "version": 2}
    (repository / "tiny/2").symlink_to(incoming)
    writer = threading.Thread(target=write_again_and_again)
    writer.start()
    codes = set()
    for _ in range(100):
        try:
            models.LoadModel(api.models.LoadModelRequest(model=second), timeout=20)
            models.UnloadModel(api.models.UnloadModelRequest(model=second), timeout=20)
        except grpc.RpcError as error:
            codes.add(error.code())
    done.set()
    writer.join()
    assert codes <= {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAVAILABLE}, "a broken header, or read too late"
    stub = api.inference_grpc.InferenceStub(server.channel)
    request = api.inference.GenerateRequest(model={"name": "tiny", "version": 1}, prompt={"text": "x"}, max_tokens=1)
    models.LoadModel(api.models.LoadModelRequest(model={"name": "tiny", "version": 1}), timeout=20)
    assert stub.Generate(request, timeout=20).model.version == 1
    assert models.LoadModel(api.models.LoadModelRequest(model=second), timeout=20).version == 2


def test_a_model_that_vanishes_is_not_found(api: SimpleNamespace, watched: SimpleNamespace) -> None:
    server, repository = watched.server, watched.repository
    shutil.copytree(repository / "tiny", repository / "other")
    wait_until(lambda: "model loaded model=other version=1" in server.log())
    shutil.rmtree(repository / "tiny")
    wait_until(lambda: versions(api, server) == [])
    stub = api.inference_grpc.InferenceStub(server.channel)
    with expect.error(grpc.StatusCode.NOT_FOUND, "no model tiny", "other"):
        stub.Generate(api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "x"}))
    assert health(server, "tiny") == NOT_SERVING


def test_a_repository_that_becomes_empty_takes_nothing_away(api: SimpleNamespace, watched: SimpleNamespace) -> None:
    server, repository = watched.server, watched.repository
    (repository / "tiny").rename(repository / ".tiny")  # as if its volume was unmounted
    wait_until(lambda: "the repository cannot be read; the loaded models stay served" in server.log())
    assert versions(api, server) == [1]
    assert health(server, "tiny") == SERVING
    (repository / ".tiny").rename(repository / "tiny")
    wait_until(lambda: "the repository is readable again" in server.log())


def test_clients_load_and_unload(api: SimpleNamespace, watched: SimpleNamespace) -> None:
    server, repository = watched.server, watched.repository
    models = api.models_grpc.ModelsStub(server.channel)

    def load(name: str, version: int = 0) -> Any:
        return models.LoadModel(api.models.LoadModelRequest(model={"name": name, "version": version}), timeout=20)

    def unload(name: str, version: int = 0) -> None:
        models.UnloadModel(api.models.UnloadModelRequest(model={"name": name, "version": version}), timeout=20)

    add_version(repository, 2)
    wait_until(lambda: versions(api, server) == [2])
    assert load("tiny", 1).version == 1
    wait_until(lambda: server.log().count("model loaded model=tiny version=1") == 1)
    assert load("tiny", 1).fingerprint == load("tiny", 2).fingerprint
    assert versions(api, server) == [1, 2]
    unload("tiny", 2)
    assert versions(api, server) == [1]
    unload("tiny")
    assert versions(api, server) == []
    assert load("tiny").version == 2
    for name, version, code in [
        ("tiny", 7, grpc.StatusCode.NOT_FOUND),
        ("stranger", 0, grpc.StatusCode.NOT_FOUND),
        ("../tiny", 1, grpc.StatusCode.NOT_FOUND),
        ("", 0, grpc.StatusCode.INVALID_ARGUMENT),
        ("tiny", -1, grpc.StatusCode.INVALID_ARGUMENT),
        ("x" * 257, 0, grpc.StatusCode.INVALID_ARGUMENT),
    ]:
        for call in (load, unload):
            with expect.error(code):
                call(name, version)
    assert server.metric("longshort_model_load_failures_total") == 0, "a client's mistake is no failure to load"
    unload("tiny")
    wait_until(lambda: server.log().count("model unloaded model=tiny version=2") == 2)
    assert server.log().count("model loaded model=tiny version=1") == 1, "not again where it was loaded already"
    assert " error " not in server.log()


def test_without_model_control_nothing_can_be_changed(api: SimpleNamespace, server: Server) -> None:
    models = api.models_grpc.ModelsStub(server.channel)
    for call, request in [
        (models.LoadModel, api.models.LoadModelRequest(model={"name": "tiny"})),
        (models.UnloadModel, api.models.UnloadModelRequest(model={"name": "tiny"})),
    ]:
        with expect.error(grpc.StatusCode.PERMISSION_DENIED, "--model-control"):
            call(request)


def test_each_version_is_counted_while_it_serves(api: SimpleNamespace, watched: SimpleNamespace) -> None:
    server, repository = watched.server, watched.repository
    (repository / "tiny/serving.json").write_text('{"version_policy": "all"}')
    add_version(repository, 2)
    wait_until(lambda: versions(api, server) == [1, 2])
    stub = api.inference_grpc.InferenceStub(server.channel)
    for version in (1, 2, 2, 2):
        model = {"name": "tiny", "version": version}
        stub.Generate(api.inference.GenerateRequest(model=model, prompt={"text": "x"}, max_tokens=2), timeout=20)

    def counted(version: str) -> tuple[float, float]:
        labels = {"model": "tiny", "rpc": "Generate", "version": version}
        calls = server.metric("longshort_requests_total", code="OK", **labels)
        return calls, server.metric("longshort_request_duration_seconds_count", **labels)

    def generated(version: str) -> float:
        return server.metric("longshort_generated_tokens_total", model="tiny", version=version)

    wait_until(lambda: (counted("1"), counted("2")) == ((1, 1), (3, 3)))
    assert (generated("1"), generated("2")) == (2, 6), "tokens of each call"
    shutil.rmtree(repository / "tiny/1")
    wait_until(lambda: versions(api, server) == [2])
    assert counted("1") == (1, 1) and generated("1") == 2, "scrapers still read the series of what was unloaded"
    assert counted("2") == (3, 3) and generated("2") == 6
