"""Health, reflection, metrics, probes, logs and configuration of the real server."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from integration import expect, model_directory
from integration.server_process import BINARY, ROOT, Server, run, wait_until

SERVING = health_pb2.HealthCheckResponse.SERVING
HEALTH_NAMES = ["", "longshort.v1.Inference", "longshort.v1.Models", "longshort.v1.Sessions", "tiny", "tiny/1"]


@pytest.mark.parametrize("name", HEALTH_NAMES)
def test_health_check_and_watch(server: Server, name: str) -> None:
    health = health_pb2_grpc.HealthStub(server.channel)
    assert health.Check(health_pb2.HealthCheckRequest(service=name), timeout=5).status == SERVING
    watch = health.Watch(health_pb2.HealthCheckRequest(service=name), timeout=5)
    assert next(watch).status == SERVING
    watch.cancel()


def test_health_of_an_unknown_name(server: Server) -> None:
    with expect.error(grpc.StatusCode.NOT_FOUND):
        health_pb2_grpc.HealthStub(server.channel).Check(health_pb2.HealthCheckRequest(service="stranger"), timeout=5)


def test_reflection_returns_the_contract(server: Server) -> None:
    database = ProtoReflectionDescriptorDatabase(server.channel)
    assert {"longshort.v1.Inference", "longshort.v1.Models"} <= set(database.get_services())
    service = DescriptorPool(database).FindServiceByName("longshort.v1.Inference")
    methods = {"ScoreText", "ScoreTexts", "ClassifyImage", "Generate", "GenerateStream", "Tokenize", "Embed"}
    assert {method.name for method in service.methods} == methods


def test_reflection_of_both_versions_matches_the_published_contracts(server: Server) -> None:
    """Names, numbers and types of the standard services are those that everybody's stubs have."""
    database = ProtoReflectionDescriptorDatabase(server.channel)
    pool = DescriptorPool(database)
    assert {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} <= set(database.get_services())
    published = [health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR]
    for message in [each for file in published for each in file.message_types_by_name.values()]:
        ours = pool.FindMessageTypeByName(message.full_name)
        fields = [(field.name, field.number, field.type, field.is_repeated) for field in message.fields]
        assert [(field.name, field.number, field.type, field.is_repeated) for field in ours.fields] == fields
    v1 = server.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    asked = reflection_pb2.ServerReflectionRequest(host="h", file_containing_symbol="longshort.v1.Models.GetModel")
    unknown = reflection_pb2.ServerReflectionRequest(file_by_filename="stranger.proto")
    answers = v1(iter([asked.SerializeToString(), unknown.SerializeToString()]), timeout=10)
    found, missing = [reflection_pb2.ServerReflectionResponse.FromString(answer) for answer in answers]
    assert (found.valid_host, found.original_request) == ("h", asked)
    files = [FileDescriptorProto.FromString(file) for file in found.file_descriptor_response.file_descriptor_proto]
    assert [file.name for file in files] == ["longshort/v1/models.proto", "longshort/v1/types.proto"]
    assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_health_lists_all_names_and_is_not_in_the_log(server: Server) -> None:
    listed = server.channel.unary_unary("/grpc.health.v1.Health/List")(b"", timeout=10)
    assert all(name.encode() in listed for name in HEALTH_NAMES)
    health_pb2_grpc.HealthStub(server.channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
    assert "grpc.health" not in server.log()
    assert "grpc.health" not in server.http("/metrics")[1]


def test_held_reflection_streams_do_not_block_others(server: Server) -> None:
    """300 of them, of 20 connections, were all that gRPC's own service had threads for, and more."""
    silent = threading.Event()

    def hold() -> Iterator[bytes]:
        yield reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()
        silent.wait(60)

    path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    channels = [server.new_channel() for _ in range(20)]
    streams = []
    for channel in channels * 15:
        streams.append(channel.stream_stream(path)(hold(), timeout=60))
        next(streams[-1])  # what is still being answered would be cancelled when it gives way
    begin = time.monotonic()
    assert "longshort.v1.Inference" in ProtoReflectionDescriptorDatabase(server.new_channel()).get_services()
    assert time.monotonic() - begin < 5
    gave_way = [stream for stream in streams if stream.done()]
    assert len(gave_way) >= 300 - 256
    assert {stream.code() for stream in gave_way} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    # Those that are silent are ended.
    assert streams[-1].code() == grpc.StatusCode.UNAVAILABLE
    assert "idle for 5s" in streams[-1].details()
    silent.set()


def test_a_connection_holds_a_limited_number_of_watches(server: Server) -> None:
    channel = server.new_channel()
    stub = health_pb2_grpc.HealthStub(channel)
    watches = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(100)]
    for watch in watches:
        assert next(watch).status == SERVING
    with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED, "has 100"):
        next(stub.Watch(health_pb2.HealthCheckRequest(), timeout=60))
    assert next(health_pb2_grpc.HealthStub(server.channel).Watch(health_pb2.HealthCheckRequest())).status == SERVING
    channel.close()


def test_what_watches_and_reflection_are_asked_is_short(server: Server) -> None:
    """A watch keeps its name as long as it lasts: 480 of 8 MB each took 9.7 GB."""
    health = health_pb2_grpc.HealthStub(server.channel)
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "at most 4096"):
        next(health.Watch(health_pb2.HealthCheckRequest(service="x" * 5000), timeout=60))
    unknown = health.Watch(health_pb2.HealthCheckRequest(service="x" * 4000), timeout=60)
    assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    unknown.cancel()
    for version in ("v1", "v1alpha"):
        ask = server.channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
        request = reflection_pb2.ServerReflectionRequest(host="x" * 5000, list_services="").SerializeToString()
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "at most 4096"):
            next(ask(iter([request]), timeout=60))


def test_models_are_described(api: SimpleNamespace, models: Any) -> None:
    (model,) = models.ListModels(api.models.ListModelsRequest(), timeout=5).models
    assert (model.name, model.version, model.architecture) == ("tiny", 1, "language_model")
    assert (model.precision, model.tokenizer, model.vocabulary_size) == ("fp32", "fairseq_bytes", 260)
    assert len(model.fingerprint) == 64
    hyperparameters = model.language_model
    assert hyperparameters.layers == model_directory.LAYERS
    assert hyperparameters.model_width == model_directory.WIDTH
    assert hyperparameters.memory_length == model_directory.CONFIG["memory_length"]
    assert (model.limits.completions, model.limits.inputs, model.limits.max_tokens) == (16, 2048, 65536)
    for selector in ({}, {"name": "tiny"}, {"name": "tiny", "version": 1}):
        assert models.GetModel(api.models.GetModelRequest(model=selector), timeout=5) == model
    with expect.error(grpc.StatusCode.NOT_FOUND, "stranger", "tiny"):
        models.GetModel(api.models.GetModelRequest(model={"name": "stranger"}), timeout=5)


def test_probes_and_unknown_paths(server: Server) -> None:
    assert server.http("/livez") == (200, "ok\n")
    assert server.http("/readyz") == (200, "ready\n")
    status, text = server.http("/")
    assert status == 200 and "/metrics" in text and "gRPC" in text
    for path in ("/v1/embeddings", "/embed", "/health", "/version", "/tokenize"):
        assert path in text
    assert server.http("/nothing") == (404, f"Not Found\n\n{text}")


def test_metrics_count_what_was_done(api: SimpleNamespace, inference: Any, server: Server) -> None:
    def count(code: str) -> float:
        return server.metric("longshort_requests_total", rpc="Generate", model="tiny", code=code)

    wait_until(lambda: server.metric("longshort_streams_active") == 0)  # those that other tests have left
    before = {
        "ok": count("OK"),
        "wrong": count("INVALID_ARGUMENT"),
        "prompt": server.metric("longshort_prompt_tokens_total", model="tiny"),
        "generated": server.metric("longshort_generated_tokens_total", model="tiny"),
        "first": server.metric("longshort_time_to_first_token_seconds_count", model="tiny"),
        "next": server.metric("longshort_inter_token_duration_seconds_count", model="tiny"),
    }
    inference.Generate(api.inference.GenerateRequest(prompt={"text": "12345"}, max_tokens=10), timeout=10)
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT):
        inference.Generate(api.inference.GenerateRequest(), timeout=10)
    with expect.error(grpc.StatusCode.NOT_FOUND):
        inference.Generate(api.inference.GenerateRequest(model={"name": "x"}), timeout=10)
    wait_until(lambda: count("OK") == before["ok"] + 1)
    assert count("INVALID_ARGUMENT") == before["wrong"] + 1
    assert server.metric("longshort_requests_total", rpc="Generate", model="", code="NOT_FOUND") >= 1
    assert server.metric("longshort_prompt_tokens_total", model="tiny") == before["prompt"] + 5
    assert server.metric("longshort_generated_tokens_total", model="tiny") == before["generated"] + 10
    assert server.metric("longshort_time_to_first_token_seconds_count", model="tiny") == before["first"] + 1
    assert server.metric("longshort_inter_token_duration_seconds_count", model="tiny") == before["next"] + 9
    assert server.metric("longshort_cache_bytes", model="tiny", state="free") > 0
    assert server.metric("longshort_cache_bytes", model="tiny", state="used") == 0
    assert server.metric("longshort_build_info") == 1
    assert server.metric("longshort_model_load_duration_seconds", model="tiny") > 0
    for histogram in ("request", "queue", "prefill", "step"):
        name = f"longshort_{histogram}_duration_seconds"
        assert server.metric(f"{name}_count", model="tiny") > 0
        first_bucket = f'{name}_bucket{{model="tiny",version="1",le="5e-05"}}'
        assert first_bucket in server.http("/metrics")[1] or histogram == "request"
    assert server.metric("longshort_batch_rows_count", model="tiny") > 0


def test_a_request_id_is_returned_and_logged(api: SimpleNamespace, inference: Any, server: Server) -> None:
    question = api.inference.TokenizeRequest(input={"text": "x"})
    _, call = inference.Tokenize.with_call(question, metadata=[("x-request-id", "my-id:1")], timeout=5)
    assert dict(call.initial_metadata())["x-request-id"] == "my-id:1"
    _, call = inference.Tokenize.with_call(question, metadata=[("x-request-id", "no good =")], timeout=5)
    drawn = dict(call.initial_metadata())["x-request-id"]
    assert len(drawn) == 16
    wait_until(lambda: f"id={drawn}" in server.log())
    assert "request id=my-id:1 rpc=Tokenize model=tiny version=1 code=OK" in server.log()


def test_log_lines_are_json_if_asked_for(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--log-format=json") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        with expect.error(grpc.StatusCode.NOT_FOUND):
            stub.Generate(api.inference.GenerateRequest(model={"name": 'a"\\\n\x01é'}), timeout=10)
        server.terminate()
        assert server.wait() == 0
        lines = [json.loads(line) for line in server.log().splitlines()]
    assert [line["message"] for line in lines] == [
        "starts",
        "model configured",
        "ready",
        "request",
        "draining",
        "drained",
    ]
    assert lines[3]["code"] == "NOT_FOUND" and 'a"\\\n\x01é' in lines[3]["error"]


@pytest.mark.parametrize(
    ("argument", "parts"),
    [
        ("--max-stream=1", ("--max-stream is not an option", "--max-streams")),
        ("--precision=fp64", ("--precision", "fp64", "bf16")),
        ("--devices=cuda", ("--devices", "cuda:N")),
        ("--devices=cpu:2,cuda:0", ("--devices", "cuda:0 is a GPU", "leave it out")),
        ("--listen=nowhere", ("--listen", "nowhere", "host:port")),
        ("--http-listen=127.0.0.1:70000", ("--http-listen", "70000", "65535")),
        ("--threads=many", ("--threads", "many", "whole number")),
        ("--drain-timeout=30", ("--drain-timeout", "30", "unit")),
        ("--max-queued-requests=0", ("--max-queued-requests is '0'", "[1, 1048576]")),
        ("--latency-buckets=1,0.5", ("--latency-buckets", "0.5 after 1")),
        ("--max-connection-age-grace=5s", ("--max-connection-age-grace needs --max-connection-age",)),
        ("--log-level=loud", ("--log-level", "loud", "debug")),
        ("--flagfile=/no/such/file", ("/no/such/file",)),
        ("positional", ("positional",)),
        ("--max-streams=60000000", ("--max-streams is '60000000'",)),
    ],
)
def test_a_wrong_option_is_named(repository: Path, argument: str, parts: tuple[str, ...]) -> None:
    ended = run(f"--model-repository={repository}", argument)
    assert ended.returncode == 1
    for part in parts:
        assert part in ended.stderr


def test_help_and_version() -> None:
    ended = run("--help")
    assert ended.returncode == 0
    for option in ("model-repository", "listen", "http-listen", "devices", "precision", "drain-timeout", "log-format"):
        assert f"--{option}=" in ended.stdout
    ended = run("--version")
    assert ended.returncode == 0 and ended.stdout.startswith("longshort-server ")


def test_the_docs_have_the_tables_that_help_prints() -> None:
    page = ROOT / "docs/operations/options.md"
    assert page.read_text() == run("--help=markdown").stdout, f"run longshort-server --help=markdown > {page}"


def test_the_docs_have_the_fields_that_are_read() -> None:
    page = ROOT / "docs/config.md"
    assert page.read_text() == run("describe", "--fields").stdout, f"run longshort-server describe --fields > {page}"


def test_output_that_cannot_be_written_is_an_error(repository: Path) -> None:
    for arguments in (["--help"], ["--version"], [f"--model-repository={repository}", "--check-config"]):
        with open("/dev/full", "w") as full:
            assert subprocess.run([BINARY, *arguments], stdout=full, check=False).returncode == 1, arguments


def test_a_standard_error_that_is_closed_is_no_socket(repository: Path, tmp_path: Path) -> None:
    """Otherwise the server would write its log to a client's connection."""
    program = tmp_path / "server"
    program.write_text(f'#!/bin/sh\nexec "{BINARY}" "$@" <&- >&- 2>&-\n')
    program.chmod(0o755)
    with Server(repository, tmp_path, program=program) as server:
        assert str(Path(f"/proc/{server.process.pid}/fd/2").readlink()) == "/dev/null"


def test_what_is_no_file_is_not_replaced_by_the_port_file(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "ports").symlink_to("/dev/null")
    for more in ([], ["--check-config"]):
        ended = run(
            f"--model-repository={repository}", f"--port-file={tmp_path / 'ports'}", "--listen=127.0.0.1:0", *more
        )
        assert ended.returncode == 1
        assert "ports exists and is not a regular file" in ended.stderr
    assert (tmp_path / "ports").is_symlink()


def test_check_config_prints_what_would_be_served(repository: Path, tmp_path: Path) -> None:
    flags = tmp_path / "flags"
    flags.write_text(f"# what we serve\n--model-repository={repository}\n\n--listen=127.0.0.1:1234\n--check-config\n")
    ended = run(f"--flagfile={flags}", "--threads=1")
    assert ended.returncode == 0, ended.stderr
    assert "127.0.0.1:1234" in ended.stdout and "tiny/1: language_model, fp32" in ended.stdout


def test_check_config_refuses_a_broken_model(tmp_path: Path) -> None:
    directory = model_directory.write(tmp_path, name="broken")
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    ended = run(f"--model-repository={tmp_path}", "--check-config")
    assert ended.returncode == 1
    assert "broken" in ended.stderr and "model.safetensors" in ended.stderr


def test_a_broken_model_keeps_no_other_from_serving(api: SimpleNamespace, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    model_directory.write(repository)
    weights = model_directory.write(repository, name="broken") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    checked = run(f"--model-repository={repository}", "--check-config")
    assert checked.returncode == 1
    assert "tiny/1: language_model" in checked.stdout and "would not serve model broken" in checked.stdout
    strict = run(f"--model-repository={repository}", "--strict", "--check-config")
    assert strict.returncode == 1 and not strict.stdout and "model.safetensors" in strict.stderr
    with Server(repository, tmp_path / "server") as server:
        models = api.models_grpc.ModelsStub(server.channel)
        listed = models.ListModels(api.models.ListModelsRequest())
        assert [model.name for model in listed.models] == ["tiny"]
        assert [(failure.name, failure.version) for failure in listed.failures] == [("broken", 1)]
        assert "broken/1/model.safetensors" in listed.failures[0].reason
        assert str(repository) not in listed.failures[0].reason, "clients see names in the repository"
        with pytest.raises(grpc.RpcError) as refused:
            models.GetModel(api.models.GetModelRequest(model={"name": "broken"}))
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND
        assert listed.failures[0].reason in refused.value.details()
        code, text = server.http("/readyz")
        assert code == 200 and "could not be loaded: 1 " in text
        assert server.metric("longshort_models_not_loaded") == 1
        assert server.metric("longshort_model_load_failures_total") == 1
        assert "model not loaded; it is not served model=broken version=1" in server.log()


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    weights = model_directory.write_zeros(tmp_path, "large", layers=physical // (256 << 20) + 1)
    begin = time.monotonic()
    checked = run("--check-config", f"--model-repository={tmp_path}")
    assert time.monotonic() - begin < 10, "reading so much takes far longer"
    assert checked.returncode == 1
    found = re.search(r"model large version 1.*does not fit.*weights need ([\d.]+) MiB", checked.stderr)
    assert found, checked.stderr
    # With its positions.
    assert weights < float(found[1]) * (1 << 20) < 1.01 * weights


def test_an_error_in_a_file_names_the_line(repository: Path, tmp_path: Path) -> None:
    flags = tmp_path / "flags"
    flags.write_text("# comment\n--threads=none\n")
    ended = run(f"--model-repository={repository}", f"--flagfile={flags}")
    assert ended.returncode == 1 and f"{flags}:2: --threads" in ended.stderr


def test_a_missing_or_empty_repository_is_named(tmp_path: Path) -> None:
    for repository in (tmp_path / "missing", tmp_path):
        ended = run(f"--model-repository={repository}", "--check-config")
        assert ended.returncode == 1 and str(repository) in ended.stderr
    assert "--model-repository" in run().stderr


@pytest.mark.parametrize("option", ["--listen", "--http-listen"])
def test_a_port_in_use_is_named(repository: Path, option: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        rest = {"--listen": "127.0.0.1:0", "--http-listen": "127.0.0.1:0"} | {option: f"127.0.0.1:{port}"}
        ended = run(f"--model-repository={repository}", *[f"{name}={value}" for name, value in rest.items()])
    assert ended.returncode == 1 and f"{option}=127.0.0.1:{port}" in ended.stderr


def test_two_models_are_distinguished(api: SimpleNamespace, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    model_directory.write(repository, "one", 1, seed=1)
    model_directory.write(repository, "one", 3, seed=2)
    model_directory.write(repository, "two", 2, seed=3)
    with Server(repository, tmp_path) as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "one", "two"):
            stub.Tokenize(api.inference.TokenizeRequest(input={"text": "x"}), timeout=5)
        answer = stub.Tokenize(api.inference.TokenizeRequest(model={"name": "one"}, input={"text": "x"}), timeout=5)
        assert (answer.model.name, answer.model.version) == ("one", 3)
        health = health_pb2_grpc.HealthStub(server.channel)
        for name in ("one", "one/3", "two", "two/2"):
            assert health.Check(health_pb2.HealthCheckRequest(service=name), timeout=5).status == SERVING


def test_a_full_queue_refuses(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--max-streams=1", "--max-queued-requests=1") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        long = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=65536)
        running = stub.GenerateStream(long)
        assert next(running).HasField("start")
        wait_until(lambda: server.metric("longshort_streams_active") == 1)
        waiting = stub.GenerateStream(long)
        assert next(waiting).HasField("start")
        wait_until(lambda: server.metric("longshort_queued_requests") == 1)
        with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED):
            stub.Generate(long, timeout=30)
        running.cancel()
        waiting.cancel()
        wait_until(lambda: server.metric("longshort_streams_active") == 0)


def test_a_first_call_makes_no_thread_but_those_of_its_workers_team_which_any_rest_ends(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """What was warmed up was so in another thread than the worker's, and nothing that stays was left to the worker."""
    with Server(repository, tmp_path, "--threads=2") as server:

        def threads() -> set[str]:
            """Those of the server; gRPC's, which have names, come and go."""
            tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
            return {task.name for task in tasks if (task / "comm").read_text().startswith("longshort")}

        at_first = threads()
        stub = api.inference_grpc.InferenceStub(server.channel)
        for _ in range(2):
            stub.ScoreText(api.inference.ScoreTextRequest(inputs=[{"text": "ab" * 40}]), timeout=60)
            assert len(threads() - at_first) <= 1, "a team of two is the worker and another one"
            wait_until(lambda: threads() <= at_first)


def test_variables_that_bind_openmps_threads_are_ignored(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """They would bind every thread to the first CPU."""
    variables = {"OMP_PROC_BIND": "true", "GOMP_CPU_AFFINITY": "0", "OMP_THREAD_LIMIT": "1", "OMP_PLACES": "cores"}
    with Server(repository, tmp_path, environment=variables) as server:
        request = api.inference.ScoreTextRequest(inputs=[{"text": "x" * 2000}])
        api.inference_grpc.InferenceStub(server.channel).ScoreText(request, timeout=60)
        for task in Path(f"/proc/{server.process.pid}/task").iterdir():
            assert os.sched_getaffinity(int(task.name)) == os.sched_getaffinity(0), task.name
        for name, value in variables.items():
            assert f'environment variable ignored why="{name}={value} would bind' in server.log()
    for value in ("false", ""):
        with Server(repository, tmp_path / f"not-{value}", environment={"OMP_PROC_BIND": value}) as server:
            server.http("/readyz")
            assert "OMP_PROC_BIND" not in server.log()


@pytest.mark.parametrize(("choice", "answered"), [("all", 1), ("errors", 0), ("1000000000", 0)])
def test_log_requests_chooses_the_lines(
    api: SimpleNamespace, repository: Path, tmp_path: Path, choice: str, answered: int
) -> None:
    with Server(repository, tmp_path, "--log-format=json", f"--log-requests={choice}") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        request = api.inference.TokenizeRequest(input={"text": "x"})
        stub.Tokenize(request, timeout=60, metadata=[("x-request-id", "answered")])
        request.model.name = "stranger"
        with expect.error(grpc.StatusCode.NOT_FOUND):
            stub.Tokenize(request, timeout=60, metadata=[("x-request-id", "failed")])

        def lines(name: str) -> list[Any]:
            return [line for line in map(json.loads, server.log().splitlines()) if line.get("id") == name]

        wait_until(lambda: len(lines("failed")) == 1)
        assert len(lines("answered")) == answered


def test_the_first_line_of_the_log_and_the_metrics_have_the_limits(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--log-format=json", "--threads=2") as server:
        first = json.loads(server.log().splitlines()[0])
        assert (first["message"], first["threads"]) == ("starts", 2)
        assert first["cpus"] == server.metric("longshort_cpus")
        assert first["memory_limit_bytes"] == server.metric("longshort_memory_limit_bytes")
        assert server.metric("longshort_worker_threads") == 2
