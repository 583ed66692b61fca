"""Connections that take without giving: each is closed, and others are served all along. And some that only do much."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from integration import classifier_directory, expect, http2, model_directory
from integration.certificates import Authority
from integration.running_stream import RunningStream
from integration.server_process import MEASURED, Server, wait_until
from integration.tls_calls import files_of, trusting_context

TOKENIZE = "/longshort.v1.Inference/Tokenize"
SCORE_TEXTS = "/longshort.v1.Inference/ScoreTexts"
CANCEL = struct.pack(">I", 8)
MIB = 1 << 20


@pytest.fixture(scope="module")
def attacked(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that none of the tests below may end."""
    folder = tmp_path_factory.mktemp("attacked")
    with Server(repository, folder, "--max-message-bytes=67108864", environment=MEASURED) as running:
        yield running
        assert running.process.poll() is None, running.log()


class HostileClient:
    """A connection that sends what `frames` yields, whatever the server says, until it is closed. With TLS it reads
    nothing."""

    def __init__(
        self, port: int, frames: Iterator[bytes], tls: ssl.SSLContext | None = None, reads: bool = True
    ) -> None:
        self.sent = 0
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._threads = [threading.Thread(target=self._send, args=(frames,), daemon=True)]
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket)  # only one thread may use it
        elif reads:
            self._threads.append(threading.Thread(target=self._receive, daemon=True))
        for thread in self._threads:
            thread.start()

    def _send(self, frames: Iterator[bytes]) -> None:
        with contextlib.suppress(OSError):
            for some in itertools.chain([http2.BEGINNING], frames):
                self._socket.sendall(some)
                self.sent += len(some)

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            while self._socket.recv(MIB):
                pass

    def is_closed(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._socket.close()


def calls(each: Callable[[int, bytes], bytes]) -> Iterator[bytes]:
    """Ever more calls, a thousand at once; `each` makes the frames of one from its number and its headers."""
    headers = http2.call_headers(TOKENIZE)
    for first in itertools.count(1, 2000):
        yield b"".join(each(stream, headers) for stream in range(first, first + 2000, 2))


def calls_without_heeding_settings() -> Iterator[bytes]:
    return calls(lambda stream, headers: http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers))


def calls_that_are_reset() -> Iterator[bytes]:
    return calls(
        lambda stream, headers: (
            http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers) + http2.frame(http2.RESET, 0, stream, CANCEL)
        )
    )


def headers_without_end() -> Iterator[bytes]:
    yield http2.frame(http2.HEADERS, 0, 1, http2.call_headers(TOKENIZE))
    for first in itertools.count(0, 100):
        fields = b"".join(http2.header(f"a{number}", "v" * 100) for number in range(first, first + 100))
        yield http2.frame(http2.CONTINUATION, 0, 1, fields) * 8


def header_without_end(begun: bytes, more: bytes) -> Iterator[bytes]:
    yield http2.frame(http2.HEADERS, 0, 1, http2.call_headers(TOKENIZE) + begun)
    piece = http2.frame(http2.CONTINUATION, 0, 1, more)
    yield from itertools.repeat(piece * max(1, 100_000 // len(piece)))


def frames_without_content(kind: int, flags: int) -> Iterator[bytes]:
    yield http2.frame(http2.HEADERS, flags, 1, http2.call_headers(TOKENIZE))
    yield from itertools.repeat(http2.frame(kind, 0, 1, b"") * 100_000)


def answered_frames(kind: int, payload: bytes) -> Iterator[bytes]:
    """Frames that the server answers, each with one of its own."""
    return itertools.repeat(http2.frame(kind, 0, 0, payload) * 4000)


def pings_behind_answers() -> Iterator[bytes]:
    """Fills the connection with answers to calls first, so that gRPC's next write waits for the client."""
    headers = http2.call_headers("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    service = b"longshort.v1.Inference"
    question = struct.pack(">BIBB", 0, 2 + len(service), 0x22, len(service)) + service  # file_containing_symbol
    asks = range(1, 1801, 2)
    yield http2.frame(http2.SETTINGS, 0, 0, struct.pack(">HI", 4, 0x7FFFFFFF))  # the windows of calls
    yield http2.frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7FF00000))
    for ask in asks:
        yield http2.frame(http2.HEADERS, http2.END_HEADERS, ask, headers)
        yield http2.frame(http2.DATA, 0, ask, question * 30)
    yield from answered_frames(http2.PING, bytes(8))


def short_calls(method: str, each: Callable[[int], bytes] = lambda _: b"") -> Iterator[bytes]:
    """Calls that take few bytes; `each` makes what follows the headers of one."""
    first, later = http2.indexed_call_headers(method)
    yield http2.frame(http2.HEADERS, http2.END_HEADERS, 1, first)
    for number in itertools.count(3, 2000):
        streams = range(number, number + 2000, 2)
        yield b"".join(
            http2.frame(http2.HEADERS, http2.END_HEADERS, stream, later) + each(stream) for stream in streams
        )


def after_a_pause(seconds: float, frames: Iterator[bytes]) -> Iterator[bytes]:
    yield b""  # the beginning is sent
    time.sleep(seconds)
    yield from frames


def refused_calls() -> Iterator[bytes]:
    """Calls beyond the server's limit, by a client that has acknowledged it."""
    yield http2.frame(http2.SETTINGS, http2.ACKNOWLEDGED, 0, b"")
    yield from short_calls(SCORE_TEXTS)


# A string of 1 GiB, of which ever more comes; a number of which each byte says that it goes on.
STRING, NUMBER = b"\x00\x01a\x7f\xff\xff\xff\xff\x03", b"\x7f"

# What each is closed for. On a busy machine little of the first ones may be read, and then they are stalled, too.
ATTACKS = {
    "calls without heeding settings": ("calls|stalled", calls_without_heeding_settings),
    "calls that are reset": ("calls|stalled", calls_that_are_reset),
    "headers without end": ("bytes|stalled", headers_without_end),
    "data frames without content": ("bytes|stalled", lambda: frames_without_content(http2.DATA, http2.END_HEADERS)),
    "continuations without content": ("bytes|stalled", lambda: frames_without_content(http2.CONTINUATION, 0)),
    "a string without end": ("bytes|stalled", lambda: header_without_end(STRING, b"x" * 16384)),
    "a string without end, byte by byte": ("bytes|stalled", lambda: header_without_end(STRING, b"x")),
    "a number without end": ("bytes|stalled", lambda: header_without_end(NUMBER, b"\x80" * 16384)),
}


def closed(server: Server, *reasons: str) -> float:
    return sum(server.metric("longshort_connections_closed_total", reason=reason) for reason in reasons)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_connection_that_takes_without_giving_is_closed(attacked: Server, attack: str) -> None:
    reasons, frames = ATTACKS[attack]
    before = closed(attacked, *reasons.split("|"))
    attacked.forget_peak_memory()
    memory = attacked.peak_memory()
    client = HostileClient(attacked.grpc_port, frames())
    try:
        wait_until(client.is_closed, seconds=20)
    finally:
        client.close()
    wait_until(lambda: closed(attacked, *reasons.split("|")) == before + 1)
    assert client.sent < 600 * MIB
    assert attacked.peak_memory() - memory < 768 * MIB
    with attacked.new_channel() as channel:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
    wait_until(lambda: re.search(f"connections closed: .* why=({reasons}) ", attacked.log()))


# By a client that reads nothing, and what each is closed for; nothing if gRPC closes it.
UNREAD = {
    "short calls": ("calls|stalled", lambda: short_calls(TOKENIZE)),
    "streams": ("calls|stalled", lambda: short_calls(SCORE_TEXTS)),
    "streams after a pause": ("calls|stalled", lambda: after_a_pause(3, short_calls(SCORE_TEXTS))),
    "streams that are reset": (
        "calls|stalled",
        lambda: short_calls(SCORE_TEXTS, lambda stream: http2.frame(http2.RESET, 0, stream, CANCEL)),
    ),
    "refused calls": ("", refused_calls),
    "calls of an unknown method": (
        "calls|stalled",
        lambda: short_calls("/no.Service/Method", lambda stream: http2.message_frame(stream, b"")),
    ),
    "pings": ("pings|stalled", lambda: answered_frames(http2.PING, bytes(8))),
    "settings": ("pings|stalled", lambda: answered_frames(http2.SETTINGS, b"")),
    "pings behind answers": ("pings|stalled", pings_behind_answers),
}


@pytest.fixture(scope="module", params=["plain", "tls"])
def unread(
    request: pytest.FixtureRequest, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, ssl.SSLContext | None]]:
    """A server, and what its clients need to speak TLS with it."""
    folder = tmp_path_factory.mktemp("unread")
    options, context, authority = [], None, Authority("servers")
    if request.param == "tls":
        options = files_of(folder, authority.server("127.0.0.1"))
        context = trusting_context()
    trusted = None if context is None else authority.pem
    with Server(repository, folder / "server", *options, environment=MEASURED, trusted=trusted) as running:
        yield running, context
        assert running.process.poll() is None, running.log()


@pytest.mark.parametrize("attack", UNREAD)
@pytest.mark.not_sanitized("the sanitizers have an allocator of their own")
def test_answers_that_nobody_reads_take_little_memory(
    api: SimpleNamespace, unread: tuple[Server, ssl.SSLContext | None], attack: str
) -> None:
    """And a reader beside it is served all along."""
    server, tls = unread
    reasons, frames = UNREAD[attack]
    reader = RunningStream(api, server, "reader")
    before = closed(server, *reasons.split("|"))
    server.forget_peak_memory()
    memory = server.peak_memory()
    client = HostileClient(server.grpc_port, frames(), tls, reads=False)
    messages = reader.messages
    try:
        wait_until(client.is_closed, seconds=30)
    finally:
        client.close()
    wait_until(lambda: reader.messages > messages or reader.is_complete)
    reader.cancel()
    # 3,072 calls of some 25 KB, and those that begin before the guard's next check.
    assert server.peak_memory() - memory < 128 * MIB
    if reasons:
        wait_until(lambda: closed(server, *reasons.split("|")) == before + 1)
        wait_until(lambda: re.search(f"connections closed: .* why=({reasons}) ", server.log()) is not None)

    def memory_now() -> int:
        server.forget_peak_memory()
        return server.peak_memory()

    wait_until(lambda: memory_now() < memory + 32 * MIB, seconds=10)


@pytest.mark.parametrize("attack", ["calls without heeding settings", "calls that are reset"])
@pytest.mark.not_sanitized("the sanitizers have an allocator of their own")
def test_nor_do_calls_of_a_client_that_reads(attacked: Server, attack: str) -> None:
    attacked.forget_peak_memory()
    memory = attacked.peak_memory()
    client = HostileClient(attacked.grpc_port, ATTACKS[attack][1]())
    try:
        wait_until(client.is_closed, seconds=30)
    finally:
        client.close()
    # The guard looks 50 times a second. In between, a fast machine begins calls beyond the limit.
    assert attacked.peak_memory() - memory < 130 * MIB


@pytest.mark.not_sanitized("the sanitizers have an allocator of their own")
def test_what_attacks_have_taken_goes_back(tmp_path: Path) -> None:
    """Though there is a classifier, for whose batches the allocator keeps what is free."""
    model_directory.write(tmp_path / "repository")
    classifier_directory.write_text(tmp_path / "repository", "texts", documents=1)
    with Server(tmp_path / "repository", tmp_path / "server", environment=MEASURED) as server:

        def memory() -> int:
            server.forget_peak_memory()
            return server.peak_memory()

        before = memory()
        for _ in range(4):
            client = HostileClient(server.grpc_port, headers_without_end())
            try:
                wait_until(client.is_closed, seconds=20)
            finally:
                client.close()
        wait_until(lambda: memory() < before + 128 * MIB, seconds=20)


def test_so_is_one_that_speaks_tls(repository: Path, tmp_path: Path) -> None:
    options = files_of(tmp_path, Authority("servers").server("localhost"))
    tls = trusting_context()
    with Server(repository, tmp_path / "server", *options) as server:
        client = HostileClient(server.grpc_port, calls_without_heeding_settings(), tls)
        try:
            wait_until(client.is_closed, seconds=20)
        finally:
            client.close()
        wait_until(lambda: re.search("connections closed: .* why=(calls|stalled) ", server.log()) is not None)


def closed_for_anything(server: Server) -> float:
    return closed(server, "calls", "bytes", "pings", "stalled")


class SlowLink:
    """A port from which bytes go on to the server at this many a second, and come back as they come."""

    def __init__(self, port: int, bytes_per_second: int) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, args=(port, bytes_per_second), daemon=True)
        self._thread.start()

    def _serve(self, port: int, bytes_per_second: int) -> None:
        client, _ = self._listening.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            back = threading.Thread(target=self._copy, args=(server, client, 0.0), daemon=True)
            back.start()
            self._copy(client, server, 1 / bytes_per_second)
            back.join()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket, seconds_per_byte: float) -> None:
        with contextlib.suppress(OSError):
            while some := source.recv(16 << 10):
                sink.sendall(some)
                time.sleep(len(some) * seconds_per_byte)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._thread.join()
        self._listening.close()


def score_raw(api: SimpleNamespace, channel: grpc.Channel, size: int) -> None:
    """Sends a text that is too long for the model: the server reads all of it before it can say so."""
    request = api.inference.ScoreTextRequest(inputs=[{"raw": b"x" * size}])
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT):
        api.inference_grpc.InferenceStub(channel).ScoreText(request, timeout=60)


def test_large_messages_side_by_side_are_no_offence(api: SimpleNamespace, attacked: Server) -> None:
    before = closed_for_anything(attacked)
    with attacked.new_channel() as channel, ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(score_raw, api, channel, 60 * MIB) for _ in range(8)]:
            done.result()
    assert closed_for_anything(attacked) == before


def test_nor_is_a_slow_link(api: SimpleNamespace, attacked: Server) -> None:
    before = closed_for_anything(attacked)
    link = SlowLink(attacked.grpc_port, 4 * MIB)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(f"127.0.0.1:{link.port}", options) as channel:
        score_raw(api, channel, 16 * MIB)  # longer than bytes may wait to be read
    link.close()
    assert closed_for_anything(attacked) == before


def test_nor_are_as_many_calls_as_a_connection_may_have(api: SimpleNamespace, attacked: Server) -> None:
    """A thousand that do nothing on one connection, and as many documents as can be scored on another."""
    before = closed_for_anything(attacked)
    headers = http2.call_headers(SCORE_TEXTS)
    calls = b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers) for stream in range(1, 2001, 2))
    ping = http2.frame(http2.PING, 0, 0, bytes(8))
    end = time.monotonic() + 3  # longer than the guard's patience

    document = api.inference.ScoreTextsRequest(input={"text": "x" * 100})

    with socket.create_connection(("127.0.0.1", attacked.grpc_port), timeout=20) as idle:
        idle.sendall(http2.BEGINNING + http2.frame(http2.SETTINGS, http2.ACKNOWLEDGED, 0, b"") + calls + ping)
        answers = http2.frames(idle)
        assert any((kind, flags) == (http2.PING, http2.ACKNOWLEDGED) for kind, flags, _ in answers)
        with attacked.new_channel() as channel:
            stub = api.inference_grpc.InferenceStub(channel)
            call = stub.ScoreTexts(itertools.repeat(document), timeout=60)
            assert sum(1 for _ in itertools.takewhile(lambda _: time.monotonic() < end, call)) > 0
            call.cancel()
        idle.sendall(ping)
        assert any((kind, flags) == (http2.PING, http2.ACKNOWLEDGED) for kind, flags, _ in answers), (
            "it is still served"
        )
    assert closed_for_anything(attacked) == before


@pytest.mark.not_sanitized("so slow a server has more ended calls in memory than it allows")
def test_nor_is_a_client_whose_calls_all_pass_their_deadline(api: SimpleNamespace, attacked: Server) -> None:
    """It opens as many again at once, when gRPC has not destroyed those that ended."""
    before = closed_for_anything(attacked)
    request = api.inference.ScoreTextRequest(inputs=[{"raw": b"x" * 4000}] * 4)
    codes: Counter[grpc.StatusCode] = Counter()
    with attacked.new_channel() as channel:
        stub = api.inference_grpc.InferenceStub(channel)
        for _ in range(6):
            calls = [stub.ScoreText.future(request, timeout=0.1) for _ in range(1024)]
            codes.update(call.code() for call in calls)
    allowed = {grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert codes.keys() <= allowed, codes
    assert closed_for_anything(attacked) == before


@pytest.fixture
def forgetful(repository: Path, tmp_path: Path) -> Iterator[Server]:
    """A server whose connections grow a second old."""
    with Server(repository, tmp_path / "server", "--max-connection-age=1s") as running:
        yield running


def test_old_connections_are_replaced_and_no_call_fails(api: SimpleNamespace, forgetful: Server) -> None:
    stream = RunningStream(api, forgetful, "reader")
    with socket.create_connection(("127.0.0.1", forgetful.grpc_port), timeout=20) as old:
        old.sendall(http2.BEGINNING)
        stub = api.inference_grpc.InferenceStub(forgetful.channel)
        request = api.inference.TokenizeRequest(input={"text": "x"})
        with ThreadPoolExecutor(1) as pool:
            goodbye = pool.submit(lambda: any(kind == http2.GO_AWAY for kind, _, _ in http2.frames(old)))
            calls_made = 0
            while not goodbye.done() or calls_made < 200:
                stub.Tokenize(request, timeout=20)
                calls_made += 1
                time.sleep(0.01)
            assert goodbye.result()
    messages = stream.messages
    wait_until(lambda: stream.messages > messages)
    stream.cancel()


def test_nor_are_frequent_pings(attacked: Server) -> None:
    """Which gRPC would answer by closing the connection, at a cost of memory (GRPC_ARG_HTTP2_MAX_PING_STRIKES)."""
    pings = 1000
    with socket.create_connection(("127.0.0.1", attacked.grpc_port), timeout=20) as connection:
        connection.sendall(http2.BEGINNING + http2.frame(http2.PING, 0, 0, bytes(8)) * pings)
        answers = (kind for kind, flags, _ in http2.frames(connection) if (kind, flags) == (http2.PING, 1))
        assert sum(1 for _ in itertools.islice(answers, pings)) == pings
