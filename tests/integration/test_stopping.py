"""SIGTERM: the server is not ready, finishes running calls, and exits with 0, whatever clients keep open."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from integration import expect, http2, model_directory
from integration.server_process import BINARY, Server, less, wait_until

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
# Far longer than Server.wait() does: what stops in that time has not waited for this.
DRAIN_FOR_LONG = "--drain-timeout=10m"


def accepts_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    return True


def open_stream(api: SimpleNamespace, server: Server, max_tokens: int) -> Any:
    """A stream that has begun to generate."""
    stub = api.inference_grpc.InferenceStub(server.new_channel())
    call = stub.GenerateStream(api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=max_tokens))
    for event in call:
        if event.HasField("delta"):
            return call
    raise AssertionError("the stream ended before its first text")


def started_with(hang_up: signal.Handlers, repository: Path, folder: Path) -> Server:
    """A server that has inherited this for SIGHUP."""
    before = signal.signal(signal.SIGHUP, hang_up)
    try:
        return Server(repository, folder, DRAIN_FOR_LONG)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_idle_server_stops_at_once(repository: Path, tmp_path: Path, number: signal.Signals) -> None:
    with started_with(signal.SIG_DFL, repository, tmp_path) as server:  # ignored where nohup runs the tests
        server.process.send_signal(number)
        assert server.wait() == 0


@pytest.mark.parametrize(
    "number",
    [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE, signal.SIGXFSZ],
    ids=lambda number: number.name,
)
def test_a_signal_that_means_nothing_changes_nothing(repository: Path, tmp_path: Path, number: signal.Signals) -> None:
    with Server(repository, tmp_path, DRAIN_FOR_LONG) as server:
        server.process.send_signal(number)
        assert server.http("/readyz")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def test_a_server_that_nohup_started_outlives_its_terminal(repository: Path, tmp_path: Path) -> None:
    with started_with(signal.SIG_IGN, repository, tmp_path) as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.http("/readyz")[0] == 200
        server.terminate()
        assert server.wait() == 0


def test_an_unread_log_does_not_hold_the_server(repository: Path, tmp_path: Path) -> None:
    unread, pipe = os.pipe()
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(pipe, b"x"):
            pass
    os.set_blocking(pipe, True)
    with Server(repository, tmp_path, standard_error=pipe) as server:
        server.terminate()
        assert server.wait() == 0
    os.close(unread)
    os.close(pipe)


def test_a_server_that_loads_stops_soon(tmp_path: Path) -> None:
    """Its weights are 2 GiB, which take ten seconds and more of a CPU to read, to hash and to bring into order."""
    model_directory.write_zeros(tmp_path / "repository", "large", layers=8)
    log = tmp_path / "log"
    with (
        log.open("wb") as standard_error,
        subprocess.Popen(
            [
                BINARY,
                f"--model-repository={tmp_path / 'repository'}",
                "--listen=127.0.0.1:0",
                "--http-listen=127.0.0.1:0",
            ],
            stderr=standard_error,
        ) as process,
    ):
        weights = tmp_path / "repository/large/1/model.safetensors"
        descriptors = Path(f"/proc/{process.pid}/fd")
        wait_until(lambda: any(entry.resolve() == weights for entry in descriptors.iterdir()))
        process.send_signal(signal.SIGTERM)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        assert used.ru_utime + used.ru_stime < 5
    assert "stop requested" in log.read_text()


def test_open_watches_do_not_hold_the_server(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, DRAIN_FOR_LONG) as server:
        names = ["", "longshort.v1.Inference", "tiny", "tiny/1", "stranger"] * 4
        watches = [
            health_pb2_grpc.HealthStub(server.new_channel()).Watch(health_pb2.HealthCheckRequest(service=name))
            for name in names
        ]
        for watch in watches:
            next(watch)
        server.terminate()
        assert server.wait() == 0
        for watch in watches:
            watch.cancel()


def test_a_stream_that_waits_for_its_client_does_not_hold_the_server(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    def texts() -> Iterator[Any]:
        yield api.inference.ScoreTextsRequest(id=7, input={"text": "xy"})
        over.wait(60)

    over = threading.Event()
    with Server(repository, tmp_path, DRAIN_FOR_LONG) as server:
        answers = api.inference_grpc.InferenceStub(server.channel).ScoreTexts(texts())
        assert next(answers).id == 7
        server.terminate()
        assert server.wait() == 0
        with expect.error(UNAVAILABLE, "stopping"):
            next(answers)
        over.set()


def test_idle_connections_are_closed_without_an_error(repository: Path, tmp_path: Path) -> None:
    """So a client knows that a call it sent too late was not begun, and may go elsewhere."""
    with (
        Server(repository, tmp_path) as server,
        socket.create_connection(("127.0.0.1", server.grpc_port)) as connection,
    ):
        connection.sendall(http2.BEGINNING)
        reasons = []
        for kind, flags, payload in http2.frames(connection):
            if kind == http2.SETTINGS and not flags & http2.ACKNOWLEDGED:
                connection.sendall(http2.frame(http2.SETTINGS, http2.ACKNOWLEDGED, 0, b""))
                server.terminate()
            elif kind == http2.PING and not flags & http2.ACKNOWLEDGED:
                connection.sendall(http2.frame(http2.PING, http2.ACKNOWLEDGED, 0, payload))
            elif kind == http2.GO_AWAY:
                reasons.append(int.from_bytes(payload[4:8], "big"))
        assert server.wait() == 0
    assert reasons and not any(reasons), "0 is NO_ERROR"


def test_a_server_that_says_it_is_not_ready_serves_for_the_delay(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    with Server(repository, tmp_path, "--drain-delay=3s", DRAIN_FOR_LONG) as server:
        health = health_pb2_grpc.HealthStub(server.channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(service="tiny"))
        next(watch)
        start = time.monotonic()
        server.terminate()
        wait_until(lambda: server.http("/readyz") == (503, "not ready\n"))
        assert server.http("/livez")[0] == 200
        assert next(watch).status == NOT_SERVING
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=5).status == NOT_SERVING
        question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=3)
        for channel in (server.channel, server.new_channel()):
            answer = api.inference_grpc.InferenceStub(channel).Generate(question, timeout=30)
            assert answer.usage.generated_tokens == 3
        assert time.monotonic() - start < 3, "a machine that is too slow for this test"
        assert server.wait() == 0
        assert time.monotonic() - start > 3
        assert "drained calls_cut_off=0" in server.log()


def test_running_calls_finish_but_none_can_connect(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--drain-timeout=60s") as server:
        running = open_stream(api, server, max_tokens=less(4000))
        server.terminate()
        wait_until(lambda: server.http("/readyz") == (503, "not ready\n"))
        wait_until(lambda: not accepts_connections(server.grpc_port))
        with expect.error(UNAVAILABLE):
            api.models_grpc.ModelsStub(server.new_channel()).ListModels(api.models.ListModelsRequest(), timeout=5)
        events = list(running)
        assert events[-1].summary.usage.generated_tokens == less(4000)
        assert server.wait() == 0
        assert "drained calls_cut_off=0" in server.log()


def test_models_are_not_loaded_for_a_server_that_stops(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--drain-delay=3s", "--model-control") as server:
        server.terminate()
        wait_until(lambda: server.http("/readyz")[0] == 503)
        with expect.error(UNAVAILABLE, "stopping"):
            asked = api.models.LoadModelRequest(model={"name": "tiny", "version": 1})
            api.models_grpc.ModelsStub(server.channel).LoadModel(asked, timeout=5)


def test_a_stream_of_documents_stops_reading_at_the_end_of_the_drain(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """What it has in work is answered: a tenth of the timeout is left for that."""

    def texts() -> Iterator[Any]:
        for number in itertools.count():
            yield api.inference.ScoreTextsRequest(id=number, input={"text": "xy"})

    with Server(repository, tmp_path, "--drain-timeout=5s") as server:
        answers = api.inference_grpc.InferenceStub(server.channel).ScoreTexts(texts())
        answered = {next(answers).id}
        server.terminate()
        # gRPC closes the connection after its last call. A client that is sending may see that first, and never read
        # the call's status. The log has it.
        with expect.error(UNAVAILABLE):
            for answer in answers:
                assert not answer.HasField("error")
                answered.add(answer.id)
        assert len(answered) > 10
        assert server.wait() == 0
        assert "drained calls_cut_off=1" in server.log()
        assert re.search(r"ScoreTexts .*UNAVAILABLE.*stopping", server.log())


def test_what_takes_too_long_is_cut_off(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--drain-timeout=500ms") as server:
        running = open_stream(api, server, max_tokens=65536)
        start = time.monotonic()
        server.terminate()
        with expect.error(UNAVAILABLE, "stopping"):
            list(running)
        assert server.wait() == 0
        assert time.monotonic() - start > 0.4
        assert "drained calls_cut_off=1" in server.log()


def test_a_reader_that_stopped_reading_does_not_hold_the_server(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    with Server(repository, tmp_path, "--drain-timeout=500ms") as server:
        question = api.inference.GenerateRequest(
            prompt={"text": "x" * 100_000}, echo=True, max_tokens=1000, token_log_probabilities=True
        )
        call = api.inference_grpc.InferenceStub(server.new_channel()).GenerateStream(question)
        next(call)
        wait_until(lambda: server.metric("longshort_streams_active") == 0)  # paused, or all is said; nothing is read
        server.terminate()
        assert server.wait() == 0
        call.cancel()


def test_a_second_signal_ends_the_process_at_once(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, DRAIN_FOR_LONG) as server:
        call = open_stream(api, server, max_tokens=65536)
        server.terminate()
        wait_until(lambda: server.http("/readyz")[0] == 503)
        server.terminate()
        assert server.wait() == 128 + signal.SIGTERM
        call.cancel()


def test_sigterm_under_load(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    def code_of(rpc: str) -> grpc.StatusCode:
        question = api.inference.GenerateRequest(prompt={"text": "x" * 200}, max_tokens=16384, completions=2)
        try:
            answer = getattr(stub, rpc)(question)
            for _ in answer if rpc == "GenerateStream" else ():
                pass
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            return error.code()

    # All calls are predicted to wait less than an hour: none that comes late is refused as too much.
    arguments = ("--drain-timeout=200ms", "--max-queue-time=1h")
    with Server(repository, tmp_path, *arguments) as server, ThreadPoolExecutor(20) as clients:
        stub = api.inference_grpc.InferenceStub(server.channel)
        codes = [clients.submit(code_of, rpc) for rpc in ["Generate", "GenerateStream"] * 10]
        wait_until(lambda: server.metric("longshort_streams_active") > 0)
        server.terminate()
        assert server.wait() == 0
        assert {code.result() for code in codes} == {UNAVAILABLE}


def test_calls_that_come_until_the_end_are_unavailable(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    """Whenever a call comes: CANCELLED would say that its client gave it up, and no retry policy tries that again."""

    def codes_until_the_end(server: Server) -> set[grpc.StatusCode]:
        stub = api.models_grpc.ModelsStub(server.new_channel(("grpc.enable_retries", 0)))
        codes = set()
        while server.process.poll() is None:
            calls = [stub.ListModels.future(api.models.ListModelsRequest()) for _ in range(8)]
            codes |= {call.code() for call in calls}
        return codes

    with ThreadPoolExecutor(8) as clients:
        for stop in range(5):
            with Server(repository, tmp_path / str(stop)) as server:
                codes = [clients.submit(codes_until_the_end, server) for _ in range(8)]
                wait_until(lambda server=server: server.metric("longshort_requests_total") > 100)
                server.terminate()
                assert server.wait() == 0
                assert set().union(*(code.result() for code in codes)) == {grpc.StatusCode.OK, UNAVAILABLE}
