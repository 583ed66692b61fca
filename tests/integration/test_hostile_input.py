"""No input of any kind ends the process."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect
from integration.server_process import MEASURED, Server, wait_until

METHODS = [
    "/longshort.v1.Inference/ScoreText",
    "/longshort.v1.Inference/Generate",
    "/longshort.v1.Inference/GenerateStream",
    "/longshort.v1.Inference/Tokenize",
    "/longshort.v1.Models/GetModel",
]


@pytest.fixture(autouse=True)
def still_serves(api: SimpleNamespace, server: Server) -> Iterator[None]:
    """After each test the same process answers, on a new connection."""
    yield
    assert server.process.poll() is None
    with server.new_channel() as channel:
        answer = api.inference_grpc.InferenceStub(channel).Generate(
            api.inference.GenerateRequest(prompt={"text": "still there?"}, max_tokens=3), timeout=10
        )
    assert answer.usage.generated_tokens == 3
    assert server.http("/readyz")[0] == 200


def call_raw(server: Server, method: str, payload: bytes) -> Any:
    """Sends bytes as a request message."""
    if method.endswith("Stream"):
        return list(server.channel.unary_stream(method)(payload, timeout=10))
    return server.channel.unary_unary(method)(payload, timeout=10)


@pytest.mark.parametrize("method", METHODS)
def test_a_malformed_message_is_an_invalid_argument(server: Server, method: str) -> None:
    rpc = method.rsplit("/", 1)[1]
    before = server.metric("longshort_requests_total", rpc=rpc, code="INVALID_ARGUMENT")
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "malformed"):
        call_raw(server, method, b"\xff\xff\xff\xff\x07")
    assert server.metric("longshort_requests_total", rpc=rpc, code="INVALID_ARGUMENT") == before + 1


def test_text_that_is_not_utf8_is_an_invalid_argument(server: Server) -> None:
    text = b"\x0a\x02\xc3\x28"  # Input.text = "\xc3("
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "UTF-8"):
        call_raw(server, "/longshort.v1.Inference/Tokenize", b"\x12" + bytes([len(text)]) + text)


def test_calls_without_a_message_are_cancelled_not_malformed(server: Server) -> None:
    def ended(code: str) -> float:
        return server.metric("longshort_requests_total", rpc="Generate", code=code)

    generate = server.channel.stream_unary("/longshort.v1.Inference/Generate")
    malformed, cancelled = ended("INVALID_ARGUMENT"), ended("CANCELLED")
    with expect.error(grpc.StatusCode.CANCELLED, "before its message arrived"):
        generate(iter(()), timeout=10)
    assert (ended("INVALID_ARGUMENT"), ended("CANCELLED")) == (malformed, cancelled + 1)


def test_nor_are_those_that_end_while_their_message_comes(api: SimpleNamespace, inference: Any, server: Server) -> None:
    """Which of these the server sees at all, and how much of them, is left to chance."""
    question = api.inference.GenerateRequest(prompt={"raw": b"x" * 1000}, max_tokens=3)
    malformed = server.metric("longshort_requests_total", rpc="Generate", code="INVALID_ARGUMENT")
    calls = [inference.Generate.future(question, timeout=0.0005) for _ in range(100)]
    for _ in range(200):
        calls.append(inference.Generate.future(question))
        calls[-1].cancel()
    for call in calls:
        with contextlib.suppress(grpc.RpcError, grpc.FutureCancelledError):
            call.result()
    inference.Generate(question, timeout=10)
    wait_until(lambda: server.metric("longshort_streams_active") == 0)
    assert server.metric("longshort_requests_total", rpc="Generate", code="INVALID_ARGUMENT") == malformed


def test_a_message_that_is_too_large_is_refused(api: SimpleNamespace, inference: Any) -> None:
    with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max"):
        question = api.inference.ScoreTextRequest(inputs=[{"raw": b"x" * (9 << 20)}])
        inference.ScoreText(question, timeout=10)


@pytest.mark.parametrize("method", ["Inference/GenerateStream", "Inference/ScoreTexts", "Sessions/ImportSession"])
def test_so_is_one_of_a_stream(server: Server, method: str) -> None:
    with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max"):
        list(server.channel.stream_stream(f"/longshort.v1.{method}")(iter([b"x" * (9 << 20)]), timeout=10))


def test_the_bytes_of_a_message_are_not_kept_while_its_call_lasts(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """Each of these has 7 MB in an unknown field."""
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=16000).SerializeToString()
    unknown = b"\xfa\x7f\xc0\x9f\xab\x03" + bytes(7_000_000)  # field 2047
    with Server(repository, tmp_path, "--max-queue-time=1h", environment=MEASURED) as server:
        ask = server.channel.unary_stream("/longshort.v1.Inference/GenerateStream")
        calls = [ask(request)]
        next(calls[0])
        before = server.peak_memory()
        for _ in range(40):
            calls.append(ask(request + unknown))
            next(calls[-1])
        assert server.peak_memory() - before < 140 << 20, "of 280 MB"
        for call in calls:
            call.cancel()


SCORE_TEXT, MODEL_INFER = "/longshort.v1.Inference/ScoreText", "/inference.GRPCInferenceService/ModelInfer"
# Of two bytes each.
NOTHINGS = {
    "inputs": (SCORE_TEXT, b"\x12\x00"),
    "unknown numbers": (SCORE_TEXT, b"\x78\x00"),
    "unknown groups": (SCORE_TEXT, b"\x7b\x7c"),
    "images": ("/longshort.v1.Inference/ClassifyImage", b"\x12\x00"),
    "tensors": (MODEL_INFER, b"\x2a\x00"),
    "raw contents": (MODEL_INFER, b"\x3a\x00"),
}


@pytest.mark.not_sanitized("the sanitizers have an allocator of their own")
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("what", NOTHINGS)
def test_millions_of_empty_fields_take_little_memory(
    repository: Path, tmp_path: Path, what: str, compressed: bool
) -> None:
    """In 24 calls of 8 MiB at once: parsed, some of them would take a gigabyte each."""
    method, nothing = NOTHINGS[what]
    # Some noise, because what shrinks to less than a hundredth is refused at once.
    generator = random.Random(5)
    noise = (b"\xfa\x7f\x40" + generator.randbytes(64) for _ in range((8 << 20) // 4000))  # field 2047
    message = b"".join(nothing * 1900 + (one if compressed else b"") for one in noise)
    compression = grpc.Compression.Gzip if compressed else None
    with Server(repository, tmp_path, environment=MEASURED) as server, ThreadPoolExecutor(24) as clients:
        server.forget_peak_memory()
        before = server.peak_memory()
        ask = server.channel.unary_unary(method)
        calls = [clients.submit(ask, message, timeout=60, compression=compression) for _ in range(24)]
        for call in calls:
            with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "more than 16384 messages"):
                call.result()
        assert server.peak_memory() - before < 300 << 20, "of 192 MiB that were sent"


def test_deeply_nested_and_random_messages(server: Server) -> None:
    generator = random.Random(7)
    for _ in range(300):
        payload = generator.randbytes(generator.randrange(200))
        try:
            call_raw(server, generator.choice(METHODS), payload)
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


@pytest.mark.parametrize("port", ["grpc_port", "http_port"])
def test_random_bytes_on_the_wire(server: Server, port: str) -> None:
    generator = random.Random(11)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for beginning in (b"", b"GET /metrics HTTP/1.1\r\n", preface, preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"):
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", getattr(server, port)), timeout=5) as connection:
                try:
                    connection.sendall(beginning + generator.randbytes(5000))
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(0.2)
                    while connection.recv(65536):
                        pass
                except OSError:
                    pass  # refused, which is what it deserves


def test_connections_that_say_nothing_do_not_keep_probes_waiting(server: Server) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.http_port)) for _ in range(8)]
    try:
        assert server.http("/livez")[0] == 200
    finally:
        for connection in silent:
            connection.close()


def test_clients_that_vanish(api: SimpleNamespace, server: Server) -> None:
    question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=4000, completions=2)
    for _ in range(20):
        channel = server.new_channel()
        call = api.inference_grpc.InferenceStub(channel).GenerateStream(question)
        next(call)
        channel.close()


def test_an_unknown_method_is_unimplemented(server: Server) -> None:
    with expect.error(grpc.StatusCode.UNIMPLEMENTED):
        call_raw(server, "/longshort.v1.Inference/Nothing", b"")
