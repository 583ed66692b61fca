"""Connections to the gRPC port: more than the process has descriptors for, and those of clients of HTTP."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from integration import http2
from integration.certificates import Authority
from integration.server_process import BINARY, Server, wait_until
from integration.tls_calls import files_of, trusting_context

MANY = 150


@contextmanager
def limited_server(repository: Path, folder: Path, ulimit: str, *arguments: str) -> Iterator[Server]:
    """A server that was started with this limit of descriptors."""
    program = folder / "limited-server"
    program.write_text(f'#!/bin/bash\nulimit {ulimit}\nexec "{BINARY}" "$@"\n')
    program.chmod(0o755)
    with Server(repository, folder, *arguments, program=program) as server:
        yield server


def connect(stack: ExitStack, port: int) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))


def is_closed_at_once(connection: socket.socket) -> bool:
    """If not, the server begins with its settings."""
    return connection.recv(1) == b""


def serves(server: Server) -> bool:
    """Whether a client that comes now is served."""
    assert server.process.poll() is None, server.log()
    with server.new_channel() as channel:
        try:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
        except grpc.RpcError:
            return False
    return True


def refused(server: Server) -> float:
    return server.metric("longshort_connections_refused_total")


@pytest.mark.parametrize(("tls", "kib"), [(False, 16), (True, 72)], ids=["plain", "tls"])
@pytest.mark.not_sanitized("the sanitizers have an allocator of their own")
def test_an_idle_connection_takes_little_memory(repository: Path, tmp_path: Path, tls: bool, kib: int) -> None:
    authority = Authority("servers")
    options = files_of(tmp_path, authority.server("127.0.0.1")) if tls else []
    context = trusting_context() if tls else None
    ping, answer = (http2.frame(http2.PING, flags, 0, bytes(8)) for flags in (0, http2.ACKNOWLEDGED))

    def memory(server: Server) -> int:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) << 10

    def open_one(stack: ExitStack, server: Server) -> None:
        connection = connect(stack, server.grpc_port)
        if context is not None:
            connection = stack.enter_context(context.wrap_socket(connection))
        connection.sendall(http2.BEGINNING + ping)
        received = b""
        while answer not in received:
            received += connection.recv(4096)

    with (
        Server(repository, tmp_path / "server", *options, trusted=authority.pem if tls else None) as server,
        ExitStack() as stack,
    ):
        for _ in range(MANY):
            open_one(stack, server)  # the first ones also fill what all share
        before = memory(server)
        for _ in range(2 * MANY):
            open_one(stack, server)
        wait_until(lambda: memory(server) - before < 2 * MANY * kib << 10, seconds=10)  # what handshakes took is freed


def test_connections_beyond_the_descriptors_are_refused_until_others_are_closed(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    with limited_server(repository, tmp_path, "-n 80") as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        request = api.inference.TokenizeRequest(input={"text": "x"})
        stub.Tokenize(request, timeout=20)
        with ExitStack() as stack:
            for _ in range(MANY):
                connect(stack, server.grpc_port)
            wait_until(lambda: refused(server) >= MANY - 80)
            # What asked for the metric may have left room for a few more.
            wait_until(lambda: is_closed_at_once(connect(stack, server.grpc_port)))
            stub.Tokenize(request, timeout=20)
            assert server.http("/readyz")[0] == 200, "the last descriptors are for others"
        wait_until(lambda: serves(server))
        assert server.log().count("connections refused") >= 1
        assert " accept" not in server.log()


@pytest.mark.not_sanitized("the sanitizers read memory through a pipe")
def test_even_without_a_descriptor_left_the_listener_lives(repository: Path, tmp_path: Path) -> None:
    with limited_server(repository, tmp_path, "-n 80") as server:
        with ExitStack() as stack:
            for port in (server.http_port, server.grpc_port):
                for _ in range(MANY):
                    connect(stack, port)
        wait_until(lambda: serves(server))


def test_the_server_takes_the_descriptors_that_it_may_have(repository: Path, tmp_path: Path) -> None:
    with limited_server(repository, tmp_path, "-S -n 80") as server, ExitStack() as stack:
        for _ in range(MANY):
            connect(stack, server.grpc_port)
        assert serves(server)
        assert refused(server) == 0


def test_a_client_of_http_learns_where_http_is(server: Server) -> None:
    for method in ("GET", "POST"):
        connection = http.client.HTTPConnection("127.0.0.1", server.grpc_port, timeout=20)
        connection.request(method, "/v1/completions", body=b"{}")
        answer = connection.getresponse()
        assert answer.status == 400
        assert answer.read().decode() == f"This is the gRPC port. HTTP is at port {server.http_port}.\n"
        connection.close()
    assert serves(server)
