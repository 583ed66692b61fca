"""The Open Inference Protocol by REST: what requests may have and what is refused, by hand."""

from __future__ import annotations

import gzip
import http.client
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integration.images import png, some_pixels
from integration.rest_calls import JSON, document, error, infer, send
from integration.server_process import Server, wait_until

PIXELS = np.stack([some_pixels(1), some_pixels(2)])


def test_data_may_be_nested_and_in_any_order(server: Server) -> None:
    request = {"inputs": [{"name": "image", "shape": list(PIXELS.shape), "datatype": "UINT8", "data": PIXELS.tolist()}]}
    status, expected = infer(server, "images", request)
    assert status == 200, expected
    first = '{"inputs":[{"data":%s,"shape":%s,"name":"image","datatype":"UINT8","parameters":null}],"id":null}'
    status, found = infer(server, "images", first % (PIXELS.ravel().tolist(), list(PIXELS.shape)))
    assert status == 200, found
    assert found["outputs"][0]["data"] == pytest.approx(expected["outputs"][0]["data"], abs=1e-5)
    ids = {"name": "document", "shape": [2, 3], "datatype": "INT32", "data": [[1, 2, 3], [4, 5, 6]]}
    status, found = infer(server, "texts", {"inputs": [ids]})
    assert status == 200 and found["outputs"][0]["shape"] == [2, 3], found


def test_stop_strings_may_be_a_list(server: Server) -> None:
    prompt = {"name": "prompt", "shape": [1], "datatype": "BYTES", "data": ["hello"]}
    parameters = {"max_tokens": 4, "stop": ["a", "b"], "temperature": 0.5, "seed": 2**64 - 1}
    status, found = infer(server, "tiny", {"inputs": [prompt], "parameters": parameters})
    assert status == 200, found
    assert found["parameters"]["seed"] == str(2**64 - 1)


def pixels(data: str, shape: str = "[1, 1, 3]", datatype: str = "UINT8") -> str:
    return f'{{"inputs": [{{"name": "image", "shape": {shape}, "datatype": "{datatype}", "data": {data}}}]}}'


@pytest.mark.parametrize(
    ("model", "request_", "reason"),
    [
        ("texts", "", "not valid JSON at byte"),
        ("texts", "{", "not valid JSON at byte"),
        ("texts", "[]", "a JSON array, not an object"),
        ("texts", "{}", "the input document is missing"),
        ("texts", '{"inputs": []} {}', "not valid JSON at byte"),
        ("texts", '{"inputs": [], "\\ud800": 1}', "not valid JSON at byte"),
        ("texts", b'{"inputs": [], "id": "\xff"}', "not valid JSON at byte"),
        ("texts", b'{"inputs": []}\0', "not valid JSON at byte 15"),
        ("texts", '{"inputs": [], "inputs": []}', "duplicate key 'inputs'"),
        ("texts", '{"inputs": [{"name": "document", "data": ["a"], "data": ["b"]}]}', "duplicate key 'data'"),
        ("texts", '{"input": []}', 'unknown field "input"; the fields are id, inputs, outputs'),
        ("texts", '{"inputs": {}}', "inputs is empty; it must be a list"),
        ("texts", '{"inputs": [1]}', "inputs[0] is 1; it must be an object"),
        ("texts", {"inputs": [document("a", extra=1)]}, 'unknown field "extra" of inputs[0]'),
        ("texts", {"inputs": [document("a")], "id": 7}, "id is 7; it must be a string"),
        ("texts", {"inputs": [document("a")], "model_name": "b"}, 'model_name is "b"; it must be as in the path'),
        ("texts", {"inputs": [document("a")], "parameters": {"trunc": True}}, 'a name of parameters is "trunc"'),
        ("texts", {"inputs": [document("a")], "parameters": {"truncate": [1]}}, "parameters.truncate is [1]"),
        ("texts", {"inputs": [document("a")], "parameters": {"stop": [1]}}, "parameters.stop[0] is 1; it must be a st"),
        ("texts", {"inputs": [document("a")], "parameters": {"truncate": {}}}, "parameters.truncate is empty"),
        ("texts", {"inputs": [document("a")], "outputs": [{"name": "odds"}]}, 'output "odds" is unknown'),
        ("texts", {"inputs": [document("a"), document("a")]}, 'input "document" occurs twice'),
        ("texts", {"inputs": [document("a", shape=[2])]}, "inputs[0].data is 1; it must be 2, as the shape [2] says"),
        ("texts", {"inputs": [document("a", shape=[2, -1])]}, "sizes of at least 1"),
        ("texts", {"inputs": [document("a", shape=[1.5])]}, "inputs[0].shape[0] is 1.5"),
        ("texts", {"inputs": [document("a", shape="[1]")]}, 'inputs[0].shape is "[1]"; it must be a list'),
        ("texts", {"inputs": [document("a", datatype="TEXT")]}, 'the datatype of input "document" is "TEXT"'),
        ("texts", {"inputs": [document("a", data=[1])]}, "inputs[0].data[0] is 1; it must be a string"),
        ("texts", {"inputs": [document("a", data=[None])]}, "inputs[0].data[0] is null; it must be a string"),
        ("texts", {"inputs": [document("a", data="a")]}, "inputs[0].data is not an array"),
        ("texts", {"inputs": [document("a", data=[{"b64": "YQ=="}])]}, "an object within the data"),
        ("texts", {"inputs": [document("a", data=[["a"], "b"])]}, "inputs[0].data is ragged"),
        ("texts", {"inputs": [document("a", data=[["a", "b"], ["c"]])]}, "inputs[0].data is ragged"),
        ("texts", {"inputs": [{"name": "document", "shape": [1], "datatype": "BYTES"}]}, "neither data nor"),
        ("texts", {"inputs": [document("a", parameters={"binary_data_size": 1})]}, "Inference-Header-Content-Length"),
        ("texts", {"inputs": [document("a", parameters={"binary_data_size": 0})]}, "both data and binary_data_size"),
        ("texts", {"inputs": [document("a", parameters={"binary_data_size": -1})]}, "a whole number of bytes"),
        ("images", pixels("[1, 2, 256]"), "inputs[0].data[2] is 256; it must be a whole number from 0 to 255"),
        ("images", pixels("[1, 2, -1]"), "inputs[0].data[2] is -1; it must be a whole number from 0 to 255"),
        ("images", pixels("[1, 2, 3.5]"), "inputs[0].data[2] is 3.5; it must be a whole number from 0 to 255"),
        ("images", pixels("[1, 2, true]"), "inputs[0].data[2] is true; it must be a whole number"),
        ("images", pixels("[1, 2]"), "the number of elements of inputs[0].data is 2; it must be 3"),
        ("images", pixels("[[1, 2, 3]]"), "the nesting of inputs[0].data is [1, 3]; it must be [1, 1, 3]"),
        ("images", pixels("[0.5, 0.5, 1e39]", datatype="FP32"), "inputs[0].data[2] is 1e+39; it must be a number in"),
        ("images", pixels("[0.5, 0.5, 1e400]", datatype="FP32"), "a number that is out of range"),
        ("images", pixels("[0.5, 0.5, NaN]", datatype="FP32"), "not valid JSON at byte"),
        ("images", pixels("[[[[[[[[[1]]]]]]]]]"), "nested deeper than 8 arrays"),
        ("images", pixels("[1, 2, 3]", datatype="INT64"), 'the datatype of input "image" is "INT64"'),
        ("texts", '{"id":' + "[" * 100_000, "nested deeper than 16"),
        ("images", '{"inputs": [{"name": "image", "datatype": "UINT8", "data": ' + "[" * 100_000, "deeper than 8"),
        ("texts", '{"outputs": [' + "[]," * 20_000 + "[]]}", "more than 16384 strings, lists, objects and keys"),
        ("texts", '{"inputs": [{"shape": [' + "1," * 8 + "1]}]}", "shape has more than 8 numbers"),
        ("texts", '{"outputs": [' + "1," * 100_000 + "1]}", "more than 65536 elements"),
    ],
)
def test_bad_requests_get_a_sentence(server: Server, model: str, request_: Any, reason: str) -> None:
    status, found = error(infer(server, model, request_))
    assert status == 400
    assert reason in found


def test_binary_data_must_be_as_the_json_says(server: Server) -> None:
    def ask(body: bytes, length: str) -> tuple[int, str]:
        return error(infer(server, "texts", body, **{"Inference-Header-Content-Length": length}))

    tensor = {"name": "document", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}
    text = json.dumps({"inputs": [tensor]}).encode()
    raw = b"\x01\0\0\0a"
    status, header, _ = send(
        server,
        "POST",
        "/v2/models/texts/infer",
        text + raw,
        {"Inference-Header-Content-Length": str(len(text))},
    )
    assert (status, header["content-type"]) == (200, "application/json"), "no output was requested as binary data"
    assert ask(text + raw + b"b", str(len(text))) == (
        400,
        "the request has 1 bytes of binary data more than binary_data_size says",
    )
    assert "it must be at most 4" in ask(text + raw[:4], str(len(text)))[1]
    assert "the raw contents of input document" in ask(text + b"\x02\0\0\0a", str(len(text)))[1]
    for wrong in ("-1", "1e3", "", str(len(text) + 6), "99999999999999999999", "12, 12"):
        assert "Inference-Header-Content-Length is" in ask(text + raw, wrong)[1], wrong


def test_large_requests_are_taken_up_to_the_limit_of_a_message(server: Server) -> None:
    """A JSON list of a million numbers is read; one of which the numbers need more than the limit is not."""
    side = 590
    values = ",".join(["255"] * (side * side * 3))
    status, found = infer(server, "images", pixels(f"[{values}]", f"[{side}, {side}, 3]"))
    assert status == 200, found
    status, found = error(infer(server, "images", pixels(f"[{'0,' * 3_000_000}0]", "[3000001]", "FP32")))
    assert status == 413 and "8388608 bytes" in found
    status, found = error(infer(server, "images", pixels(f"[{'0,' * 5_000_000}0]", "[5000001]")))
    assert status == 413


def test_paths_and_methods_that_do_not_exist_are_refused(server: Server) -> None:
    for path in ("/v2/health", "/v2/models", "/v2/models/texts/explain", "/v2/models//ready", "/v2/models/%zz/ready"):
        status, _, content = send(server, "GET", path)
        assert error((status, json.loads(content)))[0] == 404, path
    for method, path, allowed in (
        ("GET", "/v2/models/texts/infer", "POST, OPTIONS"),
        ("POST", "/v2/models/texts", "GET, HEAD, OPTIONS"),
        ("PUT", "/v2/logging", "GET, POST, HEAD, OPTIONS"),
    ):
        status, header, content = send(server, method, path)
        assert (status, header["allow"]) == (405, allowed)
        assert f"{path} takes" in json.loads(content)["error"]
    assert send(server, "GET", "/v20/health/live")[0] == 404
    assert error(infer(server, "stranger", {"inputs": [document("a")]}))[0] == 404
    assert error(infer(server, "texts/versions/2", {"inputs": [document("a")]}))[0] == 404
    assert infer(server, "te%78ts/versions/1", {"inputs": [document("a")]})[0] == 200
    status, _, content = send(server, "POST", "/v2/repository/models/texts/load", "{}", JSON)
    assert error((status, json.loads(content)))[0] == 403, "without --model-control"


def test_pages_of_other_sites_cannot_call_without_the_servers_consent(server: Server) -> None:
    request = json.dumps({"inputs": [document("a")]})
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"origin": "https://other.example", "content-type": content_type}
        status, _, content = send(server, "POST", "/v2/models/texts/infer", request, headers)
        assert status == 403 and b"--http-cors-origin" in content
        del headers["origin"]
        assert send(server, "POST", "/v2/models/texts/infer", request, headers)[0] == 200


def test_a_form_is_refused_as_no_body_of_this_protocol(server: Server) -> None:
    headers = {"content-type": "multipart/form-data; boundary=x"}
    status, _, content = send(server, "POST", "/v2/models/texts/infer", "--x--", headers)
    assert status == 415 and '"multipart/form-data"; the Open Inference' in json.loads(content)["error"]


def test_calls_are_counted_logged_and_limited_like_those_by_grpc(server: Server) -> None:
    def counted(code: str) -> float:
        return server.metric("longshort_requests_total", rpc="ModelInfer", model="texts", code=code)

    before, wrong = counted("OK"), counted("INVALID_ARGUMENT")
    name = "rest-call-of-mine"
    status, header, _ = send(
        server,
        "POST",
        "/v2/models/texts/infer",
        json.dumps({"inputs": [document("a", "b")]}),
        {"x-request-id": name, "x-client-id": "reader"},
    )
    assert (status, header["x-request-id"]) == (200, name)
    assert infer(server, "texts", {"inputs": [document("x" * 3000)]})[0] == 400
    wait_until(lambda: counted("OK") == before + 1 and counted("INVALID_ARGUMENT") == wrong + 1)

    def lines() -> list[Any]:
        return [one for one in map(json.loads, server.log().splitlines()) if one.get("id") == name]

    wait_until(lambda: len(lines()) == 1)
    (line,) = lines()
    assert (line["rpc"], line["model"], line["code"], line["items"]) == ("ModelInfer", "texts", "OK", 2)
    late = {"inputs": [{**document("a"), "name": "prompt"}], "parameters": {"timeout": 1, "max_tokens": 1000}}
    status, found = error(infer(server, "tiny", late))
    assert status == 504, found


def test_a_client_that_closes_its_connection_cancels_its_call(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port)
    request = {"inputs": [{**document("a"), "name": "prompt"}], "parameters": {"max_tokens": 60_000}}
    connection.request("POST", "/v2/models/tiny/infer", json.dumps(request), JSON)
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 1)
    connection.close()
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 0)


def test_a_full_server_says_when_to_come_again(repository: Path, tmp_path: Path) -> None:
    request = {"inputs": [{**document("a"), "name": "prompt"}], "parameters": {"max_tokens": 60_000}}
    with Server(repository, tmp_path / "server", "--max-queued-requests=1", "--max-streams=1") as server:
        waiting = []
        for metric in ("longshort_streams_active", "longshort_queued_requests"):
            waiting.append(http.client.HTTPConnection("127.0.0.1", server.http_port))
            waiting[-1].request("POST", "/v2/models/tiny/infer", json.dumps(request), JSON)
            wait_until(lambda metric=metric: server.metric(metric, model="tiny") == 1)
        status, header, content = send(server, "POST", "/v2/models/tiny/infer", json.dumps(request), JSON)
        assert error((status, json.loads(content)))[0] == 429
        assert int(header["retry-after"]) >= 1
        for connection in waiting:
            connection.close()


def test_the_body_may_be_the_only_input(server: Server) -> None:
    """A raw binary request, as Triton's extension of binary data has it."""
    raw = {"Inference-Header-Content-Length": "0", "content-type": "application/octet-stream"}

    def ask(model: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        return send(server, "POST", f"/v2/models/{model}/infer", body, raw | headers)

    def outputs(model: str, body: bytes, **headers: str) -> tuple[dict[str, Any], bytes]:
        status, header, content = ask(model, body, **headers)
        assert (status, header["content-type"]) == (200, "application/octet-stream"), content
        length = int(header["inference-header-content-length"])
        return json.loads(content[:length]), content[length:]

    for text in ("a text", "1,2\n\0\u00e9"):
        found, binary = outputs("texts", text.encode())
        expected = infer(server, "texts", {"inputs": [document(text)]})[1]["outputs"]
        assert [one["name"] for one in found["outputs"]] == ["logits", "probabilities"]
        numbers = np.frombuffer(binary, np.float32)
        assert numbers.tolist() == pytest.approx(expected[0]["data"] + expected[1]["data"], rel=1e-6)
    image = png(some_pixels(1))
    assert len(outputs("images", image)[1]) > 0
    packed = {"Content-Encoding": "gzip"}
    assert outputs("texts", gzip.compress(b"a text"), **packed) == outputs("texts", b"a text")
    for model, body, reason in (
        ("pairs", b"a", "for models with one input, and model pairs has document, second_document"),
        ("tiny", b"a", "for models with one input, and model tiny has prompt, document"),
        ("images", b"no image", "image"),
        ("texts", b"", "not valid JSON"),
        ("none", b"a", "none"),
    ):
        status, _, content = ask(model, body)
        assert status in (400, 404) and reason in json.loads(content)["error"], content
