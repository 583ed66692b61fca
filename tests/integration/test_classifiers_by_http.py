"""TEI's /predict for text classifiers, and /classify with an image as the body."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from integration import classifier_directory, images
from integration.http_calls import post
from integration.server_process import Server


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("classifiers")
    classifier_directory.write_text(folder, "single", 1)
    classifier_directory.write_text(folder, "pairs", 2)
    classifier_directory.write_images(folder, "vil")
    with Server(folder, tmp_path_factory.mktemp("server")) as running:
        yield running


def test_predict_gives_the_classes_of_score_text(classifiers: Server, api: SimpleNamespace) -> None:
    request = api.inference.ScoreTextRequest(model={"name": "single"}, inputs=[{"text": "abcdefgh"}], all_logits=True)
    want = api.inference_grpc.InferenceStub(classifiers.channel).ScoreText(request, timeout=60).classifications[0]
    answer = post(classifiers, "/predict?model=single", {"inputs": "abcdefgh"})
    got = {one["label"]: one["score"] for one in answer.body}
    top = want.classification.classes
    assert [one["label"] for one in answer.body] == [one.label for one in top]
    assert [got[one.label] for one in top] == [one.probability for one in top]
    raw = post(classifiers, "/predict?model=single", {"inputs": "abcdefgh", "raw_scores": True}).body
    assert [one["score"] for one in raw] == [want.classification.logits[one.index] for one in top]


def same(got: list[dict[str, object]], want: list[dict[str, object]]) -> bool:
    """Whether the classes are the same; the sums of a batch may be rounded in another order."""
    labels = [[one["label"] for one in classes] for classes in (got, want)]
    return labels[0] == labels[1] and [one["score"] for one in got] == pytest.approx(
        [one["score"] for one in want], abs=1e-6
    )


def test_predict_takes_lists_and_pairs(classifiers: Server) -> None:
    one, two = (post(classifiers, "/predict?model=single", {"inputs": text}).body for text in ("abcd", "efgh"))
    for inputs in ([["abcd"], ["efgh"]], ["abcd", "efgh"]):
        first, second = post(classifiers, "/predict?model=single", {"inputs": inputs}).body
        assert same(first, one) and same(second, two)
    pair = post(classifiers, "/predict?model=pairs", {"inputs": ["abcd", "efgh"]}).body
    (only,) = post(classifiers, "/predict?model=pairs", {"inputs": [["abcd", "efgh"]]}).body
    assert same(only, pair)


def test_predict_cuts_a_long_text_only_if_asked(classifiers: Server) -> None:
    text = "a" * 20_000
    refused = post(classifiers, "/predict?model=single", {"inputs": text})
    assert refused.status == 400 and refused.headers["content-type"] == "application/problem+json"
    assert refused.body["status"] == 400 and "inputs[0]" in refused.body["detail"]
    assert post(classifiers, "/predict?model=single", {"inputs": text, "truncate": True}).status == 200


@pytest.mark.parametrize(
    ("query", "body", "says"),
    [
        ("?model=single", {}, "inputs is missing"),
        ("?model=single", {"inputs": []}, "inputs is empty"),
        ("?model=single", {"inputs": ["a", ["b"]]}, "inputs[1]"),
        ("?model=single", {"inputs": [["a", "b"]]}, "it must be 1 for model single"),
        ("?model=pairs", {"inputs": "a"}, "it must be 2 for model pairs"),
        ("?model=single", {"inputs": "a", "truncate": 1}, "truncate is 1"),
        ("?model=single", {"inputs": "a", "top_k": 1}, "top_k"),
        ("?model=vil", {"inputs": "a"}, "/classify"),
        ("", {"inputs": "a"}, "pairs, single"),
    ],
)
def test_predict_names_what_is_wrong(classifiers: Server, query: str, body: dict[str, object], says: str) -> None:
    answer = post(classifiers, "/predict" + query, body)
    assert answer.status == 400 and says in answer.body["detail"]


def test_an_image_is_a_body(classifiers: Server, api: SimpleNamespace) -> None:
    image = images.png(images.some_pixels(3))
    request = api.inference.ClassifyImageRequest(model={"name": "vil"}, images=[{"encoded": image}], top_k=2)
    stub = api.inference_grpc.InferenceStub(classifiers.channel)
    want = stub.ClassifyImage(request, timeout=60).results[0].classification.classes
    got = post(classifiers, "/classify?top_k=2", image, "image/png").body
    assert (got["model"], got["version"]) == ("vil", 1)
    assert got["classes"] == [
        {"index": one.index, "label": one.label or f"LABEL_{one.index}", "probability": one.probability} for one in want
    ]


@pytest.mark.parametrize(
    ("query", "body", "content_type", "status", "says"),
    [
        ("", b"no image", "image/png", 400, "the body"),
        ("", b"", "image/png", 400, "empty"),
        ("?top_k=x", b"x", "image/png", 400, "top_k"),
        ("?top_k=-1", b"x", "image/png", 400, "top_k"),
        ("?model=single", b"x", "image/png", 400, "takes texts"),
        ("?model=other", b"x", "image/png", 404, "other"),
        ("", b"x", "text/plain", 415, "image/*"),
    ],
)
def test_a_wrong_image_call_is_explained(
    classifiers: Server, query: str, body: bytes, content_type: str, status: int, says: str
) -> None:
    answer = post(classifiers, "/classify" + query, body, content_type)
    assert answer.status == status and says in answer.body["detail"]
