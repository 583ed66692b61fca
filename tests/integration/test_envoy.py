"""What deploy/envoy promises, with the real Envoy in front of two real servers. No client here tries again by itself,
unless it says so."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import http2, tokens
from integration.certificates import Authority, write_at_once
from integration.envoy_process import BINARY, Backend, Envoy, write_certificate, write_configuration
from integration.server_process import Server, wait_until
from integration.test_retries import FULL, FullServer, calls_with_one_answer, retry_options
from integration.tls_calls import files_of

NO_RETRIES = ("grpc.enable_retries", 0)
# The callers in turn, by their tokens; None has none.
CALLERS = ("alice", "bob", None)


@pytest.fixture(scope="module")
def servers(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Two servers that no test stops."""
    with (
        Server(repository, tmp_path_factory.mktemp("first") / "server") as first,
        Server(repository, tmp_path_factory.mktemp("second") / "server") as second,
    ):
        yield first, second


@pytest.fixture(scope="module")
def proxy(servers: tuple[Server, Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    """In front of the two."""
    with started(tmp_path_factory.mktemp("envoy"), servers) as running:
        yield running


@contextmanager
def started(
    folder: Path,
    servers: tuple[Backend, Backend],
    servers_ca: Path | None = None,
    health_token: str | None = None,
    changes: dict[str, str] | None = None,
) -> Iterator[Envoy]:
    """An Envoy that has found both servers healthy."""
    ports = [port for server in servers for port in (server.grpc_port, server.http_port)]
    with Envoy(folder, servers, servers_ca, health_token, changes) as running:
        wait_until(lambda: all(running.health(port) == {True} for port in ports))
        yield running


def answered(server: Server) -> float:
    return server.metric("longshort_requests_total", rpc="Generate")


class Callers:
    """Clients that call all the time, while the context lasts."""

    def __init__(self, api: SimpleNamespace, proxy: Envoy, clients: int = 4) -> None:
        self.answers = 0
        self.failures: list[str] = []
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(clients)
        question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=2)

        def call_until_over() -> None:
            with proxy.new_channel(NO_RETRIES) as channel:
                stub = api.inference_grpc.InferenceStub(channel)
                while not self._over.is_set():
                    try:
                        stub.Generate(question, timeout=30)
                        self.answers += 1
                    except grpc.RpcError as error:
                        self.failures.append(f"{error.code()}: {error.details()}")

        for _ in range(clients):
            self._pool.submit(call_until_over)

    def go_on(self, calls: int) -> None:
        """Returns after so many more answers."""
        before = self.answers
        wait_until(lambda: self.answers >= before + calls)

    def __enter__(self) -> Callers:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pool.shutdown()


def test_the_configuration_is_valid_as_it_stands(tmp_path: Path) -> None:
    write_certificate(tmp_path / "tls", Authority("proxy").server())
    check = [BINARY, "--mode", "validate", "-c", write_configuration(tmp_path, {})]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr.lower()


def test_calls_of_all_kinds_go_through_to_each_server_in_turn(
    api: SimpleNamespace, servers: tuple[Server, Server], proxy: Envoy
) -> None:
    before = [answered(server) for server in servers]
    with proxy.new_channel(NO_RETRIES) as channel:
        stub = api.inference_grpc.InferenceStub(channel)
        question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=3)
        answers = [stub.Generate(question, timeout=30) for _ in range(10)]
        assert all(answer.usage.generated_tokens == 3 for answer in answers)
        assert [answered(server) - count for server, count in zip(servers, before, strict=True)] == [5, 5]
        *_, last = stub.GenerateStream(api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=2000), timeout=60)
        assert last.summary.usage.generated_tokens == 2000
        texts = [api.inference.ScoreTextsRequest(id=n, input={"text": "xy" * n}) for n in range(1, 100)]
        assert {answer.id for answer in stub.ScoreTexts(iter(texts), timeout=60)} == set(range(1, 100))


def test_the_clients_deadline_is_the_servers(api: SimpleNamespace, proxy: Envoy) -> None:
    with proxy.new_channel(NO_RETRIES) as channel:
        stub = api.inference_grpc.InferenceStub(channel)
        call = stub.Generate.future(api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=60000), timeout=0.5)
        assert call.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_sessions_stay_with_their_server(api: SimpleNamespace, servers: tuple[Server, Server], proxy: Envoy) -> None:
    with proxy.new_channel(NO_RETRIES) as channel:
        stub = api.inference_grpc.InferenceStub(channel)

        def say(session: str, expected: int) -> int:
            """Goes on with a session that holds so many tokens. Returns how many it holds then."""
            wanted = {"id": session, "expected_tokens": expected}
            question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=2, session=wanted)
            return stub.Generate(question, timeout=30, metadata=[("x-session-id", session)]).session_tokens

        for session in (f"talk-{n}" for n in range(16)):
            tokens = 0
            for _ in range(4):
                tokens = say(session, tokens)
            assert tokens >= 8
    held = [server.metric("longshort_sessions") for server in servers]
    assert sum(held) == 16
    assert all(held), "both have some"


def test_clients_that_share_connections_to_the_servers_are_distinguished_by_their_tokens(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    lines = [tokens.line(name, name) for name in ("alice", "bob")]
    file = tokens.write(tmp_path / "tokens", *lines, tokens.line("envoy", "looks", "scopes=observe"))
    options = (f"--token-file={file}", "--protect-health")
    question = api.inference.TokenizeRequest(input={"text": "x"})

    def ask(i: int) -> str:
        metadata = [("x-request-id", f"apart-{i}"), *(tokens.bearer(CALLERS[i % 3]) if CALLERS[i % 3] else [])]
        call = api.inference_grpc.InferenceStub(channels[i % 2]).Tokenize.future(question, metadata=metadata)
        return call.code().name

    with (
        Server(repository, tmp_path / "first", *options) as first,
        Server(repository, tmp_path / "second", *options) as second,
        started(tmp_path / "envoy", (first, second), health_token="looks") as proxy,
        proxy.new_channel(NO_RETRIES) as one,
        proxy.new_channel(NO_RETRIES) as another,
        ThreadPoolExecutor(8) as clients,
    ):
        channels = (one, another)
        answers = list(clients.map(ask, range(150)))
        assert answers == ["OK", "OK", "UNAUTHENTICATED"] * 50
        # The lines of callers without a valid token are limited.
        wait_until(lambda: len(re.findall(r" id=apart-.* identity=", first.log() + second.log())) == 100)
        for i, line in re.findall(r" id=apart-(\d+) (.*)", first.log() + second.log()):
            found = re.search(r" identity=(\S+)", line)
            assert (found and found[1]) == CALLERS[int(i) % 3]


def test_refused_calls_are_tried_with_the_other_server(
    api: SimpleNamespace, repository: Path, tmp_path: Path, servers: tuple[Server, Server]
) -> None:
    full = FullServer(api, repository, tmp_path / "full")
    with full.server, started(tmp_path / "envoy", (full.server, servers[1])) as proxy:
        full.fill(tokens=65536)
        with Callers(api, proxy) as callers:
            wait_until(lambda: full.refusals() > 10)
        assert not callers.failures


def test_a_client_comes_back_when_all_servers_were_full(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    full = [FullServer(api, repository, tmp_path / name) for name in ("first", "second")]
    with full[0].server as first, full[1].server as second, started(tmp_path / "envoy", (first, second)) as proxy:
        for one in full:
            one.fill()
        question = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=5)
        with proxy.new_channel(NO_RETRIES) as channel:
            refused = api.inference_grpc.InferenceStub(channel).Generate.future(question, timeout=30)
            assert refused.code() == FULL
            assert int(dict(refused.trailing_metadata())["grpc-retry-pushback-ms"]) > 0
        with ThreadPoolExecutor() as clients, proxy.new_channel(*retry_options()) as channel:
            before = sum(one.refusals() for one in full)
            calls = [clients.submit(call) for call in calls_with_one_answer(api, channel)]
            wait_until(lambda: sum(one.refusals() for one in full) >= before + len(calls))
            for one in full:
                one.make_room()
            assert all(call.result() for call in calls)


@pytest.mark.not_sanitized("a minute and more of tokens; test_stopping and the next test stop servers, too")
def test_a_server_that_stops_finishes_its_work_and_no_call_fails(
    api: SimpleNamespace, repository: Path, tmp_path: Path, servers: tuple[Server, Server]
) -> None:
    with (
        Server(repository, tmp_path / "server", "--drain-timeout=600s") as stopping,
        started(tmp_path / "envoy", (stopping, servers[1])) as proxy,
        proxy.new_channel(NO_RETRIES) as channel,
    ):
        stub = api.inference_grpc.InferenceStub(channel)
        long = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=60000)
        while not stopping.metric("longshort_streams_active"):
            stream = stub.GenerateStream(long)
            next(stream)
            wait_until(lambda: sum(server.metric("longshort_streams_active") for server in (stopping, servers[1])) > 0)
            if not stopping.metric("longshort_streams_active"):
                stream.cancel()
        with Callers(api, proxy) as callers:
            callers.go_on(50)
            stopping.terminate()
            wait_until(lambda: proxy.health(stopping.grpc_port) == {False})
            callers.go_on(20)  # what was on its way has come
            came = answered(stopping)
            callers.go_on(50)
            assert stopping.process.poll() is None, "it has its stream yet"
            assert answered(stopping) == came, "it is given nothing more"
            *_, last = stream
            assert last.summary.usage.generated_tokens == 60000
            assert stopping.wait() == 0
            callers.go_on(50)
        assert not callers.failures


def test_servers_that_restart_one_after_the_other_fail_no_call(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    running = [Server(repository, tmp_path / name) for name in ("first", "second")]
    with started(tmp_path / "envoy", (running[0], running[1])) as proxy, Callers(api, proxy) as callers:
        for turn in range(2):
            old = running[turn % 2]
            callers.go_on(20)
            old.terminate()
            assert old.wait() == 0
            old.channel.close()
            running[turn % 2] = new = Server(repository, tmp_path / f"again-{turn}", grpc_port=old.grpc_port)
            looked = proxy.count("cluster.longshort.health_check.success")
            # Both were looked at since: what was found of the old one is forgotten.
            wait_until(lambda looked=looked: proxy.count("cluster.longshort.health_check.success") >= looked + 3)
            wait_until(lambda new=new: proxy.health(new.grpc_port) == {True} and answered(new) > 0)
    assert not callers.failures
    for server in running:
        server.__exit__()


class Web:
    """Calls by HTTP/1.1, each on a connection of its own."""

    def __init__(self, proxy: Envoy) -> None:
        self._port = proxy.port
        self._tls = ssl.create_default_context(cadata=proxy.authority.pem.decode())

    def ask(self, method: str, path: str, body: object = None, **fields: str) -> tuple[int, bytes]:
        """Status and body of the answer."""
        connection = http.client.HTTPSConnection("localhost", self._port, timeout=60, context=self._tls)
        with contextlib.closing(connection):
            headers = {"content-type": "application/json"} | {name.replace("_", "-"): fields[name] for name in fields}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


def tokenized(server: Server) -> float:
    return server.metric("longshort_requests_total", rpc="Tokenize")


def test_http_goes_through_to_each_server_in_turn(servers: tuple[Server, Server], proxy: Envoy) -> None:
    web = Web(proxy)
    before = [tokenized(server) for server in servers]
    for _ in range(10):
        assert web.ask("POST", "/longshort.v1.Inference/Tokenize", {"input": {"text": "ab"}})[0] == 200
    assert [tokenized(server) - count for server, count in zip(servers, before, strict=True)] == [5, 5]
    completion = {"model": "tiny", "prompt": "x", "max_tokens": 50, "stream": True}
    status, events = web.ask("POST", "/v1/completions", completion)
    assert status == 200 and events.endswith(b"data: [DONE]\n\n")
    status, error = web.ask(
        "POST",
        "/longshort.v1.Inference/Generate",
        {"prompt": {"text": "x"}, "maxTokens": 60000},
        connect_timeout_ms="300",
    )
    assert status == 504 and b"deadline_exceeded" in error
    assert web.ask("GET", "/", accept="text/html")[1].startswith(b"<!doctype html>")
    assert web.ask("GET", "/metrics")[0] == 404, "which server's would they be?"


def test_sessions_by_http_stay_with_their_server(servers: tuple[Server, Server], proxy: Envoy) -> None:
    web = Web(proxy)
    before = [answered(server) for server in servers]
    for number in range(8):
        name, tokens = f"by-http-{number}", 0
        for _ in range(3):
            session = {"id": name, "expectedTokens": str(tokens), "mustExist": tokens > 0}
            call = {"prompt": {"text": "x"}, "maxTokens": 2, "session": session}
            status, answer = web.ask("POST", "/longshort.v1.Inference/Generate", call, x_session_id=name)
            assert status == 200, answer
            tokens = int(json.loads(answer)["sessionTokens"])
        assert tokens == 9
    assert all(answered(server) > count for server, count in zip(servers, before, strict=True)), "both have some"


def test_no_call_by_http_fails_while_a_server_stops(repository: Path, tmp_path: Path) -> None:
    with (
        Server(repository, tmp_path / "first") as staying,
        Server(repository, tmp_path / "second", "--drain-delay=4s") as stopping,
        started(tmp_path / "envoy", (staying, stopping)) as proxy,
        ThreadPoolExecutor(4) as pool,
    ):
        web, over = Web(proxy), threading.Event()

        def call_until_over() -> list[tuple[int, bytes]]:
            answers = []
            while not over.is_set():
                answers.append(web.ask("POST", "/longshort.v1.Inference/Tokenize", {"input": {"text": "ab"}}))
            return answers

        callers = [pool.submit(call_until_over) for _ in range(4)]
        wait_until(lambda: tokenized(stopping) > 20)
        stopping.terminate()
        assert stopping.wait() == 0
        before = tokenized(staying)
        wait_until(lambda: tokenized(staying) > before + 20)
        over.set()
        assert {status for caller in callers for status, _ in caller.result()} == {200}


@contextmanager
def connection_by_hand(proxy: Envoy) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cadata=proxy.authority.pem.decode())
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", proxy.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.settimeout(30)
        yield connection


def reset_calls(proxy: Envoy, calls: int) -> bool:
    """Begins so many calls and resets each at once, on one connection. Returns whether that was cut off."""
    headers = http2.call_headers("/longshort.v1.Inference/Generate")
    cancel = struct.pack(">I", 8)
    storm = b"".join(
        http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers) + http2.frame(http2.RESET, 0, stream, cancel)
        for stream in range(1, 2 * calls, 2)
    )
    with connection_by_hand(proxy) as connection:
        try:
            connection.sendall(http2.BEGINNING + storm)
            while connection.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
    return True


def test_a_reset_storm_leaves_others_alone(api: SimpleNamespace, servers: tuple[Server, Server], proxy: Envoy) -> None:
    def begun() -> float:
        return sum(server.metric("longshort_requests_total", code="CANCELLED") for server in servers)

    with Callers(api, proxy) as callers, ThreadPoolExecutor(4) as attackers:
        callers.go_on(50)
        before = begun()
        memory = [server.peak_memory() for server in servers]
        storms = [attackers.submit(reset_calls, proxy, 20000) for _ in range(20)]
        assert all(storm.result() for storm in storms)
        callers.go_on(50)
    assert not callers.failures
    assert proxy.count("http.longshort.downstream_rq_too_many_premature_resets") == len(storms)
    assert begun() - before < 20 * 1000, "of 400,000"
    grown = max(server.peak_memory() - was for server, was in zip(servers, memory, strict=True))
    assert grown < 100 << 20


def send_binary_that_is_no_base64(proxy: Envoy) -> None:
    headers = http2.call_headers("/longshort.v1.Inference/Tokenize") + http2.header("x-odd-bin", "!!!")
    with connection_by_hand(proxy) as stranger:
        begun = http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, headers)
        stranger.sendall(http2.BEGINNING + begun)
        assert any(kind in (http2.HEADERS, http2.RESET) for kind, _, _ in http2.frames(stranger)), "the call has ended"


def send_long_metadata(fields: int, proxy: Envoy) -> None:
    """One call of each of some sizes of metadata below Envoy's limit; gRPC 1.51 ends the connection because of some."""
    with proxy.new_channel(NO_RETRIES) as stranger:
        call = stranger.unary_unary("/longshort.v1.Inference/Tokenize")
        for size in range(15000, 16100, 100):
            metadata = [(f"x-{number:02}", "~" * (size // fields - 4)) for number in range(fields)]
            call.future(b"", metadata=metadata, timeout=30).exception()


@pytest.mark.parametrize(
    "offend",
    [send_binary_that_is_no_base64, *(partial(send_long_metadata, fields) for fields in (1, 10, 40))],
    ids=["binary", "one long field", "ten fields", "many fields"],
)
def test_a_call_that_ends_its_connection_ends_no_other_clients_streams(
    api: SimpleNamespace, servers: tuple[Server, Server], proxy: Envoy, offend: Callable[[Envoy], None]
) -> None:
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=60000)

    def running() -> float:
        return sum(server.metric("longshort_streams_active") for server in servers)

    with proxy.new_channel(NO_RETRIES) as channel:
        stub = api.inference_grpc.InferenceStub(channel)
        streams = [stub.GenerateStream(request) for _ in range(4)]  # two at each server
        for stream in streams:
            next(stream)
        for _ in range(2):  # at both servers
            offend(proxy)
        for stream in streams:
            for _ in range(50):
                next(stream)
        for stream in streams:
            stream.cancel()
    wait_until(lambda: running() == 0)


@pytest.mark.parametrize(
    ("what", "headers"),
    [("too many", [(f"x-{n}", "v") for n in range(80)]), ("too long", [("x-long", "v" * 20000)])],
)
def test_headers_are_bounded(api: SimpleNamespace, proxy: Envoy, what: str, headers: Any) -> None:
    with proxy.new_channel(NO_RETRIES) as channel:
        stub = api.inference_grpc.InferenceStub(channel)
        question = api.inference.TokenizeRequest(input={"text": "x"})
        call = stub.Tokenize.future(question, metadata=headers, timeout=30)
        assert call.code() != grpc.StatusCode.OK, what
        stub.Tokenize(question, timeout=30)


def test_a_new_certificate_is_taken_without_a_restart(servers: tuple[Server, Server], tmp_path: Path) -> None:
    with started(tmp_path / "envoy", servers) as proxy:
        new = proxy.authority.server()

        def shown() -> bytes:
            return ssl.get_server_certificate(("127.0.0.1", proxy.port)).encode()

        assert shown() != new.certificate_pem
        write_certificate(tmp_path / "envoy/tls", new)
        wait_until(lambda: shown() == new.certificate_pem)


def test_servers_may_speak_tls(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    authority = Authority("servers")
    ca = write_at_once(tmp_path / "ca.pem", authority.pem)
    options = files_of(tmp_path, authority.server())
    with (
        Server(repository, tmp_path / "first", *options) as first,
        Server(repository, tmp_path / "second", *options) as second,
        started(tmp_path / "envoy", (first, second), ca) as proxy,
        Callers(api, proxy) as callers,
    ):
        callers.go_on(10)
    assert not callers.failures
