"""What the retry policies of gRPC's clients need of the server: failures without initial metadata, and when to come
back. Nothing here tries again but gRPC."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from integration import http2, tokens
from integration.server_process import ROOT, Server, wait_until

FULL = grpc.StatusCode.RESOURCE_EXHAUSTED
# Five tries are gRPC's limit; the waits between them last as long as a server takes to start on a busy machine.
RETRY_POLICY = {
    "maxAttempts": 5,
    "initialBackoff": "1s",
    "maxBackoff": "30s",
    "backoffMultiplier": 3,
    "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"],
}


def retry_options() -> list[tuple[str, object]]:
    """Arguments of a channel whose calls gRPC tries again."""
    return [("grpc.service_config", json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": RETRY_POLICY}]}))]


def retrying_channel(address: str) -> grpc.Channel:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0), *retry_options()]
    return grpc.insecure_channel(address, options)


class FullServer:
    """A server of one place, whose place and queue are taken once it is filled."""

    def __init__(self, api: SimpleNamespace, repository: Path, folder: Path) -> None:
        key = folder / "key"
        folder.mkdir(parents=True)
        key.write_bytes(b"k" * 32)
        key.chmod(0o600)
        self._api = api
        self.server = Server(
            repository,
            folder,
            "--max-streams=1",
            "--max-queued-requests=1",
            "--max-message-bytes=1024",
            f"--session-key-file={key}",
        )
        self._streams: list[Any] = []

    def fill(self, tokens: int = 5000) -> None:
        """`tokens`: of what takes the places. The default takes some seconds, and refusals say how many."""
        for metric in ("longshort_streams_active", "longshort_queued_requests"):
            stub = self._api.inference_grpc.InferenceStub(self.server.channel)
            stream = stub.GenerateStream(self._api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=tokens))
            next(stream)
            threading.Thread(target=lambda stream=stream: stream.code()).start()  # reads on
            self._streams.append(stream)
            wait_until(lambda metric=metric: self.server.metric(metric) == 1)

    def make_room(self) -> None:
        for stream in self._streams:
            stream.cancel()

    def refusals(self) -> float:
        return self.server.metric("longshort_requests_total", code="RESOURCE_EXHAUSTED")


@pytest.fixture(scope="module")
def full(api: SimpleNamespace, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullServer]:
    """A server that stays full."""
    taken = FullServer(api, repository, tmp_path_factory.mktemp("full") / "server")
    with taken.server:
        taken.fill(tokens=65536)
        yield taken


class Frame(NamedTuple):
    kind: int
    last: bool
    payload: bytes


def answer_frames(server: Server, method: str, message: bytes, beginning: bytes = http2.BEGINNING) -> list[Frame]:
    """The answer to one call."""
    answer: list[Frame] = []
    with socket.create_connection(("127.0.0.1", server.grpc_port)) as connection:
        connection.sendall(beginning + http2.call(method, message, "30S"))
        for kind, flags, payload in http2.frames(connection):
            if kind == http2.SETTINGS and not flags & http2.ACKNOWLEDGED:
                connection.sendall(http2.frame(http2.SETTINGS, http2.ACKNOWLEDGED, 0, b""))
            if kind in (http2.HEADERS, http2.DATA):
                answer.append(Frame(kind, bool(flags & http2.END_STREAM), payload))
                if answer[-1].last:
                    break
    return answer


def failing_calls(api: SimpleNamespace) -> dict[str, tuple[str, Any]]:
    """Calls of every kind that fail before their first message, by what is wrong with them: method and message."""
    inference, sessions = api.inference, api.sessions
    generate = inference.GenerateRequest(prompt={"text": "x"}, max_tokens=1000)
    several = inference.GenerateRequest(prompt={"text": "x"}, max_tokens=1000, completions=3, echo=True)
    unknown = {"name": "stranger"}
    return {
        "unary, no room": ("Inference/Generate", generate),
        "unary, no room for its text": ("Inference/ScoreText", inference.ScoreTextRequest(inputs=[{"text": "xy"}])),
        "stream, no room": ("Inference/GenerateStream", generate),
        "stream, no room for several": ("Inference/GenerateStream", several),
        "unary, no model": ("Inference/Tokenize", inference.TokenizeRequest(model=unknown)),
        "stream, no model": ("Inference/GenerateStream", inference.GenerateRequest(model=unknown)),
        "stream both ways, no model": (
            "Inference/ScoreTexts",
            inference.ScoreTextsRequest(options={"model": unknown}, input={"text": "xy"}),
        ),
        "export, no session": ("Sessions/ExportSession", sessions.ExportSessionRequest(session_id="stranger")),
        "import, cut short": (
            "Sessions/ImportSession",
            sessions.ImportSessionRequest(beginning=sessions.ImportBeginning(session_id="new")),
        ),
        "gRPC's own: no method": ("Inference/Nothing", generate),
        "gRPC's own: too long": ("Inference/Generate", inference.GenerateRequest(prompt={"text": "x" * 2000})),
    }


def test_failures_before_the_first_message_are_one_frame(api: SimpleNamespace, full: FullServer) -> None:
    """Which is what a client that may try again waits for: initial metadata would be the beginning of an answer."""
    for wrong, (method, message) in failing_calls(api).items():
        frames = answer_frames(full.server, f"/longshort.v1.{method}", message.SerializeToString())
        assert [(frame.kind, frame.last) for frame in frames] == [(http2.HEADERS, True)], wrong


def test_answers_have_initial_metadata(api: SimpleNamespace, server: Server) -> None:
    ask = api.inference.TokenizeRequest(input={"text": "x"}).SerializeToString()
    frames = answer_frames(server, "/longshort.v1.Inference/Tokenize", ask)
    kinds = [(frame.kind, frame.last) for frame in frames]
    assert kinds == [(http2.HEADERS, False), (http2.DATA, False), (http2.HEADERS, True)]


def test_every_call_has_its_id_in_its_trailers(api: SimpleNamespace, full: FullServer) -> None:
    stub = api.inference_grpc.InferenceStub(full.server.channel)
    metadata = [("x-request-id", "mine")]
    answered = stub.Tokenize.with_call(api.inference.TokenizeRequest(input={"text": "x"}), metadata=metadata)[1]
    assert dict(answered.initial_metadata())["x-request-id"] == "mine"
    assert dict(answered.trailing_metadata())["x-request-id"] == "mine"
    refused = stub.Generate.future(api.inference.GenerateRequest(prompt={"text": "x"}), metadata=metadata)
    assert refused.code() == FULL
    assert not refused.initial_metadata()
    assert dict(refused.trailing_metadata())["x-request-id"] == "mine"


def test_a_refusal_says_to_grpc_when_to_come_back(api: SimpleNamespace, full: FullServer) -> None:
    stub = api.inference_grpc.InferenceStub(full.server.channel)
    refused = stub.Generate.future(api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=10))
    assert refused.code() == FULL
    (detail,) = rpc_status.from_call(refused).details
    retry = error_details_pb2.RetryInfo()
    assert detail.Unpack(retry), "under the name that everybody's library knows"
    milliseconds = retry.retry_delay.ToTimedelta().total_seconds() * 1000
    assert milliseconds > 0
    pushback = int(dict(refused.trailing_metadata())["grpc-retry-pushback-ms"])
    assert milliseconds <= pushback < milliseconds + 1


def calls_with_one_answer(api: SimpleNamespace, channel: grpc.Channel) -> list[Callable[[], object]]:
    """A call of each kind that may be refused."""
    stub = api.inference_grpc.InferenceStub(channel)
    question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=5)
    return [
        lambda: stub.Generate(question, timeout=60),
        lambda: list(stub.GenerateStream(question, timeout=60)),
        lambda: stub.ScoreText(api.inference.ScoreTextRequest(inputs=[{"text": "xy"}]), timeout=60),
    ]


def test_refused_calls_are_tried_again_by_grpc(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    full = FullServer(api, repository, tmp_path / "server")
    with full.server as server, ThreadPoolExecutor() as clients:
        channel = retrying_channel(f"127.0.0.1:{server.grpc_port}")
        full.fill()
        calls = [clients.submit(call) for call in calls_with_one_answer(api, channel)]
        wait_until(lambda: full.refusals() >= len(calls))
        full.make_room()
        assert all(call.result() for call in calls)
        channel.close()


def test_a_fresh_server_has_room_for_more_callers_than_at_once(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """Eight callers find room for three, while it is unknown how long work takes."""
    with (
        Server(repository, tmp_path / "server", "--max-streams=1", "--max-queued-requests=2") as server,
        retrying_channel(f"127.0.0.1:{server.grpc_port}") as channel,
    ):
        stub = api.inference_grpc.InferenceStub(channel)
        question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=30)
        calls = [stub.Generate.future(question, timeout=60) for _ in range(8)]
        assert [call.code() for call in calls] == [grpc.StatusCode.OK] * 8
        assert server.metric("longshort_requests_total", code="RESOURCE_EXHAUSTED") > 0


@pytest.fixture
def pushbacks(api: SimpleNamespace, repository: Path, tmp_path: Path) -> list[int]:
    """The milliseconds that a full server asks a call of 0 to 5 earlier attempts to wait."""
    full = FullServer(api, repository, tmp_path / "server")
    # gRPC removes a caller's count of attempts from calls that it may retry.
    options = [("grpc.enable_retries", 0)]

    def pushback(attempts: int) -> int:
        metadata = [("grpc-previous-rpc-attempts", str(attempts))] if attempts else []
        refused = stub.ScoreText.future(api.inference.ScoreTextRequest(inputs=[{"text": "xy"}]), metadata=metadata)
        assert refused.code() == FULL
        return int(dict(refused.trailing_metadata())["grpc-retry-pushback-ms"])

    with full.server, grpc.insecure_channel(f"127.0.0.1:{full.server.grpc_port}", options=options) as channel:
        stub = api.inference_grpc.InferenceStub(channel)
        full.fill(tokens=20000)
        found = [pushback(attempts) for attempts in range(6)]
        full.make_room()
    return found


def test_each_refused_attempt_is_asked_to_wait_longer(pushbacks: list[int]) -> None:
    assert all(found >= least for found, least in zip(pushbacks[1:], (1000, 2000, 4000, 8000, 8000), strict=True))


@pytest.mark.not_sanitized(reason="a measured step takes longer there than is assumed for one")
def test_until_steps_are_measured_20000_tokens_are_assumed_to_take_100_s(pushbacks: list[int]) -> None:
    assert pushbacks[0] < 90_000


def test_calls_beyond_an_identitys_limit_have_their_turns(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """At 20 a second, 20 of 60 are admitted at once, and the others one after the other."""
    file = tokens.write(tmp_path / "tokens", tokens.line("alice", "token", "scopes=infer calls-per-second=20"))
    with (
        Server(repository, tmp_path / "server", f"--token-file={file}") as server,
        retrying_channel(f"127.0.0.1:{server.grpc_port}") as channel,
    ):
        stub = api.inference_grpc.InferenceStub(channel)
        request = api.inference.TokenizeRequest(input={"text": "x"})
        calls = [stub.Tokenize.future(request, timeout=60, metadata=tokens.bearer("token")) for _ in range(60)]
        assert [call.code() for call in calls] == [grpc.StatusCode.OK] * 60


def test_calls_outlive_restarts_by_grpcs_retries(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    over = threading.Event()

    def ask_until_over(channel: grpc.Channel) -> int:
        stub = api.inference_grpc.InferenceStub(channel)
        asked = 0
        while not over.is_set():
            answer = stub.Generate(api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=2), timeout=120)
            assert answer.usage.generated_tokens == 2
            asked += 1
        return asked

    with ThreadPoolExecutor(4) as clients:
        server = Server(repository, tmp_path / "0")
        address = f"127.0.0.1:{server.grpc_port}"
        channels = [retrying_channel(address) for _ in range(4)]
        asked = [clients.submit(ask_until_over, channel) for channel in channels]
        try:
            for restart in range(3):
                with server:
                    wait_until(lambda server=server: server.metric("longshort_requests_total", code="OK") > 20)
                    server.terminate()
                    assert server.wait() == 0
                server = Server(repository, tmp_path / str(restart + 1), grpc_port=server.grpc_port)
            with server:
                wait_until(lambda: server.metric("longshort_requests_total", code="OK") > 20)
                over.set()
                assert all(client.result() for client in asked)
        finally:
            over.set()


def test_the_contract_stands_beside_googles_own_files(server: Server, tmp_path: Path) -> None:
    """A program may load stubs of all of proto/ beside googleapis-common-protos."""
    program = """
import importlib, pathlib, sys
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc
protos = sorted(str(path.relative_to(sys.argv[1])) for path in pathlib.Path(sys.argv[1]).rglob("*.proto"))
into = ["protoc", f"--proto_path={sys.argv[1]}", f"--python_out={sys.argv[2]}", f"--grpc_python_out={sys.argv[2]}"]
assert protos and protoc.main(into + protos) == 0
sys.path.insert(0, sys.argv[2])
for proto in protos:
    name = proto.removesuffix(".proto").replace("/", ".")
    importlib.import_module(name + "_pb2"), importlib.import_module(name + "_pb2_grpc")
"""
    subprocess.run([sys.executable, "-c", program, ROOT / "proto", tmp_path], check=True)


def orca_load_report() -> Any:
    """The published message xds.data.orca.v3.OrcaLoadReport, without its maps, in a pool of its own."""
    doubles = {"cpu_utilization": 1, "mem_utilization": 2, "rps_fractional": 6, "eps": 7, "application_utilization": 9}
    file = descriptor_pb2.FileDescriptorProto(name="orca.proto", package="xds.data.orca.v3", syntax="proto3")
    message = file.message_type.add(name="OrcaLoadReport")
    kind = descriptor_pb2.FieldDescriptorProto
    for name, number in doubles.items():
        message.field.add(name=name, number=number, type=kind.TYPE_DOUBLE, label=kind.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("xds.data.orca.v3.OrcaLoadReport"))


def test_answers_report_the_load_on_request(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    """By hand: grpcio keeps this field from programs, for its own balancers."""
    question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=200)
    report = orca_load_report()
    with Server(repository, tmp_path, "--report-load") as server:

        def load(message: Any = question) -> Any:
            answer = answer_frames(
                server,
                "/longshort.v1.Inference/Generate",
                message.SerializeToString(),
                http2.BINARY_BEGINNING,
            )
            return report.FromString(http2.binary_value(answer[-1].payload, "endpoint-load-metrics-bin"))

        wait_until(lambda: load().rps_fractional > 0)
        wait_until(lambda: load().application_utilization > 0.1)
        assert 0 < load().mem_utilization < 1
        assert 0 < load().cpu_utilization < 1.1
        assert load(api.inference.GenerateRequest(model={"name": "stranger"})).mem_utilization > 0, "failures, too"


def test_answers_report_no_load_without_a_request(api: SimpleNamespace, server: Server) -> None:
    ask = api.inference.TokenizeRequest(input={"text": "x"}).SerializeToString()
    answer = answer_frames(server, "/longshort.v1.Inference/Tokenize", ask, http2.BINARY_BEGINNING)
    assert b"endpoint-load" not in answer[-1].payload
