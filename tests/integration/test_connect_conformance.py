"""The cases of Connect's public conformance suite (github.com/connectrpc/conformance) that apply to these calls, by the
names that they have there: "Suite/case". docs/http.md lists them. The suite's own program was not run, because it calls
a service that only its reference implementations have: each case is done here with the contract's calls."""

from __future__ import annotations

import base64
import gzip
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from integration import session_calls
from integration.connect_calls import GENERATE_STREAM, SCORE_TEXT, TOKENIZE, envelope, envelopes, post
from integration.server_process import Server

LIST_MODELS = "/longshort.v1.Models/ListModels"
GENERATE = "/longshort.v1.Inference/Generate"
EXPORT, IMPORT = "/longshort.v1.Sessions/ExportSession", "/longshort.v1.Sessions/ImportSession"
PROTO, CONNECT_PROTO = "application/proto", "application/connect+proto"
MESSAGE_LIMIT = 1 << 20
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def own(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that takes messages of 1 MiB, and moves sessions."""
    folder = tmp_path_factory.mktemp("conformance")
    key = session_calls.write_key(folder, "key")
    options = (f"--max-message-bytes={MESSAGE_LIMIT}", f"--session-key-file={key}")
    with Server(repository, folder, *options) as running:
        yield running


def call(server: Server, path: str, message: Any, **fields: str) -> Answer:
    """A call by protobuf, as most of the suite's are."""
    headers = {"Content-Type": PROTO, "Connect-Protocol-Version": "1"}
    headers |= {name.replace("_", "-"): value for name, value in fields.items()}
    return post(server, path, message if isinstance(message, bytes) else message.SerializeToString(), headers)


def code(answer: Answer) -> str:
    return str(json.loads(answer[2])["code"])


def stream(server: Server, path: str, body: bytes, **fields: str) -> list[tuple[int, bytes]]:
    """Flags and bytes of the answer's envelopes."""
    status, headers, content = call(server, path, body, **{"Content_Type": CONNECT_PROTO, **fields})
    assert (status, headers["content-type"]) == (200, CONNECT_PROTO)
    found = []
    while content:
        length = int.from_bytes(content[1:5], "big")
        found.append((content[0], content[5 : 5 + length]))
        content = content[5 + length :]
    return found


def stream_code(found: list[tuple[int, bytes]]) -> str:
    """The code with which a stream ended; "ok" without an error."""
    flags, content = found[-1]
    assert flags == 2
    return str(json.loads(content).get("error", {"code": "ok"})["code"])


def test_basic(api: SimpleNamespace, own: Server) -> None:
    """Basic/unary/success, server-stream/success, server-stream/no-responses, unimplemented."""
    status, headers, body = call(own, TOKENIZE, api.inference.TokenizeRequest(input={"text": "abc"}))
    assert (status, headers["content-type"]) == (200, PROTO)
    assert len(api.inference.TokenizeResponse.FromString(body).ids) == 3
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=5)
    *events, end = stream(own, GENERATE_STREAM, envelope(request.SerializeToString()))
    assert {flags for flags, _ in events} == {0} and end == (2, b"{}")
    last = api.inference.GenerateStreamResponse.FromString(events[-1][1])
    assert last.summary.usage.generated_tokens == 5
    missing = api.sessions.ExportSessionRequest(session_id="no-such-session")
    assert [flags for flags, _ in stream(own, EXPORT, envelope(missing.SerializeToString()))] == [2]
    answer = call(own, "/longshort.v1.Inference/ScoreTexts", b"")
    assert code(answer) == "unimplemented"


def test_client_streams(api: SimpleNamespace, own: Server) -> None:
    """Basic/client-stream/success, with compressed messages and without, and Timeouts/client-stream."""
    session_calls.say(api, own, "moving", "hello")
    found = stream(own, EXPORT, envelope(api.sessions.ExportSessionRequest(session_id="moving").SerializeToString()))
    assert stream_code(found) == "ok"
    parts = [api.sessions.SessionPart.FromString(content) for flags, content in found if flags == 0]
    api.sessions_grpc.SessionsStub(own.channel).CloseSession(api.sessions.CloseSessionRequest(session_id="moving"))
    messages = [api.sessions.ImportSessionRequest(beginning={"session_id": "moving"})]
    messages += [api.sessions.ImportSessionRequest(part=part) for part in parts]
    raw = [message.SerializeToString() for message in messages]
    body = b"".join([envelope(gzip.compress(one), flags=1) for one in raw[:2]] + [envelope(one) for one in raw[2:]])
    (answer, end) = stream(own, IMPORT, body, Connect_Content_Encoding="gzip")
    assert end == (2, b"{}") and api.sessions.ImportSessionResponse.FromString(answer[1])
    assert [one.session_id for one in session_calls.list_sessions(api, own)] == ["moving"]
    late = stream(own, IMPORT, b"".join(map(envelope, raw)), Connect_Timeout_Ms="0")
    assert stream_code(late) == "deadline_exceeded"


def test_messages_up_to_the_limit(api: SimpleNamespace, own: Server) -> None:
    """Server Message Size/unary/request-equal-to-server-limit, unary/request-exceeds-server-limit, and the same of
    server-stream and of client-stream."""

    def sized(size: int) -> bytes:
        """A request that is refused for what it says, not for its length."""
        message = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=1, stop=["y" * size])
        message.stop[0] = "y" * (2 * size - message.ByteSize())
        assert message.ByteSize() == size
        return bytes(message.SerializeToString())

    assert code(call(own, GENERATE, sized(MESSAGE_LIMIT))) == "invalid_argument"
    status, _, body = call(own, GENERATE, sized(MESSAGE_LIMIT + 10))
    assert (status, json.loads(body)["code"]) == (413, "resource_exhausted")
    assert stream_code(stream(own, GENERATE_STREAM, envelope(sized(MESSAGE_LIMIT)))) == "invalid_argument"
    for path in (GENERATE_STREAM, IMPORT):
        assert stream_code(stream(own, path, envelope(sized(MESSAGE_LIMIT + 10)))) == "resource_exhausted"


def test_empty_requests(own: Server) -> None:
    """Server Empty Requests/unary/empty-request, server-stream/empty-request: no bytes are a message without fields."""
    status, _, body = call(own, LIST_MODELS, b"")
    assert status == 200 and b"tiny" in body
    flags, content = stream(own, GENERATE_STREAM, envelope(b""))[-1]
    assert flags == 2 and json.loads(content)["error"]["code"] == "invalid_argument" and b"prompt" in content


@pytest.mark.parametrize("count", [0, 2])
def test_streams_of_one_request(api: SimpleNamespace, server: Server, count: int) -> None:
    """Connect Unexpected Requests/server-stream/no-request, server-stream/multiple-requests."""
    message = api.inference.GenerateRequest(prompt={"text": "x"}).SerializeToString()
    assert stream_code(stream(server, GENERATE_STREAM, envelope(message) * count)) == "unimplemented"


def test_unexpected_requests(server: Server) -> None:
    """Connect Unexpected Requests/unexpected-verb, unexpected-uri, unexpected-codec, unexpected-compression, and
    Unexpected Requests/unexpected-content-type."""
    status, _, body = post(server, TOKENIZE, b"", {"Content-Type": PROTO}, method="DELETE")
    assert (status, json.loads(body)["code"]) == (405, "unknown")
    for path in ("/longshort.v1.Unknown/UnknownMethod", "/longshort.v1.Inference/UnknownMethod"):
        status, headers, _ = call(server, path, b"")
        assert status == 404 and headers["content-type"].startswith("text/plain"), "clients read it as unimplemented"
    for kind in ("application/foo", "image/jpeg"):
        answer = call(server, TOKENIZE, b"12345678", Content_Type=kind)
        assert (answer[0], code(answer)) == (415, "unknown")
    assert code(call(server, TOKENIZE, b"", Content_Encoding="foo")) == "unimplemented"


def test_a_compressed_message_without_a_coding(server: Server) -> None:
    """Connect Unexpected Requests/unexpected-compressed-message, with a code of our own (docs/http.md)."""
    body = envelope(gzip.compress(b""), flags=1)
    for coding in ({}, {"Connect_Content_Encoding": "identity"}):
        assert stream_code(stream(server, GENERATE_STREAM, body, **coding)) == "invalid_argument"


@pytest.mark.parametrize("encoding", ["json", "proto"])
def test_get(api: SimpleNamespace, server: Server, encoding: str) -> None:
    """Connect with GET/success."""
    request = api.inference.TokenizeRequest(input={"text": "abc"})
    query = {"connect": "v1", "encoding": encoding, "message": '{"input":{"text":"abc"}}'}
    if encoding == "proto":
        query |= {"message": base64.urlsafe_b64encode(request.SerializeToString()).decode().rstrip("="), "base64": "1"}
    status, headers, body = post(server, f"{TOKENIZE}?{urllib.parse.urlencode(query)}", b"", method="GET")
    assert (status, headers["content-type"]) == (200, f"application/{encoding}")
    read = api.inference.TokenizeResponse.FromString(body).ids if encoding == "proto" else json.loads(body)["ids"]
    assert len(read) == 3


def test_deadlines(api: SimpleNamespace, server: Server) -> None:
    """Deadline Propagation/unary/success, server-stream/success; Timeouts/unary, server-stream."""
    for max_tokens, wanted, timeout in ((2, "ok", "20000"), (60_000, "deadline_exceeded", "200")):
        request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=max_tokens)
        answer = call(server, GENERATE, request, Connect_Timeout_Ms=timeout)
        assert ("ok" if answer[0] == 200 else code(answer)) == wanted
        found = stream(server, GENERATE_STREAM, envelope(request.SerializeToString()), Connect_Timeout_Ms=timeout)
        assert stream_code(found) == wanted


def test_errors(api: SimpleNamespace, server: Server) -> None:
    """Errors/unary/unicode-error-message and server-stream/error-with-responses. connect_codec_test.cc has the other
    codes: unary/canceled to unary/unauthenticated, and the same of server-stream."""
    status, _, body = call(server, TOKENIZE, api.inference.TokenizeRequest(model={"name": "Bücher 日本"}))
    assert status == 404 and "Bücher 日本" in json.loads(body)["message"]
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=60_000)
    found = stream(server, GENERATE_STREAM, envelope(request.SerializeToString()), Connect_Timeout_Ms="1000")
    assert len(found) > 1 and stream_code(found) == "deadline_exceeded", "messages come before the error"


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_streams_are_compressed_for_clients_that_accept_it(server: Server, coding: str) -> None:
    """All suites, with COMPRESSION_GZIP and COMPRESSION_ZSTD: a stream's long messages are compressed one by one."""
    request = {"prompt": {"text": "x" * 300}, "maxTokens": 1, "echo": True, "tokenLogProbabilities": True}
    fields = {"Content-Type": "application/connect+json"}
    plain = post(server, GENERATE_STREAM, envelope(request), fields)
    assert "connect-content-encoding" not in plain[1]
    status, headers, body = post(
        server, GENERATE_STREAM, envelope(request), fields | {"Connect-Accept-Encoding": coding}
    )
    assert (status, headers["connect-content-encoding"]) == (200, coding)
    flags = []
    unpacked = b""
    while body:
        length = int.from_bytes(body[1:5], "big")
        content = body[5 : 5 + length]
        flags.append(body[0])
        if body[0] & 1:
            if coding == "gzip":
                content = gzip.decompress(content)
            else:
                content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
        unpacked += envelope(content)
        body = body[5 + length :]
    assert 1 in flags and flags[-1] == 2
    said = [[next(iter(one), None) for _, one in envelopes(every)] for every in (unpacked, plain[2])]
    for kinds in said:
        assert kinds[0] == "start" and set(kinds) - {"keepAlive"} == {"start", "delta", "end", "summary", None}


def test_both_encodings_have_the_same_answer(api: SimpleNamespace, server: Server) -> None:
    """All suites, with CODEC_JSON and CODEC_PROTO."""
    request = api.inference.ScoreTextRequest(inputs=[{"text": "hello"}])
    read = api.inference.ScoreTextResponse.FromString(call(server, SCORE_TEXT, request)[2])
    answer = json.loads(post(server, SCORE_TEXT, {"inputs": [{"text": "hello"}]})[2])
    assert answer["scores"][0]["logLikelihood"] == read.scores[0].log_likelihood
