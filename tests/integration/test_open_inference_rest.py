"""The Open Inference Protocol by REST, by NVIDIA's tritonclient as it is, and by hand."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

from integration import open_inference, tokens
from integration.images import png, some_pixels
from integration.server_process import Server, wait_until

SECONDS = 60
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = tmp_path_factory.mktemp("open_inference")
    open_inference.write_models(repository)
    with Server(repository, tmp_path_factory.mktemp("server"), "--log-format=json") as running:
        yield running


def client_of(server: Server) -> triton.InferenceServerClient:
    return triton.InferenceServerClient(f"127.0.0.1:{server.http_port}", network_timeout=SECONDS)


@pytest.fixture
def client(server: Server) -> Iterator[triton.InferenceServerClient]:
    with client_of(server) as made:
        yield made


def send(
    server: Server, method: str, path: str, body: bytes | str = b"", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, header and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=SECONDS)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    content = answer.read()
    connection.close()
    return answer.status, found, content


def infer(server: Server, model: str, request: Any, **headers: str) -> tuple[int, Any]:
    """Status and JSON of an inference by JSON."""
    text = request if isinstance(request, str | bytes) else json.dumps(request)
    status, _, content = send(server, "POST", f"/v2/models/{model}/infer", text, {**JSON, **headers})
    return status, json.loads(content)


def error(answer: tuple[int, Any]) -> tuple[int, str]:
    status, content = answer
    assert set(content) == {"error"}
    return status, content["error"]


def document(*texts: str, **more: Any) -> dict[str, Any]:
    return {"name": "document", "shape": [len(texts)], "datatype": "BYTES", "data": list(texts), **more}


def inputs_of(kind: Any, tensors: dict[str, tuple[Any, str]], **options: Any) -> list[Any]:
    """Inputs of tritonclient.grpc or tritonclient.http."""
    made = [kind.InferInput(name, list(values.shape), datatype) for name, (values, datatype) in tensors.items()]
    for one, (values, _) in zip(made, tensors.values(), strict=True):
        one.set_data_from_numpy(values, **options)
    return made


def texts(*values: bytes) -> tuple[Any, str]:
    return np.array(values, dtype=object).reshape(-1, 1), "BYTES"


PIXELS = np.stack([some_pixels(1), some_pixels(2)])
GREEDY = {"max_tokens": 6, "temperature": 0.0, "seed": 1, "stop": "\n"}
REQUESTS: dict[str, tuple[str, dict[str, tuple[Any, str]], dict[str, Any]]] = {
    "texts": ("texts", {"document": texts(b"good", "sch\u00f6n \U0001f33b".encode())}, {"truncate": True}),
    "pairs": ("pairs", {"document": texts(b"a", b"b"), "second_document": texts(b"c", b"d")}, {}),
    "bytes": ("images", {"image": (PIXELS, "UINT8")}, {}),
    "fractions": ("images", {"image": ((PIXELS / 255).astype(np.float32), "FP32")}, {}),
    "prompt": ("tiny", {"prompt": (np.array([b"hello"], dtype=object), "BYTES")}, GREEDY),
    "scores": ("tiny", {"document": texts(b"hello", b"you")}, {}),
}
OUTPUTS = {"prompt": ["text", "finish_reason"], "scores": ["log_likelihood", "token_count", "scored_token_count"]}


@pytest.mark.parametrize("name", REQUESTS)
def test_answers_are_those_of_grpc_in_every_form(
    server: Server, client: triton.InferenceServerClient, name: str
) -> None:
    model, tensors, parameters = REQUESTS[name]
    outputs = OUTPUTS.get(name, ["logits", "probabilities"])
    with open_inference.client_of(server) as other:
        expected = other.infer(model, inputs_of(open_inference.triton, tensors), parameters=parameters)
    for binary_data in (True, False):
        for asked in (None, [True] * 3, [False] * 3, [True, False, True]):
            wanted = asked and [
                triton.InferRequestedOutput(output, binary_data=binary)
                for output, binary in zip(outputs, asked, strict=False)
            ]
            found = client.infer(
                model,
                inputs_of(triton, tensors, binary_data=binary_data),
                outputs=wanted,
                request_id="mine",
                parameters=parameters,
            )
            response = found.get_response()
            assert (response["id"], response["model_name"], response["model_version"]) == ("mine", model, "1")
            assert [one["name"] for one in response["outputs"]] == outputs
            for output, binary in zip(response["outputs"], asked or [True] * 3, strict=False):
                assert ("data" in output) != binary
                values, of_grpc = (result.as_numpy(output["name"]) for result in (found, expected))
                assert (values.shape, of_grpc.dtype) == (of_grpc.shape, values.dtype if binary else of_grpc.dtype)
                if of_grpc.dtype == object:
                    decoded = [text if isinstance(text, str) else text.decode() for text in values.ravel()]
                    assert decoded == [text.decode() for text in of_grpc.ravel()]
                else:
                    assert values == pytest.approx(of_grpc, abs=1e-5)
            if name == "prompt":
                of_grpc = expected.get_response().parameters
                assert response["parameters"]["seed"] == of_grpc["seed"].string_param
                assert response["parameters"]["generated_tokens"] == of_grpc["generated_tokens"].int64_param


def test_files_of_images_come_as_binary_data_and_classes_by_name(client: triton.InferenceServerClient) -> None:
    files = {"image": (np.array([png(one) for one in PIXELS], dtype=object), "BYTES")}
    pixels = client.infer("images", inputs_of(triton, {"image": (PIXELS, "UINT8")})).as_numpy("logits")
    asked = [triton.InferRequestedOutput("logits"), triton.InferRequestedOutput("probabilities", False, class_count=2)]
    found = client.infer("images", inputs_of(triton, files), outputs=asked)
    assert found.as_numpy("logits") == pytest.approx(pixels, abs=1e-5)
    classes = found.as_numpy("probabilities")
    assert classes.shape == (2, 2)
    assert [int(line.split(":")[1]) for line in classes[:, 0]] == list(np.argmax(pixels, axis=1))


def test_inputs_may_mix_both_forms(client: triton.InferenceServerClient) -> None:
    model, tensors, _ = REQUESTS["pairs"]
    expected = client.infer(model, inputs_of(triton, tensors)).as_numpy("logits")
    for first in (True, False):
        mixed = [
            inputs_of(triton, {name: tensor}, binary_data=(name == "document") == first)[0]
            for name, tensor in tensors.items()
        ]
        assert client.infer(model, mixed).as_numpy("logits") == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_requests_and_answers_may_be_compressed(
    server: Server, client: triton.InferenceServerClient, coding: str
) -> None:
    text = texts(*[b"x" * 60] * 60)
    expected = client.infer("texts", inputs_of(triton, {"document": text})).as_numpy("logits")
    for binary_data in (True, False):
        found = client.infer(
            "texts",
            inputs_of(triton, {"document": text}, binary_data=binary_data),
            outputs=[triton.InferRequestedOutput("logits", binary_data)],
            request_compression_algorithm=coding,
            response_compression_algorithm=coding,
        )
        assert found.as_numpy("logits") == pytest.approx(expected, abs=1e-5)
    # The answer is compressed where that pays.
    request = json.dumps({"inputs": [document(*["x" * 60] * 60)]}).encode()
    status, header, content = send(
        server, "POST", "/v2/models/texts/infer", request, {**JSON, "accept-encoding": "gzip"}
    )
    assert (status, header["content-encoding"]) == (200, "gzip")
    assert json.loads(gzip.decompress(content))["outputs"][0]["shape"] == [60, 3]


def test_what_does_not_unpack_or_unpacks_to_too_much_is_refused(server: Server) -> None:
    packed = {"gzip": gzip.compress, "deflate": zlib.compress}
    for coding, pack in packed.items():
        bomb = pack(b" " * (9 << 20))
        assert error(infer(server, "texts", bomb, **{"content-encoding": coding}))[0] == 413
        assert error(infer(server, "texts", bomb[:100], **{"content-encoding": coding}))[0] == 400
    assert error(infer(server, "texts", b"{}", **{"content-encoding": "br"}))[0] == 415


def test_the_asynchronous_client_works(server: Server) -> None:
    async def ask() -> list[Any]:
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
            assert await client.is_server_live() and await client.is_server_ready()
            assert await client.is_model_ready("texts", "1") and not await client.is_model_ready("stranger")
            assert (await client.get_model_metadata("texts"))["versions"] == ["1"]
            assert len(await client.get_model_repository_index()) == 4
            calls = [
                client.infer(
                    model,
                    inputs_of(triton, tensors, binary_data=number % 2 == 0),
                    parameters=parameters,
                    request_compression_algorithm=[None, "gzip", "deflate"][number % 3],
                    response_compression_algorithm=[None, "gzip", "deflate"][number % 3],
                )
                for number in range(4)
                for model, tensors, parameters in REQUESTS.values()
            ]
            return [result.get_response()["model_name"] for result in await asyncio.gather(*calls)]

    found = asyncio.run(asyncio.wait_for(ask(), SECONDS))
    assert found == [model for model, _, _ in REQUESTS.values()] * 4


def plain(message: Any) -> Any:
    """A message's JSON with 64-bit integers as numbers and without what is empty."""
    if isinstance(message, dict):
        fields = {name: plain(value) for name, value in message.items()}
        return {name: value for name, value in fields.items() if value not in (0, "", False, [], {})}
    if isinstance(message, list):
        return [plain(value) for value in message]
    return int(message) if isinstance(message, str) and message.lstrip("-").isdigit() else message


def test_descriptions_are_those_of_grpc(server: Server, client: triton.InferenceServerClient) -> None:
    client.infer("texts", inputs_of(triton, {"document": texts(b"a")}))
    with open_inference.client_of(server) as other:
        assert plain(client.get_server_metadata()) == plain(other.get_server_metadata(as_json=True))
        for model in ("tiny", "texts", "pairs", "images"):
            for version in ("", "1"):
                metadata = client.get_model_metadata(model, version)
                assert plain(metadata) == plain(other.get_model_metadata(model, version, as_json=True))
                config = client.get_model_config(model, version)
                assert plain(config) == plain(other.get_model_config(model, version, as_json=True)["config"])
                statistics = client.get_inference_statistics(model, version)
                of_grpc = other.get_inference_statistics(model, version, as_json=True)
                for one in (*statistics["model_stats"], *of_grpc["model_stats"]):
                    assert one["inference_stats"]["success"].keys() <= {"count", "ns"}
                assert plain(statistics) == plain(of_grpc)
        index = {"models": client.get_model_repository_index()}
        assert plain(index) == plain(other.get_model_repository_index(as_json=True))
    assert isinstance(client.get_model_config("texts")["input"][0]["dims"][0], int)
    every = client.get_inference_statistics()["model_stats"]
    assert [one["name"] for one in every] == ["images", "pairs", "texts", "tiny"]


def test_health_and_readiness_have_bodies_and_statuses(server: Server) -> None:
    def get(path: str, method: str = "GET") -> tuple[int, bytes]:
        status, header, content = send(server, method, path)
        assert header["content-type"] == "application/json"
        return status, content

    assert get("/v2/health/live") == (200, b'{"live":true}')
    assert get("/v2/health/ready") == (200, b'{"ready":true}')
    assert get("/v2/health/ready", "HEAD") == (200, b"")
    assert get("/v2/models/texts/ready") == (200, b'{"name":"texts","ready":true}')
    assert get("/v2/models/texts/versions/1/ready")[0] == 200
    assert get("/v2/models/texts/versions/2/ready") == (404, b'{"name":"texts","ready":false}')
    assert get("/v2/models/stranger/ready") == (404, b'{"name":"stranger","ready":false}')
    assert get("/v2/models/texts/versions/latest/ready")[0] == 400
    assert json.loads(get("/v2/")[1])["name"] == "longshort"


def test_settings_and_shared_memory_are_those_of_grpc(client: triton.InferenceServerClient) -> None:
    assert client.get_system_shared_memory_status() == client.get_cuda_shared_memory_status() == []
    assert client.get_system_shared_memory_status("mine") == []
    calls: list[Callable[[], Any]] = [
        client.get_log_settings,
        client.get_trace_settings,
        lambda: client.get_trace_settings("texts"),
        lambda: client.update_log_settings({"log_verbose_level": 1}),
        lambda: client.update_trace_settings("texts", {"trace_rate": "1"}),
        lambda: client.register_system_shared_memory("mine", "/mine", 64),
        client.unregister_system_shared_memory,
        lambda: client.register_cuda_shared_memory("mine", b"handle", 0, 64),
        lambda: client.unregister_cuda_shared_memory("mine"),
    ]
    for call in calls:
        with pytest.raises(InferenceServerException) as refused:
            call()
        assert refused.value.status() == "501"
    shared = triton.InferInput("document", [1], "BYTES")
    shared.set_shared_memory("mine", 64)
    with pytest.raises(InferenceServerException, match="shared memory is not supported"):
        client.infer("texts", [shared])


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
        ("texts", "[]", "not a JSON object"),
        ("texts", "{}", "the input document is missing"),
        ("texts", '{"inputs": []} {}', "not valid JSON at byte"),
        ("texts", '{"inputs": [], "\\ud800": 1}', "not valid JSON at byte"),
        ("texts", b'{"inputs": [], "id": "\xff"}', "not valid JSON at byte"),
        ("texts", b'{"inputs": []}\0', "not valid JSON at byte 15"),
        ("texts", '{"inputs": [], "inputs": []}', 'has the key "inputs" twice'),
        ("texts", '{"inputs": [{"name": "document", "data": ["a"], "data": ["b"]}]}', 'has the key "data" twice'),
        ("texts", '{"input": []}', 'a field of the request is "input"; it must be one of id, inputs, outputs'),
        ("texts", '{"inputs": {}}', "inputs is object; it must be an array"),
        ("texts", '{"inputs": [1]}', "inputs[0] is 1; it must be an object"),
        ("texts", {"inputs": [document("a", extra=1)]}, 'a field of inputs[0] is "extra"'),
        ("texts", {"inputs": [document("a")], "id": 7}, "the request.id is 7; it must be a string"),
        ("texts", {"inputs": [document("a")], "model_name": "b"}, 'model_name is "b"; it must be as in the path'),
        ("texts", {"inputs": [document("a")], "parameters": {"trunc": True}}, 'a name of parameters is "trunc"'),
        ("texts", {"inputs": [document("a")], "parameters": {"truncate": {}}}, "parameters.truncate is object"),
        ("texts", {"inputs": [document("a")], "outputs": [{"name": "odds"}]}, 'output "odds" is unknown'),
        ("texts", {"inputs": [document("a"), document("a")]}, 'input "document" occurs twice'),
        ("texts", {"inputs": [document("a", shape=[2])]}, "inputs[0].data is 1; it must be 2, as the shape [2] says"),
        ("texts", {"inputs": [document("a", shape=[2, -1])]}, "sizes of at least 1"),
        ("texts", {"inputs": [document("a", shape=[1.5])]}, "a size in inputs[0].shape is 1.5"),
        ("texts", {"inputs": [document("a", shape="[1]")]}, 'inputs[0].shape is "[1]"; it must be an array'),
        ("texts", {"inputs": [document("a", datatype="TEXT")]}, 'the datatype of input "document" is "TEXT"'),
        ("texts", {"inputs": [document("a", data=[1])]}, "inputs[0].data[0] is 1; it must be a string"),
        ("texts", {"inputs": [document("a", data=[None])]}, "inputs[0].data[0] is null; it must be a string"),
        ("texts", {"inputs": [document("a", data="a")]}, "inputs[0].data that is not an array"),
        ("texts", {"inputs": [document("a", data=[{"b64": "YQ=="}])]}, "an object within the data"),
        ("texts", {"inputs": [document("a", data=[["a"], "b"])]}, "inputs[0].data is ragged"),
        ("texts", {"inputs": [document("a", data=[["a", "b"], ["c"]])]}, "inputs[0].data is ragged"),
        ("texts", {"inputs": [{"name": "document", "shape": [1], "datatype": "BYTES"}]}, "neither data nor"),
        ("texts", {"inputs": [document("a", parameters={"binary_data_size": 1})]}, "Inference-Header-Content-Length"),
        ("texts", {"inputs": [document("a", parameters={"binary_data_size": 0})]}, "both data and binary_data_size"),
        ("texts", {"inputs": [document("a", parameters={"binary_data_size": -1})]}, "a whole number of bytes"),
        ("images", pixels("[1, 2, 256]"), "inputs[0].data[2] is 256; it must be a whole number from 0 to 255"),
        ("images", pixels("[1, 2, -1]"), "inputs[0].data[2] is -1; it must be a whole number from 0 to 255"),
        ("images", pixels("[1, 2, 3.0]"), "inputs[0].data[2] is 3; it must be a whole number from 0 to 255"),
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
        ("texts", '{"outputs": [' + "1," * 100_000 + "1]}", "more than 65536 elements beside the data"),
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
    for wrong in ("-1", "0", "1e3", "", str(len(text) + 6), "99999999999999999999", "12, 12"):
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
        ("GET", "/v2/models/texts/infer", "POST"),
        ("POST", "/v2/models/texts", "GET"),
        ("PUT", "/v2/logging", "GET, POST"),
    ):
        status, header, content = send(server, method, path)
        assert (status, header["allow"]) == (405, allowed)
        assert "this path takes" in json.loads(content)["error"]
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
        assert status == 415 and "content type" in json.loads(content)["error"]
        del headers["origin"]
        assert send(server, "POST", "/v2/models/texts/infer", request, headers)[0] == 200


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


def test_models_are_loaded_and_unloaded_with_the_scopes_of_tokens(tmp_path: Path) -> None:
    repository = tmp_path / "models"
    open_inference.write_models(repository)
    lines = [
        tokens.line("caller", "call", "scopes=infer models=texts"),
        tokens.line("keeper", "keep", "scopes=manage,infer"),
    ]
    secret = tokens.write(tmp_path / "tokens", *lines)
    with (
        Server(repository, tmp_path / "server", f"--token-file={secret}", "--model-control") as server,
        client_of(server) as client,
    ):
        caller, keeper = ({"authorization": f"Bearer {token}"} for token in ("call", "keep"))
        one = inputs_of(triton, {"document": texts(b"a")})

        def refusal(call: Callable[[], Any]) -> str:
            with pytest.raises(InferenceServerException) as refused:
                call()
            return refused.value.status()

        assert client.is_server_ready() and client.is_server_live()
        assert refusal(lambda: client.infer("texts", one)) == "401"
        assert refusal(lambda: client.infer("images", one, headers=caller)) == "403"
        assert client.infer("texts", one, headers=caller).as_numpy("logits").shape == (1, 3)
        assert [model["name"] for model in client.get_model_repository_index(caller)] == ["texts"]
        assert refusal(lambda: client.unload_model("texts", headers=caller)) == "403"
        client.unload_model("texts", headers=keeper)
        assert not client.is_model_ready("texts", headers=keeper)
        states = {model["name"]: model["state"] for model in client.get_model_repository_index(keeper)}
        assert (states["texts"], states["images"]) == ("UNAVAILABLE", "READY")
        status, _, content = send(server, "POST", "/v2/repository/index", '{"ready": true}', {**JSON, **keeper})
        assert status == 200 and "texts" not in [model["name"] for model in json.loads(content)]
        assert refusal(lambda: client.load_model("texts", headers=keeper, config="{}")) == "400"
        client.load_model("texts", headers=keeper)
        assert client.is_model_ready("texts", "1", headers=keeper)
        assert refusal(lambda: client.load_model("stranger", headers=keeper)) == "404"
        status, header, content = send(server, "POST", "/v2/repository/models/texts/load", b"", keeper)
        assert (status, content) == (200, b'{"name":"texts","load":true}')
        assert header["longshort-load-outcome"] == "unchanged"


def test_a_full_server_says_when_to_come_again(tmp_path: Path) -> None:
    repository = tmp_path / "models"
    open_inference.write_models(repository)
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
