"""Request messages that arrive compressed."""

from __future__ import annotations

import gzip
import random
import re
import socket
import struct
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from integration import expect, http2
from integration.server_process import Server, wait_until

ALGORITHMS = pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
MIB = 1 << 20
TEXT = "the same words again and again, " * 100


def compressed_messages(server: Server) -> float:
    return server.metric("longshort_compressed_messages_total")


def likelihoods(answer: Any) -> list[float]:
    scores = answer.scores if hasattr(answer, "scores") else [answer.score]
    return [score.log_likelihood for score in scores]


@ALGORITHMS
def test_a_compressed_message_is_answered_as_a_plain_one(
    api: SimpleNamespace, inference: Any, server: Server, compression: grpc.Compression
) -> None:
    request = api.inference.ScoreTextRequest(inputs=[{"text": TEXT}])
    before = compressed_messages(server)
    answer = inference.ScoreText(request, compression=compression, timeout=60)
    # The second one begins in the prefix cache, so its steps may round otherwise.
    plain = inference.ScoreText(request, timeout=60)
    assert likelihoods(answer) == pytest.approx(likelihoods(plain), rel=1e-6)
    assert compressed_messages(server) == before + 1


@ALGORITHMS
def test_so_are_the_messages_of_streams(
    api: SimpleNamespace, inference: Any, server: Server, compression: grpc.Compression
) -> None:
    before = compressed_messages(server)
    texts = [api.inference.ScoreTextsRequest(id=n, input={"text": TEXT * n}) for n in range(1, 4)]
    plain = {answer.id: answer for answer in inference.ScoreTexts(iter(texts), timeout=60)}
    unpacked = {answer.id: answer for answer in inference.ScoreTexts(iter(texts), compression=compression, timeout=60)}
    # Documents of a stream may share steps, whose rounding depends on their rows.
    assert {n: likelihoods(answer) for n, answer in unpacked.items()} == {
        n: pytest.approx(likelihoods(answer), rel=1e-6) for n, answer in plain.items()
    }
    question = api.inference.GenerateRequest(prompt={"text": TEXT}, max_tokens=3)
    assert len(list(inference.GenerateStream(question, compression=compression, timeout=60))) >= 3
    assert compressed_messages(server) == before + 4


@ALGORITHMS
@pytest.mark.parametrize("method", ["ScoreText", "GenerateStream", "ScoreTexts"])
def test_a_message_that_unpacks_to_more_than_the_limit_is_refused_and_takes_no_memory(
    server: Server, method: str, compression: grpc.Compression
) -> None:
    """The limit is the same as that of a plain message."""
    limit = 8 * MIB
    generator = random.Random(7)
    # What shrinks to less than a hundredth would be refused for that.
    content = b"".join(generator.randbytes(100) + bytes(3996) for _ in range(128 * MIB // 4096))
    call = server.channel.stream_stream(f"/longshort.v1.Inference/{method}")
    unknown = b"\xfa\x7f\x80\x80\x80\x40" + content  # field 2047
    server.forget_peak_memory()
    before = server.peak_memory()
    with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max", f"more than {limit} bytes"):
        list(call(iter([unknown]), compression=compression, timeout=60))
    assert server.peak_memory() - before < 64 * MIB
    list_models = server.channel.unary_unary("/longshort.v1.Models/ListModels")
    longest = b"\xfa\x7f\xfa\xff\xff\x03" + content[: limit - 6]
    assert list_models(longest, compression=compression, timeout=60)
    with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED, f"more than {limit} bytes"):
        list_models(longest + b"\x50\x00", compression=compression, timeout=60)


@ALGORITHMS
def test_a_message_that_shrinks_to_less_than_a_hundredth_is_refused(
    server: Server, compression: grpc.Compression
) -> None:
    list_models = server.channel.unary_unary("/longshort.v1.Models/ListModels")
    assert list_models(b"\xfa\x7f\xfa\xff\x3f" + bytes(MIB - 6), compression=compression, timeout=60)
    with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED, "more than 100 times the compressed data"):
        list_models(b"\xfa\x7f\x80\x80\x40" + bytes(MIB), compression=compression, timeout=60)


def test_what_anonymous_callers_may_send_has_its_own_limit(server: Server) -> None:
    request = health_pb2.HealthCheckRequest(service="x" * 5000)
    health = health_pb2_grpc.HealthStub(server.channel)
    with expect.error(grpc.StatusCode.RESOURCE_EXHAUSTED, "more than 4096 bytes"):
        health.Check(request, compression=grpc.Compression.Gzip, timeout=60)


def send(server: Server, encoding: str, message: bytes, calls: int = 1) -> list[int]:
    """Calls of ListModels, each on a connection of its own, with a message that is marked as compressed. Returns the
    ports of the clients."""
    headers = http2.call_headers("/longshort.v1.Models/ListModels", grpc_encoding=encoding)
    message = struct.pack(">BI", 1, len(message)) + message
    ports = []
    for _ in range(calls):
        with socket.create_connection(("127.0.0.1", server.grpc_port), timeout=20) as client:
            client.sendall(http2.BEGINNING + http2.frame(http2.HEADERS, http2.END_HEADERS, 1, headers))
            client.sendall(http2.frame(http2.DATA, http2.END_STREAM, 1, message))
            trailers = (flags & http2.END_STREAM for kind, flags, _ in http2.frames(client) if kind == http2.HEADERS)
            assert any(trailers)
            ports.append(client.getsockname()[1])
    return ports


@pytest.mark.parametrize("damage", ["not gzip", "cut", "wrong sum", "followed"])
def test_damaged_messages_are_invalid_arguments(server: Server, damage: str) -> None:
    packed = gzip.compress(b"\xfa\x7f\x05hello")
    messages = {"not gzip": b"?" * 20, "cut": packed[:-9], "wrong sum": packed[:-8] + bytes(8), "followed": packed * 2}
    before = server.metric("longshort_requests_total", rpc="ListModels", code="INVALID_ARGUMENT")
    (port,) = send(server, "gzip", messages[damage])
    wait_until(
        lambda: server.metric("longshort_requests_total", rpc="ListModels", code="INVALID_ARGUMENT") == before + 1
    )
    line = rf"request .* rpc=ListModels .* code=INVALID_ARGUMENT .* peer=ipv4:127\.0\.0\.1:{port} error="
    wait_until(lambda: re.search(line, server.log()) is not None)


def test_encodings_that_the_server_does_not_know_make_few_lines(server: Server) -> None:
    lines = len(server.log().splitlines())
    send(server, "snappy", b"?" * 20, calls=20)
    for encoding in ("gzip, deflate", "", "stream/gzip"):
        send(server, encoding, b"?" * 20, calls=10)
    new = server.log().splitlines()[lines:]
    assert len([line for line in new if "gRPC" in line]) <= 3, new
