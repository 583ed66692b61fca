"""The Open Inference Protocol, by NVIDIA's tritonclient as it is: calls with one answer."""

from __future__ import annotations

import asyncio
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tritonclient.utils import InferenceServerException

from integration import model_directory, open_inference, tokens
from integration.images import png, raw, some_pixels
from integration.open_inference import SECONDS, prompt, strings, tensor, text_of
from integration.server_process import Server, wait_until


@pytest.fixture
def inference(api: SimpleNamespace, server: Server) -> Any:
    return api.inference_grpc.InferenceStub(server.channel)


def refusal(client: triton.InferenceServerClient, *arguments: Any, **options: Any) -> InferenceServerException:
    with pytest.raises(InferenceServerException) as refused:
        client.infer(*arguments, **options)
    return refused.value


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_requests_may_be_compressed(client: triton.InferenceServerClient, algorithm: str) -> None:
    image = tensor("image", np.zeros((4, 4, 3), np.uint8), "UINT8")
    plain = client.infer("images", [image]).as_numpy("logits")
    assert np.array_equal(client.infer("images", [image], compression_algorithm=algorithm).as_numpy("logits"), plain)
    answers: Queue[tuple[Any, Any]] = Queue()
    client.start_stream(lambda result, error: answers.put((result, error)), compression_algorithm=algorithm)
    client.async_stream_infer("images", [image])
    result, error = answers.get(timeout=SECONDS)
    client.stop_stream()
    assert error is None
    assert np.array_equal(result.as_numpy("logits"), plain)


def test_images_come_as_files_or_pixels_and_have_the_logits_of_longshort_v1(
    api: SimpleNamespace, inference: Any, client: triton.InferenceServerClient
) -> None:
    pixels = [some_pixels(seed) for seed in (1, 2)]
    request = api.inference.ClassifyImageRequest(
        model={"name": "images"}, images=[{"tensor": raw(image)} for image in pixels], all_logits=True
    )
    expected = np.array([result.classification.logits for result in inference.ClassifyImage(request).results])
    batch = np.stack(pixels)
    ways = {
        "files": strings("image", *(png(image) for image in pixels)),
        "bytes": tensor("image", batch, "UINT8"),
        "fractions": tensor("image", (batch / 255).astype(np.float32), "FP32"),
    }
    for way, images in ways.items():
        result = client.infer("images", [images])
        assert result.as_numpy("logits") == pytest.approx(expected, abs=1e-5), way
        odds = np.exp(expected)
        expected_probabilities = odds / odds.sum(axis=1, keepdims=True)
        assert result.as_numpy("probabilities") == pytest.approx(expected_probabilities, abs=1e-5), way
    one = client.infer("images", [tensor("image", pixels[0], "UINT8")])
    assert one.as_numpy("logits") == pytest.approx(expected[:1], abs=1e-5)


def test_classes_come_by_name(client: triton.InferenceServerClient) -> None:
    images = tensor("image", np.stack([some_pixels(1), some_pixels(2)]), "UINT8")
    asked = [triton.InferRequestedOutput("probabilities", class_count=3), triton.InferRequestedOutput("logits")]
    result = client.infer("images", [images], outputs=asked)
    classes = result.as_numpy("probabilities")
    logits = result.as_numpy("logits")
    assert classes.shape == (2, 3)
    for row, of_image in enumerate(classes):
        scores = [line.decode().split(":") for line in of_image]
        assert [int(index) for _, index, _ in scores] == list(np.argsort(-logits[row])[:3])
        assert sorted((float(score) for score, _, _ in scores), reverse=True) == [
            float(score) for score, _, _ in scores
        ]
    labels = {int(line.split(b":")[1]): line.split(b":")[2] for line in classes.ravel()}
    assert labels.items() <= {0: b"cat", 1: b"dog", 2: b"owl", 3: b"fox", 4: b"bee", 5: b"elk", 6: b"ant"}.items()


def test_documents_and_pairs_have_the_logits_of_longshort_v1(
    api: SimpleNamespace, inference: Any, client: triton.InferenceServerClient
) -> None:
    def logits(model: str, **documents: list[bytes]) -> list[list[float]]:
        texts = {name: [{"raw": text} for text in values] for name, values in documents.items()}
        request = api.inference.ScoreTextRequest(model={"name": model}, all_logits=True, **texts)
        return [list(one.classification.logits) for one in inference.ScoreText(request).classifications]

    first, second = [b"good", b"not so \xff"], [b"well", b"why"]
    alone = client.infer("texts", [strings("document", *first)])
    assert alone.as_numpy("logits") == pytest.approx(np.array(logits("texts", inputs=first)), abs=1e-5)
    pair = client.infer("pairs", [strings("second_document", *second), strings("document", *first)])
    expected = logits("pairs", inputs=first, second_inputs=second)
    assert pair.as_numpy("logits") == pytest.approx(np.array(expected), abs=1e-5)
    ids = np.frombuffer(first[0], np.uint8).astype(np.int32)[np.newaxis] + 1
    by_ids = client.infer("texts", [tensor("document", ids, "INT32")])
    assert by_ids.as_numpy("logits")[0] == pytest.approx(alone.as_numpy("logits")[0], abs=1e-5)


def test_a_prompt_goes_on_and_a_document_is_scored_as_by_longshort_v1(
    api: SimpleNamespace, inference: Any, client: triton.InferenceServerClient
) -> None:
    request = api.inference.GenerateRequest(
        model={"name": "tiny"},
        prompt={"text": "hello"},
        max_tokens=12,
        completions=2,
        sampling={"seed": 9, "top_k": 40},
    )
    expected = inference.Generate(request)
    sampling = {"max_tokens": 12, "completions": 2, "seed": 9, "top_k": 40}
    result = client.infer("tiny", [prompt(b"hello")], parameters=sampling, request_id="mine")
    assert [text.decode() for text in result.as_numpy("text")] == [one.text for one in expected.completions]
    assert list(result.as_numpy("finish_reason")) == [b"length", b"length"]
    response = result.get_response()
    assert response.id == "mine"
    assert (response.model_name, response.model_version) == ("tiny", "1")
    assert response.parameters["generated_tokens"].int64_param == 24
    assert response.parameters["seed"].string_param == "9"

    score = api.inference.ScoreTextRequest(model={"name": "tiny"}, inputs=[{"text": "hello"}, {"text": "you"}])
    likelihoods = [one.log_likelihood for one in inference.ScoreText(score).scores]
    scored = client.infer("tiny", [strings("document", b"hello", b"you")])
    assert scored.as_numpy("log_likelihood") == pytest.approx(np.array(likelihoods), abs=1e-5)
    assert list(scored.as_numpy("token_count")) == [5, 3]
    assert list(scored.as_numpy("scored_token_count")) == [4, 2]


def test_metadata_names_inputs_and_outputs_of_each_family(client: triton.InferenceServerClient) -> None:
    def tensors_of(model: str) -> tuple[list[tuple], list[tuple]]:
        metadata = client.get_model_metadata(model, as_json=False)
        return tuple(
            [(one.name, one.datatype, list(one.shape)) for one in tensors]
            for tensors in (metadata.inputs, metadata.outputs)
        )

    assert tensors_of("images") == (
        [("image", "BYTES", [-1, 1])],
        [("logits", "FP32", [-1, 7]), ("probabilities", "FP32", [-1, 7]), ("embedding", "FP32", [-1, 16])],
    )
    assert [name for name, _, _ in tensors_of("pairs")[0]] == ["document", "second_document"]
    assert tensors_of("pairs")[1][2] == ("embedding", "FP32", [-1, 2, 16])
    assert [name for name, _, _ in tensors_of("tiny")[0]] == ["prompt", "document"]
    assert [name for name, _, _ in tensors_of("tiny")[1]][:2] == ["text", "finish_reason"]
    config = client.get_model_config("images").config
    assert (config.max_batch_size, config.dynamic_batching.preferred_batch_size) == (64, [32])
    assert not config.model_transaction_policy.decoupled
    assert client.get_model_config("tiny").config.model_transaction_policy.decoupled
    server = client.get_server_metadata()
    assert server.name == "longshort"
    assert "model_repository" not in server.extensions


def test_wrong_requests_are_refused_with_name_value_and_limit(client: triton.InferenceServerClient) -> None:
    document = strings("document", b"a")
    for message, arguments, options in (
        ('input "image" is unknown; model texts takes document', ["texts", [strings("image", b"a")]], {}),
        (
            'output "softmax" is unknown; model texts has logits, probabilities',
            ["texts", [document]],
            {"outputs": [triton.InferRequestedOutput("softmax")]},
        ),
        ("parameters.temperature is -1; it must be in [0, 100]", ["tiny", [prompt(b"a")]], {"temperature": -1.0}),
        ('a name of parameters is "max_token"', ["tiny", [prompt(b"a")]], {"max_token": 4}),
        (
            'number of elements of input "document" is 2049; it must be in [1, 2048]',
            ["texts", [strings("document", *[b"a"] * 2049)]],
            {},
        ),
        ("parameters.sequence_id is set; models do not take sequences", ["texts", [document]], {"sequence_id": 3}),
        (
            "image[0]: ",
            ["images", [tensor("image", np.full((1, 4, 4, 3), 2, np.float32), "FP32")]],
            {},
        ),
    ):
        names = {"outputs", "sequence_id"}
        sampling = {name: value for name, value in options.items() if name not in names}
        others = {name: value for name, value in options.items() if name in names}
        refused = refusal(client, *arguments, parameters=sampling or None, **others)
        assert refused.status() == "StatusCode.INVALID_ARGUMENT", refused
        assert message in refused.message(), refused
    assert refusal(client, "stranger", [document]).status() == "StatusCode.NOT_FOUND"
    assert refusal(client, "texts", [document], model_version="7").status() == "StatusCode.NOT_FOUND"
    shared = triton.InferInput("document", [1], "BYTES")
    shared.set_shared_memory("region", 8)
    assert "shared memory is not supported" in refusal(client, "texts", [shared]).message()
    with pytest.raises(InferenceServerException) as unimplemented:
        client.register_system_shared_memory("region", "/key", 8)
    assert unimplemented.value.status() == "StatusCode.UNIMPLEMENTED"


def test_an_input_without_a_name_is_no_raw_binary_request(server: Server) -> None:
    request = triton.service_pb2.ModelInferRequest(model_name="texts", inputs=[{}], raw_input_contents=[b"a text"])
    with pytest.raises(grpc.RpcError) as refused:
        server.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(request.SerializeToString())
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_request_ends_when_its_timeout_has_passed(server: Server, client: triton.InferenceServerClient) -> None:
    late = refusal(client, "tiny", [prompt(b"a")], timeout=20_000, parameters={"max_tokens": 60_000})
    assert late.status() == "StatusCode.DEADLINE_EXCEEDED", late
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 0)


def test_a_cancelled_call_stops_its_work(server: Server, client: triton.InferenceServerClient) -> None:
    ended = threading.Event()
    errors: list[Any] = []

    def hear(result: Any, error: Any) -> None:
        errors.append(error)
        ended.set()

    call = client.async_infer("tiny", [prompt(b"a")], hear, parameters={"max_tokens": 60_000})
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 1)
    call.cancel()
    assert ended.wait(SECONDS)
    assert errors[0].status() == "StatusCode.CANCELLED"
    wait_until(lambda: server.metric("longshort_requests_total", rpc="ModelInfer", code="CANCELLED") >= 1)
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 0)


def test_asyncio_infers_streams_and_cancels(server: Server) -> None:
    async def infer() -> None:
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
            assert await client.is_server_ready()
            inputs = [strings("document", b"good")]
            results = await asyncio.gather(*(client.infer("texts", inputs) for _ in range(20)))
            assert all(result.as_numpy("logits").shape == (1, 3) for result in results)

            async def requests() -> Any:
                yield {"model_name": "tiny", "inputs": [prompt(b"hi")], "parameters": {"max_tokens": 5}}

            pieces = []
            async for result, error in client.stream_infer(requests()):
                assert error is None
                pieces.append(result)
            assert text_of(pieces[-1], "finish_reason") == "length"

            call = asyncio.ensure_future(client.infer("tiny", [prompt(b"a")], parameters={"max_tokens": 60_000}))
            while server.metric("longshort_streams_active", model="tiny") == 0:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises((asyncio.CancelledError, InferenceServerException)):
                await call

    asyncio.run(asyncio.wait_for(infer(), SECONDS))
    wait_until(lambda: server.metric("longshort_streams_active", model="tiny") == 0)


def test_many_calls_of_all_families_at_once_have_their_own_answers(server: Server) -> None:
    def ask(client: triton.InferenceServerClient, which: int) -> Any:
        family, item = divmod(which, 3)
        if family == 0:
            return client.infer("images", [tensor("image", some_pixels(item), "UINT8")]).as_numpy("logits")
        if family == 1:
            return client.infer("texts", [strings("document", b"t%d" % item)]).as_numpy("logits")
        sampling = {"max_tokens": 6, "temperature": 0.0}
        return client.infer("tiny", [prompt(b"p%d" % item)], parameters=sampling).as_numpy("text")

    def ask_all(number: int) -> list[Any]:
        with open_inference.client_of(server) as client:
            return [ask(client, (number + turn) % 9) for turn in range(27)]

    with ThreadPoolExecutor(6) as pool:
        alone = ask_all(0)[:9]
        for number, answers in enumerate(pool.map(ask_all, range(6))):
            for turn, answer in enumerate(answers):
                expected = alone[(number + turn) % 9]
                if answer.dtype == object:
                    assert list(answer) == list(expected)
                else:
                    assert answer == pytest.approx(expected, abs=1e-5)


def test_statistics_are_those_of_the_requests(client: triton.InferenceServerClient) -> None:
    def read() -> Any:
        (statistics,) = client.get_inference_statistics("pairs").model_stats
        return statistics

    before = read()
    inputs = [strings("document", b"a", b"b"), strings("second_document", b"c", b"d")]
    for _ in range(5):
        client.infer("pairs", inputs)
    refusal(client, "pairs", [strings("document", b"x" * 1000), strings("second_document", b"c")])
    after = read()
    assert after.inference_count - before.inference_count == 10
    assert after.inference_stats.success.count - before.inference_stats.success.count == 5
    assert after.inference_stats.fail.count - before.inference_stats.fail.count == 1
    assert 5 <= after.execution_count - before.execution_count <= 10
    parts = [
        getattr(after.inference_stats, part) for part in ("queue", "compute_input", "compute_infer", "compute_output")
    ]
    assert sum(part.ns for part in parts) == after.inference_stats.success.ns
    assert {part.count for part in parts} == {after.inference_stats.success.count}
    batched = sum(one.batch_size * one.compute_infer.count for one in after.batch_stats)
    assert batched == after.inference_count
    assert sum(one.compute_infer.count for one in after.batch_stats) == after.execution_count


def test_reflection_lists_and_describes_the_service(server: Server) -> None:
    database = ProtoReflectionDescriptorDatabase(server.channel)
    assert "inference.GRPCInferenceService" in database.get_services()
    file = database.FindFileContainingSymbol("inference.GRPCInferenceService")
    assert "ModelStreamInfer" in [method.name for method in file.service[0].method]


def test_tokens_need_the_same_scopes_as_by_longshort_v1(repository: Path, tmp_path: Path) -> None:
    lines = [
        tokens.line("caller", "call", "scopes=infer models=texts"),
        tokens.line("urgent", "now", "scopes=infer priority=high"),
        tokens.line("keeper", "keep", "scopes=manage"),
    ]
    secret = tokens.write(tmp_path / "tokens", *lines)
    with (
        Server(repository, tmp_path / "server", f"--token-file={secret}", "--model-control") as server,
        open_inference.client_of(server) as client,
    ):
        caller = {"authorization": "Bearer call"}
        keeper = {"authorization": "Bearer keep"}
        document = [strings("document", b"a")]
        assert client.is_server_ready()
        assert refusal(client, "texts", document).status() == "StatusCode.UNAUTHENTICATED"
        assert client.infer("texts", document, headers=caller).as_numpy("logits").shape == (1, 3)
        client.infer("texts", document, headers={"authorization": "Bearer now"}, priority=1)
        denied = refusal(client, "texts", document, headers=caller, priority=1)
        assert denied.status() == "StatusCode.PERMISSION_DENIED" and "priority=high" in denied.message()
        for model, headers in (("images", caller), ("texts", keeper)):
            assert refusal(client, model, document, headers=headers).status() == "StatusCode.PERMISSION_DENIED"
        assert [model.name for model in client.get_model_repository_index(caller).models] == ["texts"]
        assert [one.name for one in client.get_inference_statistics(headers=caller).model_stats] == ["texts"]
        with pytest.raises(InferenceServerException, match="manage"):
            client.unload_model("texts", headers=caller)
        client.unload_model("texts", headers=keeper)
        with pytest.raises(InferenceServerException, match="there is no model texts"):
            client.infer("texts", document, headers=caller)


def test_models_are_loaded_and_unloaded(own_repository: Path, tmp_path: Path) -> None:
    with (
        Server(own_repository, tmp_path / "server", "--model-control") as server,
        open_inference.client_of(server) as client,
    ):
        assert "model_repository" in client.get_server_metadata().extensions
        client.unload_model("texts")
        assert not client.is_model_ready("texts")
        states = {(one.name, one.state) for one in client.get_model_repository_index().models}
        assert ("texts", "UNAVAILABLE") in states and ("images", "READY") in states
        client.load_model("texts")
        assert client.is_model_ready("texts", "1")
        assert client.infer("texts", [strings("document", b"a")]).as_numpy("logits").shape == (1, 3)
        new = model_directory.write(tmp_path / "other", seed=7)
        shutil.copy(new / "model.safetensors", own_repository / "tiny/1/model.safetensors")
        client.load_model("tiny")
        wait_until(lambda: "model reloaded model=tiny version=1" in server.log())
        with pytest.raises(InferenceServerException) as unknown:
            client.load_model("stranger")
        assert unknown.value.status() == "StatusCode.NOT_FOUND"
        with pytest.raises(InferenceServerException, match=r"parameters\.config is set"):
            client.load_model("texts", config="{}")


def test_reasons_do_not_show_where_the_repository_is(own_repository: Path, tmp_path: Path) -> None:
    with (
        Server(own_repository, tmp_path / "server", "--model-control") as server,
        open_inference.client_of(server) as client,
    ):
        (own_repository / "texts/2").mkdir()
        with pytest.raises(InferenceServerException) as failed:
            client.load_model("texts")
        (reason,) = (one.reason for one in client.get_model_repository_index().models if one.version == "2")
        for text in (str(failed.value), reason):
            assert " texts/2/config.json: " in text and str(tmp_path) not in text
        wait_until(lambda: f"{own_repository}/texts/2/config.json: " in server.log())


def test_a_refused_call_may_be_tried_again(repository: Path, tmp_path: Path) -> None:
    """By the details and metadata that a call of longshort.v1 has."""
    with (
        Server(repository, tmp_path / "server", "--max-queued-requests=1", "--max-streams=1") as server,
        open_inference.client_of(server) as client,
    ):
        calls = []
        for metric in ("longshort_streams_active", "longshort_queued_requests"):
            parameters = {"max_tokens": 60_000}
            calls.append(client.async_infer("tiny", [prompt(b"a")], lambda result, error: None, parameters=parameters))
            wait_until(lambda metric=metric: server.metric(metric, model="tiny") == 1)
        with pytest.raises(grpc.RpcError) as refused:
            server.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(
                triton._utils._get_inference_request(
                    "tiny", [prompt(b"a")], "", "", None, 0, False, False, 0, None, None
                ).SerializeToString()
            )
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert tokens.retry_delay(refused.value) > 0
        assert "grpc-retry-pushback-ms" in dict(refused.value.trailing_metadata())
        assert refused.value.initial_metadata() in (None, ())
        for call in calls:
            call.cancel()
