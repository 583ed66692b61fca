"""What RFC 9110 and 9112 say about requests and answers, by raw requests and their right answers."""

from __future__ import annotations

import socket
import time
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import pytest

from integration.connect_calls import GENERATE_STREAM, TOKENIZE, connect, envelope, head, receive_all
from integration.server_process import Server, wait_until

HOST = b"Host: localhost\r\n"
CLOSE = HOST + b"Connection: close\r\n"
JSON = b"Content-Type: application/json\r\n"
LIVEZ = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
LAST = b"GET /livez HTTP/1.1\r\n" + CLOSE + b"\r\n"
POST = b"POST " + TOKENIZE.encode() + b" HTTP/1.1\r\n"
BODY = b'{"input":{"text":"x"}}'
LENGTH = b"Content-Length: %d\r\n\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)

# Paths of GET, of POST, and of both.
READ = ("/", "/metrics", "/livez", "/readyz", "/openapi.json", "/v1/models", "/v2", "/v2/models/tiny/ready")
WRITTEN = ("/v1/completions", "/v1/embeddings", "/predict", "/v2/models/tiny/infer", "/v2/repository/index")
BOTH = (TOKENIZE,)


# What is not localhost, but looks like it.
STRANGE_HOSTS = (
    *("[::1].evil.example", "[localhost]evil.example:80", "[localhost]", "localhost:80@evil.example"),
    *("localhost@evil.example", "localhost:evil.example", "127.0.0.1.evil.example", "::1", "[::1", "localhost:80:80"),
)


class Case(NamedTuple):
    request: bytes
    statuses: tuple[int, ...]  # of the answers, in order
    fields: dict[str, str | None] = {}  # of the first one; None: absent
    body: bytes | None = None  # of the last one


def get(target: bytes, version: bytes = b"1.1", fields: bytes = CLOSE) -> bytes:
    return b"GET " + target + b" HTTP/" + version + b"\r\n" + fields + b"\r\n"


# Requests that keep the connection are followed by LAST, whose answer must come, or must not.
CASES = {
    # targets
    "the origin form": Case(LIVEZ + LAST, (200, 200), {"connection": "keep-alive", "keep-alive": "timeout=75"}),
    "the absolute form": Case(get(b"http://localhost/livez"), (200,), {}, b"ok\n"),
    "the absolute form without a path": Case(get(b"http://localhost"), (200,)),
    "the absolute form with a query alone": Case(get(b"http://localhost?a=b"), (200,)),
    "the absolute form of https": Case(get(b"HTTPS://LOCALHOST:8501/livez"), (200,)),
    "its host counts, not the field's": Case(get(b"http://evil.example/metrics"), (421,)),
    "the field's host does not count beside it": Case(
        get(b"http://localhost/livez", fields=b"Host: evil.example\r\nConnection: close\r\n"), (200,)
    ),
    "another scheme": Case(get(b"ftp://localhost/livez"), (400,)),
    "a relative target": Case(get(b"livez"), (400,)),
    "a query": Case(get(b"/livez?x=y"), (200,)),
    "OPTIONS *": Case(
        b"OPTIONS * HTTP/1.1\r\n" + CLOSE + b"\r\n",
        (204,),
        {"allow": "GET, POST, HEAD, OPTIONS", "content-length": None},
    ),
    **{
        f"{method} *": Case(f"{method} * HTTP/1.1\r\n".encode() + CLOSE + b"\r\n", (400,))
        for method in ("GET", "HEAD", "POST", "DELETE")
    },
    "CONNECT": Case(b"CONNECT localhost:80 HTTP/1.1\r\n" + CLOSE + b"\r\n", (400,)),
    # lines
    "an empty line before the request": Case(b"\r\n" + LAST, (200,)),
    "an empty line between requests": Case(LIVEZ + b"\r\n" + LAST, (200, 200)),
    "a bare line feed before the request": Case(b"\n" + LAST, (400,)),
    "no version": Case(b"GET /livez\r\n" + CLOSE + b"\r\n", (400,)),
    "two spaces": Case(b"GET  /livez HTTP/1.1\r\n" + CLOSE + b"\r\n", (400,)),
    "another version": Case(get(b"/livez", b"2.0"), (400,)),
    "a space before a colon": Case(get(b"/livez", fields=CLOSE + b"X : y\r\n"), (400,)),
    "a head of 10,000 bytes": Case(get(b"/livez", fields=CLOSE + b"X: " + b"x" * 10_000 + b"\r\n"), (431,)),
    "a target of 10,000 bytes": Case(get(b"/" + b"x" * 10_000), (431,)),
    "128 fields": Case(get(b"/livez", fields=CLOSE + b"a: b\r\n" * 126), (200,)),
    "129 fields": Case(get(b"/livez", fields=CLOSE + b"a: b\r\n" * 127), (431,)),
    # Host
    "no Host": Case(get(b"/livez", fields=b"") + LAST, (400,), {"connection": "close"}),
    "two Hosts": Case(get(b"/livez", fields=HOST + HOST) + LAST, (400,)),
    "an empty Host": Case(get(b"/metrics", fields=b"Host:\r\nConnection: close\r\n"), (421,)),
    "a Host with a port": Case(get(b"/livez", fields=b"Host: LocalHost:1\r\nConnection: close\r\n"), (200,)),
    "another loopback address": Case(get(b"/livez", fields=b"Host: 127.0.0.2\r\nConnection: close\r\n"), (200,)),
    "IPv6's": Case(get(b"/livez", fields=b"Host: [::1]:8501\r\nConnection: close\r\n"), (200,)),
    "a stranger's name": Case(get(b"/metrics", fields=b"Host: evil.example\r\nConnection: close\r\n"), (421,)),
    "a stranger's name for a probe": Case(get(b"/livez", fields=b"Host: a.example\r\nConnection: close\r\n"), (200,)),
    **{
        f"Host: {name}": Case(get(b"/metrics", fields=b"Host: " + name.encode() + b"\r\nConnection: close\r\n"), (421,))
        for name in STRANGE_HOSTS
    },
    **{f"http://{name}": Case(get(b"http://" + name.encode() + b"/metrics"), (421,)) for name in STRANGE_HOSTS},
    "its host counts in HTTP/1.0, too": Case(get(b"http://evil.example/metrics", b"1.0", b""), (421,)),
    # versions and connections
    "HTTP/1.0": Case(get(b"/livez", b"1.0", b"") + LAST, (200,), {"connection": "close", "keep-alive": None}),
    "HTTP/1.0 with keep-alive": Case(get(b"/livez", b"1.0", b"Connection: keep-alive\r\n") + LAST, (200,)),
    "Connection: close": Case(LAST + LAST, (200,), {"connection": "close", "keep-alive": None}),
    "pipelined requests are answered in order": Case(
        LIVEZ + POST + HOST + JSON + LENGTH + BODY + get(b"/nothing", fields=HOST) + LAST, (200, 200, 404, 200)
    ),
    "an upgrade is ignored": Case(
        get(b"/livez", fields=CLOSE[:-2] + b", Upgrade\r\nUpgrade: h2c\r\n"), (200,), {"upgrade": None}
    ),
    # methods
    "an unknown path": Case(get(b"/nothing"), (404,)),
    "an unknown path, whatever the method": Case(b"DELETE /nothing HTTP/1.1\r\n" + CLOSE + b"\r\n", (404,)),
    "OPTIONS of an unknown path": Case(b"OPTIONS /nothing HTTP/1.1\r\n" + CLOSE + b"\r\n", (404,)),
    "an unknown path of OpenAI's": Case(get(b"/v1/nothing"), (404,)),
    "an unknown path of the Open Inference Protocol": Case(get(b"/v2/nothing"), (404,)),
    "TRACE": Case(b"TRACE /livez HTTP/1.1\r\n" + CLOSE + b"\r\n", (405,), {"allow": "GET, HEAD, OPTIONS"}),
    "an unknown method": Case(b"BREW /livez HTTP/1.1\r\n" + CLOSE + b"\r\n", (405,)),
    "methods are case-sensitive": Case(b"get /livez HTTP/1.1\r\n" + CLOSE + b"\r\n", (405,)),
    # bodies
    "a body with a length": Case(POST + CLOSE + JSON + LENGTH + BODY, (200,)),
    "a body in chunks": Case(
        POST + CLOSE + JSON + CHUNKED + b"%x;a=b\r\n%b\r\n0\r\nT: t\r\n\r\n" % (len(BODY), BODY), (200,)
    ),
    "a trailer of 16 fields": Case(POST + HOST + JSON + CHUNKED + CHUNK + b"a:\r\n" * 16 + b"\r\n" + LAST, (200, 200)),
    "a trailer of 17 fields": Case(POST + HOST + JSON + CHUNKED + CHUNK + b"a:\r\n" * 17 + b"\r\n" + LAST, (431,)),
    "a GET with a body that is here": Case(
        get(b"/livez", fields=HOST + b"Content-Length: 3\r\n") + b"abc" + LAST, (200, 200)
    ),
    "a refused request with a body that is here": Case(
        b"POST /livez HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc" + LAST, (405, 200)
    ),
    "a refused request whose body is not here": Case(
        b"POST /livez HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nab", (405,), {"connection": "close"}
    ),
    "a body that is too large": Case(
        POST + HOST + JSON + b"Content-Length: 99999999999\r\n\r\n", (413,), {"connection": "close"}
    ),
    "Expect": Case(POST + CLOSE + JSON + b"Expect: 100-continue\r\n" + LENGTH + BODY, (200,)),
    "Expect of what is refused": Case(
        POST + HOST + b"Content-Type: a/b\r\nExpect: 100-continue\r\n" + LENGTH, (415,), {"connection": "close"}
    ),
    "Expect of too much": Case(
        POST + HOST + JSON + b"Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n", (413,)
    ),
    # what two servers could read differently
    "a length and chunks": Case(POST + HOST + JSON + b"Content-Length: 5\r\n" + CHUNKED + b"0\r\n\r\n" + LAST, (400,)),
    "two lengths": Case(POST + HOST + JSON + b"Content-Length: 0\r\n" + LENGTH + BODY + LAST, (400,)),
    "a signed length": Case(POST + HOST + JSON + b"Content-Length: +0\r\n\r\n" + LAST, (400,)),
    "a negative length": Case(POST + HOST + JSON + b"Content-Length: -1\r\n\r\n" + LAST, (400,)),
    "another transfer coding": Case(POST + HOST + JSON + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + LAST, (501,)),
    "a chunk of negative size": Case(POST + HOST + JSON + CHUNKED + b"-1\r\n\r\n" + LAST, (400,)),
    "a chunk that is longer than its size": Case(
        POST + HOST + JSON + CHUNKED + b"1\r\nabc\r\n0\r\n\r\n" + LAST, (400,)
    ),
    "a chunk head of 17 KiB": Case(POST + HOST + JSON + CHUNKED + b"1;" + b"x" * 17_000 + b"\r\n", (400,)),
    # compression in a query
    "compression in a query": Case(get(TOKENIZE.encode() + b"?encoding=json&message={}&compression=zstd"), (501,)),
    "identity in a query": Case(get(TOKENIZE.encode() + b"?encoding=json&message={}&compression=identity"), (400,)),
    # pages of other sites
    "a call by another site's page": Case(
        get(TOKENIZE.encode() + b"?encoding=json&message={}", fields=CLOSE + b"Sec-Fetch-Site: cross-site\r\n"), (403,)
    ),
    "a call from another origin": Case(
        POST + CLOSE + JSON + b"Origin: http://evil.example\r\n" + LENGTH + BODY, (403,)
    ),
    "a call by the server's own page": Case(
        POST + CLOSE + JSON + b"Origin: http://localhost\r\n" + LENGTH + BODY, (200,)
    ),
    "metrics by another site's page": Case(get(b"/metrics", fields=CLOSE + b"Sec-Fetch-Site: cross-site\r\n"), (403,)),
    "a link to the page": Case(get(b"/", fields=CLOSE + b"Sec-Fetch-Site: cross-site\r\n"), (200,)),
}


class Answer(NamedTuple):
    status: int
    fields: dict[str, str]
    body: bytes


def answers_of(received: bytes, without_body: bool = False) -> list[Answer]:
    """The answers in what came until the connection closed, without interim ones."""
    answers = []
    while received:
        lines, _, received = received.partition(b"\r\n\r\n")
        first, *rest = lines.decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
        status = int(first.split()[1])
        if status < 200:
            continue
        length = 0 if without_body else int(fields.get("content-length", 0))
        answers.append(Answer(status, fields, received[:length]))
        received = received[length:]
    return answers


def ask(server: Server, request: bytes, without_body: bool = False) -> list[Answer]:
    with connect(server) as connection:
        connection.sendall(request)
        return answers_of(receive_all(connection), without_body)


@pytest.mark.parametrize("name", CASES)
def test_a_request_has_its_answer(server: Server, name: str) -> None:
    case = CASES[name]
    answers = ask(server, case.request)
    assert tuple(answer.status for answer in answers) == case.statuses, answers
    for field, value in case.fields.items():
        assert answers[0].fields.get(field) == value, answers[0]
    assert case.body is None or answers[-1].body == case.body
    for answer in answers:
        assert abs(parsedate_to_datetime(answer.fields["date"]).timestamp() - time.time()) < 60
        assert ("content-length" in answer.fields) == (answer.status != 204)


@pytest.mark.parametrize("path", READ + BOTH + WRITTEN)
def test_every_path_has_the_same_rules(server: Server, path: str) -> None:
    def status(method: str, fields: bytes = CLOSE) -> Answer:
        (answer,) = ask(server, f"{method} {path} HTTP/1.1\r\n".encode() + fields + b"\r\n", method == "HEAD")
        return answer

    methods = {READ: "GET, HEAD, OPTIONS", WRITTEN: "POST, OPTIONS", BOTH: "POST, GET, HEAD, OPTIONS"}
    allow = next(allowed for paths, allowed in methods.items() if path in paths)
    options = status("OPTIONS")
    assert (options.status, options.fields["allow"], options.body) == (204, allow, b"")
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "TRACE"):
        answer = status(method)
        assert (answer.status == 405) == (method not in allow), (method, answer)
        assert answer.status != 405 or answer.fields["allow"] == allow
        assert answer.status != 404


@pytest.mark.parametrize("path", READ)
def test_the_answer_to_head_is_that_to_get_without_its_body(server: Server, path: str) -> None:
    def answer(method: str) -> tuple[bytes, bytes]:
        with connect(server) as connection:
            connection.sendall(f"{method} {path} HTTP/1.1\r\n".encode() + CLOSE + b"\r\n")
            lines, _, body = receive_all(connection).partition(b"\r\n\r\n")
            ignored = (b"date:", b"x-request-id:")
            return b"\n".join(line for line in lines.split(b"\r\n") if not line.lower().startswith(ignored)), body

    def same() -> bool:
        get, get_body = answer("GET")
        head, head_body = answer("HEAD")
        assert head_body == b"" and get_body != b"" or path == "/v2/models/tiny/ready"
        return get == head

    wait_until(same)  # of /metrics the length may change between the two


def test_an_idle_connection_lasts_as_long_as_its_field_says(repository: object, tmp_path: object) -> None:
    with Server(repository, tmp_path, "--http-idle-timeout=1s") as server, connect(server) as connection:  # type: ignore[arg-type]
        begin = time.monotonic()
        connection.sendall(LIVEZ)
        (answer,) = answers_of(receive_all(connection))
        assert answer.fields["keep-alive"] == "timeout=1"
        assert time.monotonic() - begin >= 1


def stream_request(**more: object) -> bytes:
    body = envelope({"prompt": {"text": "x"}, **more})
    return (
        head(GENERATE_STREAM, Content_Length=len(body), Content_Type="application/connect+json", Connection="close")
        + body
    )


def test_a_half_closed_client_gets_its_whole_stream(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(stream_request(maxTokens=300))
        connection.shutdown(socket.SHUT_WR)
        received = receive_all(connection)
    assert b"\r\n0\r\n\r\n" in received and b'"usage"' in received, received[-500:]


@pytest.mark.parametrize("path", [GENERATE_STREAM, "/longshort.v1.Inference/Generate"])
def test_a_client_that_leaves_behind_much_that_it_sent_ends_its_call(server: Server, path: str) -> None:
    """The server reads 16 KiB ahead, so it does not come to the end of what the client has sent."""
    request = {"prompt": {"text": "x"}, "maxTokens": 60000}
    stream = path == GENERATE_STREAM
    body = envelope(request) if stream else b'{"prompt":{"text":"x"},"maxTokens":60000}'
    kind = "application/connect+json" if stream else "application/json"
    with connect(server) as connection:
        connection.sendall(head(path, Content_Length=len(body), Content_Type=kind) + body + b"x" * 70_000)
        wait_until(lambda: server.metric("longshort_streams_active") >= 1)
    begin = time.monotonic()
    wait_until(lambda: server.metric("longshort_streams_active") == 0)
    assert time.monotonic() - begin < 20
