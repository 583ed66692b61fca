"""The Connect protocol, as an unmodified client of others speaks it (PyPI: connectrpc)."""

from __future__ import annotations

import gzip
import json
import urllib.parse
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from connectrpc.client import ConnectClientSync
from connectrpc.code import Code
from connectrpc.compat import google_protobuf_binary_codec, google_protobuf_json_codec
from connectrpc.compression.gzip import GzipCompression
from connectrpc.compression.zstd import ZstdCompression
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType

from integration.connect_calls import GENERATE_STREAM, SCORE_TEXT, TOKENIZE, envelope, envelopes, post
from integration.server_process import Server

CODECS = {"json": google_protobuf_json_codec, "proto": google_protobuf_binary_codec}


def method(api: SimpleNamespace, name: str) -> MethodInfo[Any, Any]:
    request, response = getattr(api.inference, f"{name}Request", None), getattr(api.inference, f"{name}Response")
    if name == "GenerateStream":
        request = api.inference.GenerateRequest
    return MethodInfo(
        name=name,
        service_name="longshort.v1.Inference",
        input=request,
        output=response,
        stream_type=StreamType.SERVER_STREAM if name == "GenerateStream" else StreamType.UNARY,
        idempotency_level=IdempotencyLevel.NO_SIDE_EFFECTS,
    )


@pytest.fixture(params=["json", "proto"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[ConnectClientSync]:
    with ConnectClientSync(f"http://127.0.0.1:{server.http_port}", codec=CODECS[request.param]()) as made:
        yield made


def test_a_unary_call(api: SimpleNamespace, server: Server, inference: Any, client: ConnectClientSync) -> None:
    """The answer by JSON and by protobuf is gRPC's. A prefix that the cache has by then may change the last bits."""
    request = api.inference.ScoreTextRequest(inputs=[{"text": "hello é"}], token_log_probabilities=True)
    answer = client.execute_unary(request=request, method=method(api, "ScoreText"))
    expected = inference.ScoreText(request)
    numbers = []
    for score in (answer.scores[0], expected.scores[0]):
        each_token = [token.log_probability for token in score.tokens]
        numbers.append([score.log_likelihood, score.bits_per_byte, *each_token])
        for name in ("timings", "log_likelihood", "bits_per_byte"):
            score.ClearField(name)
        for token in score.tokens:
            token.ClearField("log_probability")
    assert len(numbers[1]) == 9
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-6)
    assert answer == expected


@pytest.mark.parametrize("codec", CODECS)
def test_a_get(api: SimpleNamespace, server: Server, codec: str) -> None:
    """Side-effect-free calls by GET, whose message must not be compressed: by default this client's are, by gzip."""
    request = api.inference.TokenizeRequest(input={"text": "ab" * 400})
    address = f"http://127.0.0.1:{server.http_port}"
    with ConnectClientSync(address, codec=CODECS[codec](), send_compression=None) as client:
        answer = client.execute_unary(request=request, method=method(api, "Tokenize"), use_get=True)
    assert len(answer.ids) == 800
    with ConnectClientSync(address, codec=CODECS[codec]()) as client, pytest.raises(ConnectError) as refused:
        client.execute_unary(request=request, method=method(api, "Tokenize"), use_get=True)
    assert refused.value.code == Code.UNIMPLEMENTED


def test_a_stream(api: SimpleNamespace, inference: Any, client: ConnectClientSync) -> None:
    """A stream of answers ends with an envelope that says so."""
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=20, sampling={"seed": 3}, return_raw=True)
    events = list(client.execute_server_stream(request=request, method=method(api, "GenerateStream")))
    kinds = [event.WhichOneof("event") for event in events]
    assert kinds[0] == "start" and kinds[-1] == "summary"
    expected = b"".join(event.delta.raw for event in inference.GenerateStream(request))
    assert b"".join(event.delta.raw for event in events) == expected


def test_errors(api: SimpleNamespace, client: ConnectClientSync) -> None:
    """An error has the code and the words of gRPC's, before a stream and instead of an answer."""
    request = api.inference.TokenizeRequest(model={"name": "no-such-model"}, input={"text": "x"})
    with pytest.raises(ConnectError) as unary:
        client.execute_unary(request=request, method=method(api, "Tokenize"))
    assert unary.value.code == Code.NOT_FOUND and "no-such-model" in unary.value.message
    wrong = api.inference.GenerateRequest(model={"name": "no-such-model"}, prompt={"text": "x"})
    with pytest.raises(ConnectError) as stream:
        list(client.execute_server_stream(request=wrong, method=method(api, "GenerateStream")))
    assert stream.value.code == Code.NOT_FOUND


def test_timeouts(api: SimpleNamespace, client: ConnectClientSync) -> None:
    """Of calls and of streams."""
    request = api.inference.GenerateRequest(prompt={"text": "x"}, max_tokens=60000)
    with pytest.raises(ConnectError) as late:
        client.execute_unary(request=request, method=method(api, "Generate"), timeout_ms=300)
    assert late.value.code == Code.DEADLINE_EXCEEDED
    with pytest.raises(ConnectError) as late:
        list(client.execute_server_stream(request=request, method=method(api, "GenerateStream"), timeout_ms=300))
    assert late.value.code == Code.DEADLINE_EXCEEDED


@pytest.mark.parametrize("compression", [GzipCompression(), ZstdCompression()])
def test_compression(api: SimpleNamespace, server: Server, compression: Any) -> None:
    """Of requests and of answers; streams take compressed messages, too."""
    with ConnectClientSync(
        f"http://127.0.0.1:{server.http_port}",
        codec=google_protobuf_json_codec(),
        send_compression=compression,
        accept_compression=[compression],
    ) as client:
        text = "abc" * 5000
        answer = client.execute_unary(
            request=api.inference.TokenizeRequest(input={"text": text}), method=method(api, "Tokenize")
        )
        assert len(answer.ids) == len(text)
        request = api.inference.GenerateRequest(prompt={"text": text}, max_tokens=2)
        assert list(client.execute_server_stream(request=request, method=method(api, "GenerateStream")))


@pytest.mark.parametrize("coding", ["gzip", "zstd", "deflate"])
def test_answers_are_compressed_if_the_client_asks(server: Server, coding: str) -> None:
    request = {"input": {"text": "abc" * 5000}}
    plain = post(server, TOKENIZE, request)
    assert "content-encoding" not in plain[1]
    coded = post(server, TOKENIZE, request, {"Accept-Encoding": coding})
    if coding == "deflate":  # its two forms are confused too often
        assert "content-encoding" not in coded[1]
        return
    assert coded[1]["content-encoding"] == coding and "Accept-Encoding" in coded[1]["vary"]
    assert len(coded[2]) < 1.1 * len(gzip.compress(plain[2], compresslevel=1))
    if coding == "gzip":
        assert gzip.decompress(coded[2]) == plain[2]
    short = post(server, TOKENIZE, {"input": {"text": "x"}}, {"Accept-Encoding": coding})
    assert "content-encoding" not in short[1], "it would not pay"


def test_what_a_method_does_not_take_is_refused(server: Server) -> None:
    """Content types, methods, codings, and streams in both directions."""
    assert post(server, TOKENIZE, b"x", {"Content-Type": "text/plain"})[0] == 415
    assert post(server, TOKENIZE, b"x", {"Content-Type": "application/connect+json"})[0] == 415
    assert post(server, GENERATE_STREAM, {})[0] == 415
    status, headers, _ = post(server, TOKENIZE, b"", method="PUT")
    assert status == 405 and headers["allow"] == "POST, GET, HEAD, OPTIONS"
    status, _, body = post(server, TOKENIZE, b"x", {"Content-Encoding": "br"})
    assert status in (415, 501) and "gzip" in json.loads(body)["message"]
    status, _, body = post(server, "/longshort.v1.Inference/ScoreTexts", {})
    assert status == 501 and "streams in both directions" in json.loads(body)["message"]
    assert post(server, "/longshort.v1.Inference/NoSuchMethod", {})[0] == 404


def test_wrong_messages_are_invalid_arguments(server: Server) -> None:
    """Of both encodings."""
    for content_type, content in (("json", b'{"input":'), ("json", b""), ("json", b'{"no":1}'), ("proto", b"\xff")):
        status, _, body = post(server, TOKENIZE, content, {"Content-Type": f"application/{content_type}"})
        assert status == 400 and json.loads(body)["code"] == "invalid_argument", body
    query = urllib.parse.urlencode({"encoding": "json", "message": "{"})
    assert post(server, f"{TOKENIZE}?{query}", b"", method="GET")[0] == 400
    assert post(server, f"{TOKENIZE}?encoding=xml&message=x", b"", method="GET")[0] == 415
    assert post(server, TOKENIZE, {}, {"Connect-Timeout-Ms": "12345678901"})[0] == 400


def test_metadata(server: Server) -> None:
    """Fields of the request are metadata, and the answer names the call."""
    status, headers, _ = post(server, TOKENIZE, {"input": {"text": "x"}}, {"X-Request-Id": "my-call"})
    assert status == 200 and headers["x-request-id"] == "my-call"


def test_a_compressed_envelope(server: Server) -> None:
    """Beside one that is not."""
    message = {"prompt": {"text": "x"}, "maxTokens": 2}
    fields = {"Content-Type": "application/connect+json", "Connect-Content-Encoding": "gzip"}
    for body in (envelope(message), envelope(gzip.compress(json.dumps(message).encode()), flags=1)):
        status, _, answer = post(server, GENERATE_STREAM, body, fields)
        (*_, end) = envelopes(answer)
        assert status == 200 and end == (2, {})


def test_the_same_numbers_by_grpc_and_by_json(api: SimpleNamespace, server: Server, inference: Any) -> None:
    """JSON writes the shortest text that reads as the same number."""
    answer = json.loads(post(server, SCORE_TEXT, {"inputs": [{"text": "hello"}], "tokenLogProbabilities": True})[2])
    request = api.inference.ScoreTextRequest(inputs=[{"text": "hello"}], token_log_probabilities=True)
    expected = inference.ScoreText(request).scores[0]
    assert answer["scores"][0]["logLikelihood"] == expected.log_likelihood
    assert answer["scores"][0]["tokenCount"] == str(expected.token_count)
