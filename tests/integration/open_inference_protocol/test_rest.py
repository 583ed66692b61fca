"""The Open Inference Protocol by REST, by NVIDIA's tritonclient as it is."""

from __future__ import annotations

import asyncio
import gzip
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
from integration.rest_calls import JSON, SECONDS, document, error, infer, send
from integration.server_process import Server


def client_of(server: Server) -> triton.InferenceServerClient:
    return triton.InferenceServerClient(f"127.0.0.1:{server.http_port}", network_timeout=SECONDS)


@pytest.fixture
def client(server: Server) -> Iterator[triton.InferenceServerClient]:
    with client_of(server) as made:
        yield made


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


def test_models_are_loaded_and_unloaded_with_the_scopes_of_tokens(repository: Path, tmp_path: Path) -> None:
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
