"""Embed of the real server, in every family and protocol."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import longshort
import numpy as np
import openai
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http
from numpy.typing import NDArray
from reference import safetensors_file

from integration import classifier_directory, expect, model_directory
from integration.classifier_directory import MAX_TOKENS, WIDTH
from integration.http_calls import get, post
from integration.images import png, some_pixels
from integration.server_process import BINARY, Server

INVALID = grpc.StatusCode.INVALID_ARGUMENT
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
TOLERANCE = 2e-5
TEXTS = ["x", "a longer document", "the longest of the three documents"]
# The last linear maps of the heads.
HEADS = {
    "texts": ("seq_classifer.mlpblock.0", "seq_classifer.mlpblock.2"),
    "pixels": ("seq_classifer.mlpblock.0", "seq_classifer.mlpblock.2"),
    "vil": ("head",),
    "cvt": ("head",),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A server of a language model and of every kind of classifier."""
    repository = tmp_path_factory.mktemp("embeddings")
    model_directory.write(repository)
    classifier_directory.write_text(repository, "texts", documents=1)
    classifier_directory.write_text(repository, "pairs", documents=2)
    classifier_directory.write_images(repository, "vil")
    classifier_directory.write_cvt(repository, "cvt", 24, 24, 24)
    classifier_directory.write_pixel_sequences(repository, "pixels")
    with Server(repository, tmp_path_factory.mktemp("server"), "--max-batch-size=8") as server:
        yield SimpleNamespace(server=server, repository=repository)


@pytest.fixture
def stub(api: SimpleNamespace, served: SimpleNamespace) -> Any:
    return api.inference_grpc.InferenceStub(served.server.channel)


def embed(api: SimpleNamespace, stub: Any, model: str, *items: Any, **fields: Any) -> Any:
    """Texts as str, images as pixels."""
    texts = [{"text": item} for item in items if isinstance(item, str)]
    images = [{"encoded": png(item)} for item in items if not isinstance(item, str)]
    request = api.inference.EmbedRequest(model={"name": model}, inputs=texts, images=images, **fields)
    return stub.Embed(request, timeout=60)


def vectors(answer: Any) -> NDArray[np.float64]:
    assert all(result.HasField("embedding") for result in answer.results), answer
    return np.array([result.embedding.values for result in answer.results])


def head_of(served: SimpleNamespace, model: str, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logits that the model's head makes of them."""
    tensors = safetensors_file.read(served.repository / model / "1/model.safetensors")
    for layer in HEADS[model]:
        features = features @ tensors[f"{layer}.weight"].astype(np.float64).T + tensors[f"{layer}.bias"]
        if layer != HEADS[model][-1]:
            features = np.maximum(features, 0)
    return features


@pytest.mark.parametrize("model", HEADS)
def test_the_head_of_an_embedding_gives_the_logits(
    api: SimpleNamespace, stub: Any, served: SimpleNamespace, model: str
) -> None:
    if model == "texts":
        answer = embed(api, stub, model, *TEXTS)
        request = api.inference.ScoreTextRequest(
            model={"name": model}, inputs=[{"text": text} for text in TEXTS], all_logits=True
        )
        want = [list(one.classification.logits) for one in stub.ScoreText(request, timeout=60).classifications]
        assert [one.embedding.documents[0].token_count for one in answer.results] == [len(text) for text in TEXTS]
        assert answer.usage.prompt_tokens == sum(map(len, TEXTS))
    else:
        pixels = [some_pixels(seed, 24, 24) for seed in range(3)]
        answer = embed(api, stub, model, *pixels)
        images = [{"encoded": png(one)} for one in pixels]
        asked = api.inference.ClassifyImageRequest(model={"name": model}, images=images, all_logits=True)
        want = [list(one.classification.logits) for one in stub.ClassifyImage(asked, timeout=60).results]
    assert vectors(answer).shape == (3, WIDTH)
    assert head_of(served, model, vectors(answer)) == pytest.approx(np.array(want), abs=1e-4)
    assert (answer.model.name, answer.model.version) == (model, 1)
    assert answer.results[0].embedding.timings.run_seconds > 0


@pytest.mark.parametrize("model", [*HEADS, "pairs"])
@pytest.mark.parametrize("pooling", [0, 1, 2])
def test_a_batch_embeds_each_item_as_alone(api: SimpleNamespace, stub: Any, model: str, pooling: int) -> None:
    if (model, pooling) in [("vil", 2), ("cvt", 1)]:
        with expect.error(PRECONDITION, "pooling is POOLING_", "the model has only POOLING_"):
            embed(api, stub, model, some_pixels(1), pooling=pooling)
        return
    items: list[Any] = TEXTS if model in ("texts", "pairs") else [some_pixels(seed, 24, 24) for seed in range(3)]
    together = vectors(embed(api, stub, model, *items, pooling=pooling))
    alone = np.concatenate([vectors(embed(api, stub, model, item, pooling=pooling)) for item in items])
    assert together == pytest.approx(alone, abs=TOLERANCE)
    assert np.abs(together[0] - together[1]).max() > 1e-2
    normalized = vectors(embed(api, stub, model, *items, pooling=pooling, normalize=True))
    assert normalized == pytest.approx(together / np.linalg.norm(together, axis=1, keepdims=True), abs=TOLERANCE)


def test_the_mean_is_not_the_cls_row(api: SimpleNamespace, stub: Any) -> None:
    head, cls, mean = (vectors(embed(api, stub, "texts", TEXTS[1], pooling=pooling)) for pooling in (0, 1, 2))
    assert head == pytest.approx(cls, abs=TOLERANCE)
    assert np.abs(mean - cls).max() > 1e-2


def test_wrong_calls_are_refused_with_their_field(api: SimpleNamespace, stub: Any) -> None:
    with expect.error(PRECONDITION, "Embed needs a classifier", "tiny is a language model"):
        embed(api, stub, "tiny", "a")
    with expect.error(INVALID, "number of inputs is 0", "[1, 2048]"):
        embed(api, stub, "texts")
    with expect.error(INVALID, "number of tokens of inputs[1] is 65", "truncate"):
        embed(api, stub, "texts", "a", "a" * (MAX_TOKENS + 1))
    with expect.error(INVALID, "images is set", "takes texts"):
        embed(api, stub, "texts", "a", some_pixels(1))
    with expect.error(INVALID, "inputs is set", "takes images"):
        embed(api, stub, "vil", "a", some_pixels(1))
    with expect.error(INVALID, "second_inputs[0] is set", "embeds each document by itself"):
        embed(api, stub, "pairs", "a", second_inputs=[{"text": "b"}])
    with expect.error(INVALID, "pooling is unknown"):
        embed(api, stub, "texts", "a", pooling=9)
    truncated = embed(api, stub, "texts", "a" * 100, truncate=True).results[0].embedding.documents[0]
    assert (truncated.token_count, truncated.truncated) == (MAX_TOKENS, True)


def test_a_broken_image_fails_alone(api: SimpleNamespace, stub: Any) -> None:
    images = [{"encoded": png(some_pixels(1))}, {"encoded": b"not an image"}]
    request = api.inference.EmbedRequest(model={"name": "vil"}, images=images)
    good, bad = stub.Embed(request, timeout=60).results
    assert len(good.embedding.values) == WIDTH
    assert bad.error.code == INVALID.value[0] and bad.error.message.startswith("images[1]: ")


def test_models_say_how_they_embed(served: SimpleNamespace) -> None:
    with longshort.Client(f"127.0.0.1:{served.server.grpc_port}") as client:
        widths = {model: client.model(model).classifier.embedding_width for model in ("texts", "vil", "cvt")}
    assert widths == {"texts": WIDTH, "vil": WIDTH, "cvt": WIDTH}
    described = post(served.server, "/longshort.v1.Models/GetModel", {"model": {"name": "texts"}}).body["classifier"]
    assert described["poolings"] == ["POOLING_CLS", "POOLING_MEAN"]


def test_json_has_the_embedding_of_grpc(api: SimpleNamespace, stub: Any, served: SimpleNamespace) -> None:
    want = vectors(embed(api, stub, "texts", TEXTS[1], pooling=2))
    body = {"model": {"name": "texts"}, "inputs": [{"text": TEXTS[1]}], "pooling": "POOLING_MEAN"}
    answer = post(served.server, "/longshort.v1.Inference/Embed", body)
    (result,) = answer.body["results"]
    assert result["embedding"]["values"] == pytest.approx(want[0], abs=TOLERANCE)
    assert answer.body["usage"]["promptTokens"] == str(len(TEXTS[1]))
    paths = get(served.server, "/openapi.json").body["paths"]
    assert {"/longshort.v1.Inference/Embed", "/v1/embeddings"} <= set(paths)


def test_calls_are_counted_and_items_too(api: SimpleNamespace, stub: Any, served: SimpleNamespace) -> None:
    metric = served.server.metric
    before = metric("longshort_items_total", model="texts"), metric("longshort_requests_total", rpc="Embed")
    embed(api, stub, "texts", *TEXTS)
    assert metric("longshort_items_total", model="texts") == before[0] + 3
    assert metric("longshort_requests_total", rpc="Embed", code="OK") >= 1
    assert metric("longshort_requests_total", rpc="Embed") == before[1] + 1


def openai_client(served: SimpleNamespace) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{served.server.http_port}/v1", api_key="none", max_retries=0)


def test_openais_package_gets_normalized_vectors(api: SimpleNamespace, stub: Any, served: SimpleNamespace) -> None:
    want = vectors(embed(api, stub, "texts", *TEXTS, normalize=True))
    with openai_client(served) as client:
        # Without an encoding the package asks for base64, and decodes it.
        for encoding in ({}, {"encoding_format": "float"}, {"dimensions": WIDTH}):
            answer = client.embeddings.create(model="texts", input=TEXTS, **encoding)
            assert np.array([one.embedding for one in answer.data]) == pytest.approx(want, abs=TOLERANCE)
            assert [one.index for one in answer.data] == [0, 1, 2] and answer.model == "texts"
            assert answer.usage.prompt_tokens == answer.usage.total_tokens == sum(map(len, TEXTS))
        ids = [byte + 1 for byte in TEXTS[1].encode()]
        for one in (TEXTS[1], ids, [ids]):
            (alone,) = client.embeddings.create(model="texts", input=one).data
            assert alone.embedding == pytest.approx(want[1], abs=TOLERANCE)


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"input": "a", "dimensions": 3}, "dimensions", f"it must be {WIDTH}, the width of model texts"),
        ({"input": ["a", ""]}, "input", "input[1] is empty"),
        ({"input": "a" * 65}, "input", "number of tokens of input[0] is 65"),
        ({"input": []}, "input", "input is empty"),
        ({"input": "a", "model": "vil"}, "input", "the model takes images"),
        ({"input": "a", "model": "tiny"}, "model", "needs a classifier"),
    ],
)
def test_openais_errors_name_the_field(served: SimpleNamespace, fields: dict[str, Any], field: str, says: str) -> None:
    with openai_client(served) as client, pytest.raises(openai.BadRequestError) as error:
        client.embeddings.create(**({"model": "texts"} | fields))
    assert says in error.value.message
    assert error.value.param == field


def test_tritonclient_gets_the_embedding_as_an_output(api: SimpleNamespace, stub: Any, served: SimpleNamespace) -> None:
    want = vectors(embed(api, stub, "texts", *TEXTS))
    document = np.array([[text.encode()] for text in TEXTS], dtype=object)
    for module, port in ((triton, served.server.grpc_port), (triton_http, served.server.http_port)):
        with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
            tensor = module.InferInput("document", [3, 1], "BYTES")
            tensor.set_data_from_numpy(document)
            by_default = client.infer("texts", [tensor])
            assert by_default.as_numpy("embedding") is None
            outputs = [module.InferRequestedOutput(name) for name in ("embedding", "logits")]
            asked = client.infer("texts", [tensor], outputs=outputs)
            assert asked.as_numpy("embedding") == pytest.approx(want, abs=TOLERANCE)
            assert asked.as_numpy("logits") == pytest.approx(by_default.as_numpy("logits"), abs=TOLERANCE)
            second = module.InferInput("second_document", [3, 1], "BYTES")
            second.set_data_from_numpy(document[::-1])
            pair = client.infer("pairs", [tensor, second], outputs=outputs[:1]).as_numpy("embedding")
            alone = vectors(embed(api, stub, "pairs", *TEXTS))
            assert pair == pytest.approx(np.stack([alone, alone[::-1]], axis=1), abs=TOLERANCE)


def test_python_clients_stack_into_an_array(api: SimpleNamespace, stub: Any, served: SimpleNamespace) -> None:
    want = vectors(embed(api, stub, "texts", *TEXTS, pooling=2, normalize=True))
    options: dict[str, Any] = {"pooling": "mean", "normalize": True}
    with longshort.Client(f"127.0.0.1:{served.server.grpc_port}", model="texts") as client:
        answers = client.embed(TEXTS, **options)
        array = np.array(answers)
        assert array.dtype == np.float32 and array == pytest.approx(want, abs=TOLERANCE)
        assert [one.id for one in answers] == [0, 1, 2]
        assert answers[1].documents[0].token_count == len(TEXTS[1])
        assert np.array(client.embed([f"text {i}" for i in range(130)])).shape == (130, WIDTH)
        pixels = [some_pixels(seed) for seed in range(10)]
        images = client.embed([*pixels, b"no image"], model="vil")
        assert np.array(images[:10]).shape == (10, WIDTH) and images[10].error.code == INVALID
        with pytest.raises(longshort.InvalidArgument, match=r"inputs\[70\] is empty"):
            client.embed(["good"] * 70 + [""])
        with pytest.raises(ValueError, match="pooling is 'max'"):
            client.embed("a", pooling="max")  # type: ignore[arg-type]

    async def of_async_client() -> Any:
        async with longshort.AsyncClient(f"127.0.0.1:{served.server.grpc_port}", model="texts") as client:
            return np.array(await client.embed(TEXTS, **options))

    assert asyncio.run(of_async_client()) == pytest.approx(want, abs=TOLERANCE)


def test_the_program_writes_lines_and_a_file_of_numpy(
    api: SimpleNamespace, stub: Any, served: SimpleNamespace, tmp_path: Path
) -> None:
    want = vectors(embed(api, stub, "texts", *TEXTS))
    command = [BINARY.with_name("longshort"), f"--server=127.0.0.1:{served.server.grpc_port}", "embed", "--model=texts"]
    given = "".join(f"{text}\n" for text in TEXTS)
    done = subprocess.run([*command, "--lines"], input=given, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert np.array([line["values"] for line in lines]) == pytest.approx(want, abs=TOLERANCE)
    assert [line["name"] for line in lines] == ["-:1", "-:2", "-:3"]
    file = tmp_path / "vectors.npy"
    subprocess.run([*command, "--lines", "--npy", file], input=given, text=True, check=True)
    assert np.load(file) == pytest.approx(want, abs=TOLERANCE)
