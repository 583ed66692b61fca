"""Clients of HTTP that send what no client should, or take nothing of what they asked for."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import random
import socket
import struct
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from integration.certificates import Authority
from integration.connect_calls import (
    GENERATE_STREAM,
    LARGE,
    LONG,
    SCORE_TEXT,
    TOKENIZE,
    begin_stream,
    connect,
    envelope,
    envelopes,
    head,
    lives,
    post,
    receive_all,
)
from integration.server_process import MEASURED, Server, wait_until
from integration.tls_calls import files_of

LIVEZ = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ENDLESS = json.dumps({"prompt": "x", "max_tokens": 60_000}).encode()


def ask(server: Server, request: bytes) -> bytes:
    """The answer to these bytes, until the server closes the connection."""
    with connect(server) as connection:
        connection.sendall(request)
        return receive_all(connection)


def statuses(answers: bytes) -> list[int]:
    return [int(line.split()[1]) for line in answers.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


SMUGGLED = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMUGGLING = {
    "two lengths": b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED),
    "two equal lengths in one": b"Content-Length: %d, %d\r\n\r\n" % (len(SMUGGLED), 0),
    "both kinds": b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "both kinds, the other way": b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n",
    "a folded field": b"X: a\r\n Content-Length: 0\r\n\r\n",
    "a space before the colon": b"Content-Length : 0\r\n\r\n",
    "a tab before the colon": b"Transfer-Encoding\t: chunked\r\n\r\n",
    "a vertical tab": b"Transfer-Encoding: \x0bchunked\r\n\r\n",
    "a bare line feed": b"X: y\nContent-Length: 0\r\n\r\n",
    "bare line feeds": b"Content-Length: 0\n\n",
    "a bare carriage return": b"X: y\rContent-Length: 0\r\n\r\n",
    "a NUL in a value": b"X: \x00\r\nContent-Length: 0\r\n\r\n",
    "a NUL in a name": b"X\x00Y: 1\r\nContent-Length: 0\r\n\r\n",
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "a hexadecimal length": b"Content-Length: 0x0\r\n\r\n",
    "an empty length": b"Content-Length:\r\n\r\n",
    "a length beyond 64 bits": b"Content-Length: 18446744073709551616\r\n\r\n",
    "a chunk of negative size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "a chunk of huge size": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n",
    "a chunk size with a sign": b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "a chunk size with a prefix": b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "a chunk without an end": b"Transfer-Encoding: chunked\r\n\r\n2\r\nabX0\r\n\r\n",
    "chunks with bare line feeds": b"Transfer-Encoding: chunked\r\n\r\n0\n\n",
    "nonsense for chunks": b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n\r\n",
}


@pytest.mark.parametrize("what", SMUGGLING)
def test_nothing_behind_an_ambiguous_request_is_served(server: Server, what: str) -> None:
    """A proxy that reads the request in another way would take the answer for another client's."""
    request = b"POST " + TOKENIZE.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    answers = ask(server, request + SMUGGLING[what] + SMUGGLED + LIVEZ)
    assert len(statuses(answers)) == 1 and 400 <= statuses(answers)[0] < 600, answers
    assert lives(server)


@pytest.mark.parametrize(
    "request_line",
    [b"GET /livez", b"GET  /livez HTTP/1.1", b"GET /livez HTTP/2.0", b"GET /li vez HTTP/1.1", b"\x16\x03\x01\x02\x00"],
)
def test_what_is_no_request_is_refused(server: Server, request_line: bytes) -> None:
    assert statuses(ask(server, request_line + b"\r\nHost: localhost\r\n\r\n")) == [400]


def test_random_bytes_are_refused(server: Server) -> None:
    numbers = random.Random(1)
    for _ in range(200):
        answer = ask(server, numbers.randbytes(numbers.randrange(1, 2000)) + b"\r\n\r\n")
        assert answer == b"" or statuses(answer) == [400]
    assert lives(server)


def test_heads_are_limited(server: Server) -> None:
    assert statuses(ask(server, b"GET /livez HTTP/1.1\r\nX: " + b"x" * 20_000)) == [431]
    assert statuses(ask(server, b"GET /livez HTTP/1.1\r\n" + b"A: b\r\n" * 4000 + b"\r\n")) == [431]
    assert statuses(ask(server, b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n")) == [431]


def test_slow_heads_end_after_seconds(server: Server) -> None:
    with connect(server) as connection:
        begin = time.monotonic()
        connection.sendall(b"GET /livez HTTP/1.1\r\n")
        with contextlib.suppress(OSError):
            for _ in range(100):
                time.sleep(0.2)
                connection.sendall(b"X: y\r\n")
        assert time.monotonic() - begin < 15
    assert lives(server)


def test_a_body_that_is_too_large_is_refused_unread(server: Server) -> None:
    for length in (1 << 30, (1 << 63) - 1):
        assert statuses(ask(server, head(TOKENIZE, Content_Length=length, Content_Type="application/json"))) == [413]


def test_a_compressed_body_is_limited_by_its_content(repository: Path, tmp_path: Path) -> None:
    bomb = gzip.compress(b" " * (64 << 20))
    with Server(repository, tmp_path, environment=MEASURED) as server:
        server.forget_peak_memory()
        before = server.peak_memory()
        for _ in range(8):
            status, _, body = post(server, TOKENIZE, bomb, {"Content-Encoding": "gzip"})
            assert status == 413 and json.loads(body)["code"] == "resource_exhausted"
        assert server.peak_memory() - before < 64 << 20


@pytest.mark.not_sanitized("the sanitizers have an allocator of their own")
def test_millions_of_empty_messages_take_little_memory(repository: Path, tmp_path: Path) -> None:
    body = b'{"inputs":[{}' + b",{}" * ((8 << 20) // 3) + b"]}"
    wire = b"\x12\x00" * (4 << 20)
    with Server(repository, tmp_path, environment=MEASURED) as server:
        server.forget_peak_memory()
        before = server.peak_memory()
        for _ in range(4):
            status, _, answer = post(server, SCORE_TEXT, body)
            assert status == 400 and "more than 16384 messages" in json.loads(answer)["message"]
            status, _, answer = post(server, SCORE_TEXT, wire, {"Content-Type": "application/proto"})
            assert status == 400 and "more than 16384 messages" in json.loads(answer)["message"]
        assert server.peak_memory() - before < 100 << 20


@pytest.mark.not_sanitized("the sanitizers have an allocator of their own")
def test_many_large_bodies_at_once_take_bounded_memory(repository: Path, tmp_path: Path) -> None:
    """A document of JSON takes ten times the memory of its text, so few are read at once (http_call_test.cc: and those
    count in a budget)."""
    ids = b"[" + b"1," * 1_000_000 + b"1]"
    noise = b",".join(b"%d" % digit for digit in random.Random(3).choices(range(10), k=1_000_000))
    packed = gzip.compress(b'{"n":"wrong","prompt":[' + noise + b"]}")
    calls: list[tuple[str, bytes, dict[str, str]]] = [
        (TOKENIZE, b'{"input":{"ids":{"ids":' + ids + b"}}}", {}),
        ("/v1/completions", b'{"n":"wrong","prompt":' + ids + b"}", {}),
        ("/v1/completions", packed, {"Content-Encoding": "gzip"}),
    ]
    with Server(repository, tmp_path, environment=MEASURED) as server, ThreadPoolExecutor(24) as pool:
        server.forget_peak_memory()
        before = server.peak_memory()
        answers = list(pool.map(lambda one: post(server, *one), calls * 8))
        assert lives(server)
        for status, headers, body in answers:
            assert status == 400 or (status in (429, 503) and "retry-after" in headers), (status, body[:200])
        assert server.peak_memory() - before < 300 << 20, "24 at once would take 800 MB"


def test_deep_json_is_refused(server: Server) -> None:
    for deep in (b"[" * 100_000, b'{"model":' * 100_000, b'{"stop":[' + b"[" * 100_000):
        assert post(server, TOKENIZE, deep)[0] == 400
    assert lives(server)


def active_streams(server: Server) -> float:
    return server.metric("longshort_streams_active")


@pytest.mark.parametrize("kind", ["close", "reset"])
def test_a_client_that_leaves_cancels_its_stream(repository: Path, tmp_path: Path, kind: str) -> None:
    with Server(repository, tmp_path) as server:
        with begin_stream(server) as connection:
            wait_until(lambda: active_streams(server) == 1)
            if kind == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        wait_until(lambda: active_streams(server) == 0)
        wait_until(lambda: server.metric("longshort_requests_total", rpc="GenerateStream", code="CANCELLED") == 1)
        assert server.metric("longshort_cache_bytes", state="used") == 0


def test_a_deadline_ends_the_call_in_time(server: Server) -> None:
    begin = time.monotonic()
    request = {"prompt": {"text": "x"}, "maxTokens": 60000}
    status, _, body = post(server, "/longshort.v1.Inference/Generate", request, {"Connect-Timeout-Ms": "300"})
    assert (status, json.loads(body)["code"]) == (504, "deadline_exceeded")
    assert time.monotonic() - begin < 10
    with begin_stream(server, Connect_Timeout_Ms=300, Connection="close") as connection:
        rest = receive_all(connection)
    assert b'"deadline_exceeded"' in rest
    assert time.monotonic() - begin < 20


def test_drain_lets_streams_finish_and_serves_calls_within_its_delay(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--drain-timeout=10m", "--drain-delay=3s") as server:
        with begin_stream(server, {"prompt": {"text": "x"}, "maxTokens": 300}, Connection="close") as short:
            server.terminate()
            assert post(server, TOKENIZE, {"input": {"text": "x"}})[0] == 200, "within --drain-delay"
            wait_until(lambda: server.http("/readyz")[0] == 503)
            assert b'"finishReason":"FINISH_REASON_LENGTH"' in receive_all(short)
        assert server.wait() == 0


def test_a_stream_that_the_end_of_the_drain_cuts_off_has_an_error(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--drain-timeout=1s") as server, begin_stream(server) as waiting:
        server.terminate()
        assert b'"unavailable"' in receive_all(waiting)
        assert server.wait() == 0


def test_calls_after_the_drain_began_to_end_are_503(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, "--drain-timeout=8s", "--slow-reader-timeout=10m") as server:
        with begin_stream(server, LARGE):
            server.terminate()
            refused = []

            def is_refused() -> bool:
                refused.append(post(server, TOKENIZE, {"input": {"text": "x"}}))
                return refused[-1][0] == 503

            wait_until(is_refused)
            assert json.loads(refused[-1][2])["code"] == "unavailable" and "retry-after" in refused[-1][1]
        assert server.wait() == 0


def test_tls_garbage(repository: Path, tmp_path: Path, authority: Authority) -> None:
    options = files_of(tmp_path, authority.server())
    numbers = random.Random(2)
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        for garbage in (
            b"get /livez HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x40\x00" + numbers.randbytes(16384),
            b"\x00" * 99,
        ):
            answer = ask(server, garbage)
            assert b"HTTP" not in answer
        with connect(server) as silent:
            silent.sendall(b"\x16\x03\x01")
            assert receive_all(silent) == b"", "the handshake has a limit"
        assert lives(server)


def handshake(length: int, split: bool = False) -> bytes:
    """The beginning of a ClientHello of so many bytes, in one record or in records of a byte each."""
    hello = b"\x01" + length.to_bytes(3, "big") + b"\x03\x03" + bytes(8)
    if split:
        return b"".join(b"\x16\x03\x01\x00\x01" + hello[at : at + 1] for at in range(len(hello)))
    return b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello


@pytest.mark.parametrize("split", [False, True])
def test_a_long_client_hello_is_refused_by_its_first_bytes(
    repository: Path, tmp_path: Path, authority: Authority, split: bool
) -> None:
    options = files_of(tmp_path, authority.server())
    with Server(repository, tmp_path, *options, trusted=authority.pem) as server:
        for length, waits in ((16_384, True), (16_385, False), (131_000, False)):
            with connect(server) as connection:
                connection.sendall(handshake(length, split))
                connection.settimeout(1.5)
                if waits:
                    with pytest.raises(TimeoutError):
                        connection.recv(100)
                else:
                    with contextlib.suppress(ConnectionResetError):
                        assert connection.recv(100) == b""
        assert lives(server)


@pytest.mark.not_sanitized("they are slower")
def test_little_waits_in_the_system_behind_a_call(server: Server) -> None:
    """A large body would let its buffer grow to megabytes."""
    body = json.dumps({"input": {"text": "a" * 6_000_000}}).encode()
    with connect(server) as connection:
        for _ in range(40):
            connection.sendall(head(TOKENIZE, Content_Length=len(body), Content_Type="application/json") + body)
            while b"}" not in connection.recv(1 << 16):
                pass
        connection.sendall(head("/v1/completions", Content_Type="application/json", Content_Length=len(ENDLESS)))
        connection.sendall(ENDLESS)
        connection.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 32 << 20:
                sent += connection.send(bytes(1 << 16))
        (left,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
        assert sent - left < 512 << 10, "that the server's side has taken"


def test_empty_lines_before_a_request_cost_little(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"\r\n" * 4_000 + LIVEZ)
        assert receive_all(connection).startswith(b"HTTP/1.1 200 ")


def test_envelopes_are_checked(server: Server) -> None:
    for body, word in (
        (b"", "must be one message"),
        (b"\x00\x00\x00", "must be one message"),
        (envelope(LONG)[:-1], "must be one message"),
        (envelope(LONG) + b"x", "must be one message"),
        (envelope(LONG, flags=2), "flags 2"),
        (envelope(LONG, flags=1), "Connect-Content-Encoding is not set"),
        (b"\x00\xff\xff\xff\xff", "bytes, the limit"),
    ):
        status, _, answer = post(server, GENERATE_STREAM, body, {"Content-Type": "application/connect+json"})
        (end,) = envelopes(answer)
        assert status == 200 and end[0] == 2 and word in end[1]["error"]["message"], (body, answer)


def test_a_large_answer_that_is_not_read_ends(repository: Path, tmp_path: Path) -> None:
    request = {"inputs": [{"text": "x" * 21_000}], "tokenLogProbabilities": True, "topAlternatives": 5}
    body = json.dumps(request).encode()
    with Server(repository, tmp_path, "--slow-reader-timeout=500ms") as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        connection.connect(("127.0.0.1", server.http_port))
        connection.sendall(head(SCORE_TEXT, Content_Length=len(body), Content_Type="application/json") + body)
        cancelled = "longshort_slow_readers_cancelled_total"
        wait_until(lambda: server.metric(cancelled, rpc="ScoreText") == 1)
