"""How many connections and calls clients of HTTP may have, and what they cost."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import socket
import struct
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from integration import session_calls, tokens
from integration.connect_calls import LARGE, TOKENIZE, begin_stream, connect, head, lives, post
from integration.server_process import MEASURED, Server, wait_until
from integration.test_connections import limited_server


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    """This process may open as many files as the system lets it."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_ten_thousand_connections(repository: Path, tmp_path: Path) -> None:
    """Of those that send nothing, or half a head, the oldest are closed."""
    with many_files(), Server(repository, tmp_path, environment=MEASURED) as server, ExitStack() as stack:
        room = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if room < 12_000:
            pytest.skip(f"this process may open {room} files only")
        server.forget_peak_memory()
        before = server.peak_memory()
        for number in range(10_000):
            connection = stack.enter_context(connect(server))
            if number % 2:
                connection.sendall(head(TOKENIZE, Content_Length=10) + b"{")
            if number % 1000 == 0:
                assert lives(server)
        assert lives(server)
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 4300
        assert server.peak_memory() - before < 300 << 20


def test_the_number_of_connections_respects_the_limit_of_files(repository: Path, tmp_path: Path) -> None:
    with limited_server(repository, tmp_path, "-n 100") as server, ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(connect(server))
        assert lives(server)
        assert post(server, TOKENIZE, {"input": {"text": "x"}})[0] == 200
        with server.new_channel() as channel:
            grpc.channel_ready_future(channel).result(timeout=20)


def unread_bytes(connection: socket.socket) -> int:
    return struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]


def test_pipelined_requests_whose_answers_are_not_read(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path, environment=MEASURED) as server, ExitStack() as stack:
        server.http("/metrics")
        server.forget_peak_memory()
        before = server.peak_memory()
        request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
        connections = [stack.enter_context(connect(server)) for _ in range(20)]
        for connection in connections:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(200):
                    connection.send(request)

        def received() -> list[int]:
            return [unread_bytes(connection) for connection in connections]

        def nothing_more_comes() -> bool:
            before = received()
            return lives(server) and min(before) > 0 and received() == before

        wait_until(nothing_more_comes)
        assert server.peak_memory() - before < 64 << 20


def test_calls_in_progress_leave_room_for_probes(repository: Path, tmp_path: Path) -> None:
    """Of 50 connections 44 may have calls."""
    options = ("--slow-reader-timeout=10m", "--max-queue-time=1h")
    with limited_server(repository, tmp_path, "-n 100", *options) as server, ExitStack() as stack:
        for client, calls in (("127.0.0.2", 22), ("127.0.0.3", 11), ("127.0.0.4", 6), ("127.0.0.5", 3)):
            for _ in range(calls):
                stack.enter_context(begin_stream(server, LARGE, client))
        for client in ("127.0.0.6", "127.0.0.7"):
            stack.enter_context(begin_stream(server, LARGE, client))
        for path in (TOKENIZE, "/v1/completions", "/v2/models/tiny/infer"):
            status, headers, body = post(server, path, {"input": {"text": "x"}})
            assert status == 503 and b"44 calls by HTTP" in body, body
            assert headers["retry-after"] == "1"
        assert server.metric("longshort_http_connections_open") == 45
        assert lives(server) and server.http("/v2/health/live")[0] == 200
        stack.close()
        wait_until(lambda: post(server, TOKENIZE, {"input": {"text": "x"}})[0] == 200)


IMPORT = head(
    "/longshort.v1.Sessions/ImportSession", Content_Type="application/connect+json", Transfer_Encoding="chunked"
)


def holding_calls(server: Server, source: str, stack: ExitStack, authorization: str | None = None) -> int:
    """Begins 30 calls whose bodies never come. Returns how many of them are refused: 8, or more."""
    more = b"" if authorization is None else b"Authorization: %b\r\n\r\n" % authorization.encode()
    connections = [stack.enter_context(connect(server, source)) for _ in range(30)]
    for connection in connections:
        connection.sendall(IMPORT if authorization is None else IMPORT[:-2] + more)
    wait_until(lambda: server.metric("longshort_http_connections_open") >= 30)

    def refused() -> list[socket.socket]:
        return select.select(connections, [], [], 0)[0]

    wait_until(lambda: len(refused()) >= 8)
    assert lives(server) and lives(server), "it has taken all that it was sent before"
    for connection in refused():
        received = connection.recv(1 << 16, socket.MSG_PEEK)
        assert b"calls by HTTP in progress, as many as" in received, received
    return len(refused())


def test_one_client_leaves_room_for_the_calls_of_others(repository: Path, tmp_path: Path) -> None:
    """Of 44 calls by HTTP that there may be, a client alone may have 22."""
    key = session_calls.write_key(tmp_path, "key")
    options = ("--slow-reader-timeout=10m", f"--session-key-file={key}")
    with limited_server(repository, tmp_path, "-n 100", *options) as server, ExitStack() as stack:
        assert holding_calls(server, "127.0.0.2", stack) == 8
        assert post(server, TOKENIZE, {"input": {"text": "x"}})[0] == 200
        with connect(server, "127.0.0.2") as connection:
            body = b'{"input":{"text":"x"}}'
            connection.sendall(head(TOKENIZE, Content_Length=len(body), Content_Type="application/json") + body)
            answer = connection.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 429 ") and b"client ipv4:127.0.0.2 has 22 calls" in answer, answer
        assert b"Retry-After: 1\r\n" in answer


def test_a_token_is_the_client_that_leaves_room(repository: Path, tmp_path: Path) -> None:
    """Two tokens at one address: behind a proxy."""
    lines = tokens.line("one", "a-secret"), tokens.line("two", "b-secret")
    key = session_calls.write_key(tmp_path, "key")
    options = ("--slow-reader-timeout=10m", f"--token-file={tokens.write(tmp_path / 'tokens', *lines)}")
    with (
        limited_server(repository, tmp_path, "-n 100", f"--session-key-file={key}", *options) as server,
        ExitStack() as stack,
    ):
        server.metric = lambda *_, **__: 30  # type: ignore[method-assign]  # which needs a token
        assert holding_calls(server, "127.0.0.1", stack, "Bearer a-secret") == 8
        body = {"input": {"text": "x"}}
        assert post(server, TOKENIZE, body, {"Authorization": "Bearer b-secret"})[0] == 200
        assert post(server, TOKENIZE, body, {"Authorization": "Bearer a-secret"})[0] == 429
