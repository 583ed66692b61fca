"""ClassifyImage, and ScoreText and ScoreTexts on classifiers, of the real server."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray
from reference.text_classifier import TextClassifier
from reference.vil import Vil

from integration import classifier_directory, expect, model_directory
from integration.classifier_directory import IMAGE_LABELS, IMAGE_SIDE, MAX_TOKENS, TEXT_LABELS
from integration.images import png, some_pixels
from integration.server_process import Server, wait_until

INVALID = grpc.StatusCode.INVALID_ARGUMENT
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A server of four tiny models, and what the three classifiers must answer."""
    repository = tmp_path_factory.mktemp("classifiers")
    model_directory.write(repository)
    text = classifier_directory.write_text(repository, "texts", documents=1)
    pair = classifier_directory.write_text(repository, "pairs", documents=2)
    images = classifier_directory.write_images(repository, "images")
    with Server(repository, tmp_path_factory.mktemp("server"), "--max-batch-size=8") as server:
        yield SimpleNamespace(server=server, text=text, pair=pair, images=images)


@pytest.fixture
def stub(api: SimpleNamespace, classifiers: SimpleNamespace) -> Any:
    return api.inference_grpc.InferenceStub(classifiers.server.channel)


def classify(api: SimpleNamespace, stub: Any, *images: dict[str, Any], model: str = "images", **fields: Any) -> Any:
    request = api.inference.ClassifyImageRequest(model={"name": model}, images=images, **fields)
    return stub.ClassifyImage(request, timeout=30)


def score(api: SimpleNamespace, stub: Any, model: str, *inputs: dict[str, Any], **fields: Any) -> Any:
    request = api.inference.ScoreTextRequest(model={"name": model}, inputs=inputs, **fields)
    return stub.ScoreText(request, timeout=30)


def text_logits(model: TextClassifier, *documents: str) -> NDArray[np.float64]:
    return model.logits([np.frombuffer(document.encode(), np.uint8).astype(np.int64) + 1 for document in documents])


def image_logits(model: Vil, pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    return model.logits(classifier_directory.normalised(pixels))


def test_an_image_gets_the_models_logits_however_it_comes(
    api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace
) -> None:
    pixels = some_pixels(1)
    size = {"height": IMAGE_SIDE, "width": IMAGE_SIDE, "channels": 3}
    as_bytes = {"tensor": {**size, "uint8_values": pixels.tobytes()}}
    as_floats = {"tensor": {**size, "float_values": {"values": (pixels / 255.0).ravel().tolist()}}}
    answer = classify(api, stub, {"encoded": png(pixels)}, as_bytes, as_floats, all_logits=True, top_k=3)
    want = image_logits(classifiers.images, pixels)
    for result in answer.results:
        assert list(result.classification.logits) == pytest.approx(want, abs=TOLERANCE)
        classes = result.classification.classes
        assert [c.index for c in classes] == np.argsort(-want)[:3].tolist()
        assert [c.label for c in classes] == [IMAGE_LABELS[c.index] for c in classes]
        probabilities = np.exp(want - want.max()) / np.exp(want - want.max()).sum()
        assert [c.probability for c in classes] == pytest.approx(np.sort(probabilities)[::-1][:3], abs=1e-5)
    assert answer.model.name == "images" and answer.model.version == 1


def test_bad_images_fail_alone(api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace) -> None:
    good, other = some_pixels(2), some_pixels(3, 40, 23)
    bomb = png(some_pixels(4)).replace(struct.pack(">II", IMAGE_SIDE, IMAGE_SIDE), struct.pack(">II", 50000, 50000))
    images = (
        {"encoded": png(good)},
        {"encoded": b"not an image"},
        {"encoded": png(good)[:60]},
        {"encoded": bomb},
        {},
        {"tensor": {"height": 2, "width": 2, "channels": 3, "uint8_values": b"short"}},
        {"tensor": {"height": 1, "width": 1, "channels": 1, "float_values": {"values": [2.0]}}},
        {"encoded": png(other)},
    )
    results = classify(api, stub, *images, all_logits=True).results
    assert [r.WhichOneof("result") for r in results] == ["classification", *["error"] * 6, "classification"]
    for index, result in enumerate(results):
        if result.HasField("error"):
            assert result.error.code == INVALID.value[0]
            assert f"images[{index}]" in result.error.message
    want = image_logits(classifiers.images, good)
    assert list(results[0].classification.logits) == pytest.approx(want, abs=TOLERANCE)
    assert len(results[7].classification.classes) == 5


def test_items_and_batches_are_counted(api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace) -> None:
    metric = classifiers.server.metric
    before = metric("longshort_items_total", model="images")
    classify(api, stub, *[{"encoded": png(some_pixels(seed))} for seed in range(20)], {"encoded": b"broken"})
    assert metric("longshort_items_total", model="images") == before + 21
    assert metric("longshort_items_total", model="images", code="INVALID_ARGUMENT") >= 1
    assert metric("longshort_preparation_duration_seconds_count", model="images") >= 21
    assert metric("longshort_batch_items_sum", model="images") >= 20
    assert metric("longshort_multiply_adds_total", model="images") > 0
    # No batch is larger than --max-batch-size.
    assert metric("longshort_batch_items_bucket", model="images", le="8") == metric(
        "longshort_batch_items_count", model="images"
    )


def test_a_text_gets_the_models_logits(api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace) -> None:
    texts = ["x", "a longer document", "the longest of the three documents"]
    answer = score(api, stub, "texts", *[{"text": text} for text in texts], all_logits=True)
    assert not answer.scores
    for text, result in zip(texts, answer.classifications, strict=True):
        want = text_logits(classifiers.text, text)
        assert list(result.classification.logits) == pytest.approx(want, abs=TOLERANCE)
        assert result.classification.classes[0].label == TEXT_LABELS[int(np.argmax(want))]
        assert result.documents[0].token_count == len(text)
    assert answer.usage.prompt_tokens == sum(map(len, texts))


def test_two_documents_are_one_item(api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace) -> None:
    answer = score(api, stub, "pairs", {"text": "one"}, second_inputs=[{"text": "another"}], all_logits=True)
    (result,) = answer.classifications
    want = text_logits(classifiers.pair, "one", "another")
    assert list(result.classification.logits) == pytest.approx(want, abs=TOLERANCE)
    assert [document.token_count for document in result.documents] == [3, 7]
    with expect.error(INVALID, "second_inputs[0]", "two documents"):
        score(api, stub, "pairs", {"text": "one"})
    with expect.error(INVALID, "second_inputs[0]", "one document"):
        score(api, stub, "texts", {"text": "one"}, second_inputs=[{"text": "another"}])
    with expect.error(INVALID, "number of second_inputs is 1", "2"):
        score(api, stub, "pairs", {"text": "a"}, {"text": "b"}, second_inputs=[{"text": "c"}])


def test_a_long_text_is_refused_unless_it_may_be_truncated(
    api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace
) -> None:
    text = "abcdefgh" * MAX_TOKENS
    limit = (
        api.models_grpc.ModelsStub(classifiers.server.channel)
        .GetModel(api.models.GetModelRequest(model={"name": "texts"}))
        .classifier.max_document_tokens
    )
    with expect.error(INVALID, f"number of tokens of inputs[0] is {len(text)}", str(limit), "truncate"):
        score(api, stub, "texts", {"text": text})
    (result,) = score(api, stub, "texts", {"text": text}, truncate=True, all_logits=True).classifications
    assert result.documents[0].truncated and result.documents[0].token_count == limit
    want = text_logits(classifiers.text, text[:limit])
    assert list(result.classification.logits) == pytest.approx(want, abs=TOLERANCE)


@pytest.mark.parametrize("document", [{"text": ""}, {"ids": {"ids": [0, 0]}}, {"ids": {"ids": [257]}}, {}])
def test_documents_that_are_none_are_refused(api: SimpleNamespace, stub: Any, document: dict[str, Any]) -> None:
    with expect.error(INVALID, "inputs[0]"):
        score(api, stub, "texts", document)


def test_a_call_for_another_kind_of_model_is_a_failed_precondition(api: SimpleNamespace, stub: Any) -> None:
    image = {"encoded": png(some_pixels(1))}
    for model in ("tiny", "texts"):
        with expect.error(PRECONDITION, model):
            classify(api, stub, image, model=model)
    with expect.error(PRECONDITION, "images"):
        score(api, stub, "images", {"text": "x"})
    for method in (stub.Generate, lambda request, timeout: list(stub.GenerateStream(request, timeout=timeout))):
        with expect.error(PRECONDITION, "texts"):
            method(api.inference.GenerateRequest(model={"name": "texts"}, prompt={"text": "x"}), timeout=30)


def test_options_of_the_other_kind_are_named(api: SimpleNamespace, stub: Any) -> None:
    with expect.error(INVALID, "token_log_probabilities"):
        score(api, stub, "texts", {"text": "x"}, token_log_probabilities=True)
    with expect.error(INVALID, "truncate"):
        score(api, stub, "tiny", {"text": "x"}, truncate=True)
    with expect.error(INVALID, "top_k is -1"):
        classify(api, stub, {"encoded": b"x"}, top_k=-1)


def test_an_image_of_the_most_bytes_fits_a_message(
    api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace
) -> None:
    models = api.models_grpc.ModelsStub(classifiers.server.channel)
    most = models.GetModel(api.models.GetModelRequest(model={"name": "images"})).limits.image_bytes
    padded = png(some_pixels(5)).ljust(most, b"\0")
    (result,) = classify(api, stub, {"encoded": padded}).results
    assert result.HasField("classification")
    (result,) = classify(api, stub, {"encoded": padded + b"\0"}).results
    assert result.error.code == INVALID.value[0] and str(most) in result.error.message


def test_models_are_described(api: SimpleNamespace, classifiers: SimpleNamespace) -> None:
    stub = api.models_grpc.ModelsStub(classifiers.server.channel)
    images = stub.GetModel(api.models.GetModelRequest(model={"name": "images"}))
    assert (images.architecture, images.precision, images.vocabulary_size) == ("vil", "fp32", 0)
    assert images.classifier.input == api.models.CLASSIFIER_INPUT_IMAGE
    assert list(images.classifier.labels) == IMAGE_LABELS and images.classifier.channels == 3
    assert images.limits.images == 64 and images.limits.image_pixels > 0
    assert images.limits.image_bytes == (8 << 20) - 4096
    pairs = stub.GetModel(api.models.GetModelRequest(model={"name": "pairs"}))
    assert (pairs.architecture, pairs.tokenizer, pairs.vocabulary_size) == ("text_classifier", "bytes_plus_one", 257)
    assert pairs.classifier.documents == 2 and pairs.limits.window == 64
    listed = stub.ListModels(api.models.ListModelsRequest()).models
    assert [model.name for model in listed] == ["images", "pairs", "texts", "tiny"]
    assert not any(model.classifier.labels for model in listed)


def test_tokenize_knows_the_classifiers_vocabulary(api: SimpleNamespace, stub: Any) -> None:
    request = api.inference.TokenizeRequest(model={"name": "texts"}, input={"text": "AB"})
    answer = stub.Tokenize(request)
    assert list(answer.ids) == [66, 67]
    assert list(answer.pieces) == [b"A", b"B"]
    assert (list(answer.byte_begins), list(answer.character_ends)) == ([0, 1], [1, 2])
    with expect.error(PRECONDITION, "images"):
        stub.Tokenize(api.inference.TokenizeRequest(model={"name": "images"}, input={"text": "AB"}))


def messages(api: SimpleNamespace, model: str, texts: list[str], **options: Any) -> Iterator[Any]:
    """The requests of a stream: ids count from 0."""
    for index, text in enumerate(texts):
        request = api.inference.ScoreTextsRequest(id=index, input={"text": text})
        if index == 0:
            request.options.CopyFrom(api.inference.ScoreTextsOptions(model={"name": model}, **options))
        yield request


@pytest.mark.cpu_only(reason="they take the emulator a minute")
def test_a_stream_scores_two_thousand_documents(api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace) -> None:
    texts = [f"document {index}" if index % 100 else "" for index in range(2000)]
    answers = {a.id: a for a in stub.ScoreTexts(messages(api, "texts", texts, all_logits=True), timeout=120)}
    assert sorted(answers) == list(range(2000))
    for index in range(0, 2000, 100):
        assert answers[index].error.code == INVALID.value[0] and "input" in answers[index].error.message
    for index in range(1, 2000, 173):
        want = text_logits(classifiers.text, texts[index])
        assert list(answers[index].classification.classification.logits) == pytest.approx(want, abs=TOLERANCE)
    assert sum(a.HasField("classification") for a in answers.values()) == 1980


def test_a_stream_of_a_language_model_scores_as_score_text_does(api: SimpleNamespace, stub: Any) -> None:
    texts = ["a document", "another one", "the last"]
    alone = score(api, stub, "tiny", *[{"text": text} for text in texts]).scores
    for answer in stub.ScoreTexts(messages(api, "tiny", texts), timeout=30):
        assert answer.score.log_likelihood == pytest.approx(alone[answer.id].log_likelihood, rel=1e-5)


def test_a_client_that_never_reads_is_held_back(api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace) -> None:
    """All logits of long documents would fill memory: sending stops once the window and the connection are full."""
    sent = 0
    done = threading.Event()

    def endless() -> Iterator[Any]:
        nonlocal sent
        yield from messages(api, "texts", ["first"])
        while not done.is_set():
            sent += 1
            yield api.inference.ScoreTextsRequest(id=sent, input={"raw": b"x" * 5000})

    before = classifiers.server.metric("longshort_items_total", model="texts")
    last = -1

    def stands_still() -> bool:
        nonlocal last
        same, last = sent == last, sent
        threading.Event().wait(0.5)
        return same

    with classifiers.server.slow_channel() as channel:
        call = api.inference_grpc.InferenceStub(channel).ScoreTexts(endless(), timeout=60)
        wait_until(stands_still, 30)
        # The documents are too long, so only the first runs. The answers wait unread, so reading stops when they fill
        # the window.
        assert classifiers.server.metric("longshort_items_total", model="texts") <= before + 1
        done.set()
        call.cancel()
    assert score(api, stub, "texts", {"text": "the server goes on"}).classifications


def test_a_cancelled_stream_stops(api: SimpleNamespace, stub: Any, classifiers: SimpleNamespace) -> None:
    call = stub.ScoreTexts(messages(api, "texts", ["x"] * 100000), timeout=60)
    next(call)
    call.cancel()
    metric = classifiers.server.metric
    wait_until(lambda: metric("longshort_requests_total", rpc="ScoreTexts", code="CANCELLED") >= 1)
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    assert caught.value.code() == grpc.StatusCode.CANCELLED


def test_a_streams_deadline_ends_it(api: SimpleNamespace, stub: Any) -> None:
    def slow() -> Iterator[Any]:
        yield from messages(api, "texts", ["x"])
        threading.Event().wait(1)

    with expect.error(grpc.StatusCode.DEADLINE_EXCEEDED):
        list(stub.ScoreTexts(slow(), timeout=0.3))


def test_an_idle_stream_does_not_keep_a_stopping_server(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_text(tmp_path / "repository", "texts", documents=1)
    with Server(tmp_path / "repository", tmp_path / "server", "--drain-timeout=10m") as server:
        leave = threading.Event()

        def idle() -> Iterator[Any]:
            yield from messages(api, "texts", ["x"])
            leave.wait()

        call = api.inference_grpc.InferenceStub(server.channel).ScoreTexts(idle(), timeout=60)
        assert next(call).HasField("classification")
        server.terminate()
        assert server.wait() == 0  # long before --drain-timeout
        leave.set()
        with pytest.raises(grpc.RpcError) as caught:
            next(call)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
