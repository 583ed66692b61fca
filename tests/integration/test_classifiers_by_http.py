"""TEI's /predict for text classifiers, and /classify with an image as the body."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import huggingface_hub
import numpy as np
import pytest

from integration import classifier_directory, expect, images
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
    raw = post(classifiers, "/predict", {"model": "single", "inputs": "abcdefgh", "raw_scores": True}).body
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
    (pair,) = post(classifiers, "/predict?model=pairs", {"inputs": [["abcd", "efgh"]]}).body
    assert len(pair) == len(one)
    assert post(classifiers, "/predict?model=pairs", {"inputs": ["abcd", "efgh"]}).status == 400, "two texts"


def test_an_image_is_predicted_as_texts_are(classifiers: Server) -> None:
    image = images.png(images.some_pixels(3))
    want = post(classifiers, "/classify?top_k=2", image, "image/png").body["classes"]
    want = [{"score": one["probability"], "label": one["label"]} for one in want]
    assert post(classifiers, "/predict?model=vil", image, "image/png").body[:2] == want
    assert post(classifiers, "/predict?model=vil", image, "application/octet-stream").body[:2] == want
    text = base64.b64encode(image).decode()
    for inputs in (text, f"data:image/png;base64,{text}"):
        for fields in ({"parameters": {"top_k": 2}}, {"top_k": 2}):
            assert post(classifiers, "/predict?model=vil", {"inputs": inputs} | fields).body == want
    assert post(classifiers, "/predict?model=single", image, "image/png").status == 400


def test_an_image_comes_in_many_forms(classifiers: Server) -> None:
    image = images.png(images.some_pixels(3))
    want = post(classifiers, "/classify?top_k=2", image, "image/png").body
    assert post(classifiers, "/classify?top_k=2", image, "application/octet-stream").body == want
    inputs = {"inputs": f"data:image/png;base64,{base64.b64encode(image).decode()}"}
    for fields in ({"parameters": {"top_k": 2}}, {"top_k": 2.0, "model": "vil/1"}):
        assert post(classifiers, "/classify", inputs | fields).body == want
    assert "takes texts" in post(classifiers, "/classify", inputs | {"model": "single"}).body["detail"]
    part = b'Content-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
    other = b'Content-Disposition: form-data; name="top_k"\r\n\r\n2\r\n'
    form = b"--xyz\r\n" + other + b"--xyz\r\n" + part + image + b"\r\n--xyz--\r\n"
    for boundary in ("xyz", '"xyz"'):
        assert post(classifiers, "/classify", form, f"multipart/form-data; boundary={boundary}").body == want
    for name, says in ((b"note", 'a field of the form is "note"'), (b"model", "there is no model 2")):
        answer = post(classifiers, "/classify", form.replace(b"top_k", name), "multipart/form-data; boundary=xyz")
        assert answer.status in (400, 404) and says in answer.body["detail"], answer.body
    plain = form.replace(b'"a.png"', b"a.png").replace(b"; name", b";name")
    assert post(classifiers, "/classify", plain, "multipart/form-data; boundary=xyz").body == want
    twice = form.replace(b"--xyz--", b"--xyz\r\n" + part + image + b"\r\n--xyz--")
    assert (
        'a field of the form is "image"'
        in post(classifiers, "/classify", twice, "multipart/form-data; boundary=xyz").body["detail"]
    )
    for wrong in (form[:40], b"", form.replace(b"xyz", b"abc")):
        assert post(classifiers, "/classify", wrong, "multipart/form-data; boundary=xyz").status == 400
    assert post(classifiers, "/classify", image, "multipart/form-data").status == 400
    long = form.replace(b"xyz", b"x" * 71)  # RFC 2046: at most 70
    answer = post(classifiers, "/classify", long, f"multipart/form-data; boundary={'x' * 71}")
    assert answer.status == 400 and "the boundary has 71 characters" in answer.body["detail"]
    padded = form.replace(b"Content-Type: image/png", b"Content-Type: image/png\r\nX: " + b"x" * 8192)
    assert post(classifiers, "/classify", padded, "multipart/form-data; boundary=xyz").status == 400


def test_by_http_an_answer_may_be_larger_than_grpc_clients_accept(api: SimpleNamespace, tmp_path: Path) -> None:
    classifier_directory.write_text(tmp_path / "models", "long", 1)
    labels = [letter * 900 for letter in "abc"]  # 2,048 times take 5.5 MB
    (tmp_path / "models/long/1/labels.txt").write_text("".join(label + "\n" for label in labels))
    with Server(tmp_path / "models", tmp_path) as server:
        texts = [{"text": "abcd"}] * 2048
        answer = post(server, "/longshort.v1.Inference/ScoreText", {"model": {"name": "long"}, "inputs": texts})
        assert answer.status == 200, answer.body
        assert {len(one["classification"]["classes"]) for one in answer.body["classifications"]} == {3}
        tensor = {"name": "document", "shape": [2048, 1], "datatype": "BYTES", "data": ["abcd"] * 2048}
        outputs = [{"name": "probabilities", "parameters": {"classification": 3}}]
        answer = post(server, "/v2/models/long/infer", {"inputs": [tensor], "outputs": outputs})
        assert answer.status == 200, answer.body
        request = api.inference.ScoreTextRequest(model={"name": "long"}, inputs=texts)
        with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "[0, 3145728]: send at most", "items in one call"):
            api.inference_grpc.InferenceStub(server.channel).ScoreText(request, timeout=60)


def test_the_clients_of_hugging_face_work_unchanged(classifiers: Server, tmp_path: Path) -> None:
    client = huggingface_hub.InferenceClient(token="none")
    address = f"http://127.0.0.1:{classifiers.http_port}"
    texts = client.text_classification("abcdefgh", model=f"{address}/predict?model=single")
    want = post(classifiers, "/predict?model=single", {"inputs": "abcdefgh"}).body
    assert [(one.label, one.score) for one in texts] == [(one["label"], one["score"]) for one in want]
    assert len(client.text_classification("abcdefgh", model=f"{address}/predict?model=single", top_k=1)) == 1
    raw = client.text_classification("abcdefgh", model=f"{address}/predict?model=single", function_to_apply="none")
    assert sum(one.score for one in raw) != pytest.approx(1, abs=1e-3)
    own = client.text_classification("abcdefgh", model=f"{address}/predict?model=single", function_to_apply="softmax")
    assert own == texts
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match='must be "softmax" or "none" for model single'):
        client.text_classification("a", model=f"{address}/predict?model=single", function_to_apply="sigmoid")
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match="candidate_labels is not supported"):
        client.zero_shot_classification("a", ["b", "c"], model=f"{address}/predict?model=single")
    file = tmp_path / "image.png"
    file.write_bytes(images.png(images.some_pixels(3)))
    for image in (file, file.read_bytes()):
        found = client.image_classification(image, model=f"{address}/predict?model=vil")
        assert sum(one.score for one in found) == pytest.approx(1, abs=1e-5)
        assert len(client.image_classification(image, model=f"{address}/predict?model=vil", top_k=2)) == 2
        assert client.image_classification(image, model=f"{address}/classify?model=vil") == found[:5]
        assert client.image_classification(image, model=f"{address}/classify?model=vil", top_k=2) == found[:2]
    vector = client.feature_extraction("abcdefgh", model=f"{address}/embed?model=single")
    assert vector.shape[0] == 1 and np.linalg.norm(vector[0]) == pytest.approx(1, abs=1e-5)


def test_embeddings_as_tei_gives_them(classifiers: Server) -> None:
    fields = {"model": "single", "input": ["abcd", "efgh"]}
    want = [one["embedding"] for one in post(classifiers, "/v1/embeddings", fields).body["data"]]
    for query, model in (("?model=single", None), ("", "single"), ("?model=pairs", "single")):
        got = post(classifiers, f"/embed{query}", {"inputs": ["abcd", "efgh"], "model": model, "unknown": 1}).body
        assert np.array(got) == pytest.approx(np.array(want), abs=1e-6)
    raw = post(classifiers, "/embed?model=single", {"inputs": "abcd", "normalize": False}).body
    assert np.linalg.norm(raw[0]) != pytest.approx(1, abs=1e-3)


def test_predict_cuts_a_long_text_only_if_asked(classifiers: Server) -> None:
    text = "a" * 20_000
    refused = post(classifiers, "/predict?model=single", {"inputs": text})
    assert refused.status == 400 and refused.headers["content-type"] == "application/problem+json"
    assert refused.body["status"] == 400 and "inputs[0]" in refused.body["detail"]
    assert post(classifiers, "/predict?model=single", {"inputs": text, "truncate": True}).status == 200


@pytest.mark.parametrize("path", ["/predict", "/embed", "/v1/embeddings"])
def test_a_long_text_is_cut_at_its_end_only(classifiers: Server, path: str) -> None:
    field = "input" if path == "/v1/embeddings" else "inputs"

    def ask(text: str, **more: Any) -> Any:
        return post(classifiers, path, {"model": "single", field: text, **more})

    long = "ab" * 20_000
    limit = classifier_directory.MAX_TOKENS
    assert ask(long, truncate=True).body == ask(long[:limit]).body
    assert ask("abcd", truncate=True, truncation_direction="Left").body == ask("abcd").body
    for more in ({}, {"truncate": True, "truncation_direction": "left"}):
        refused = ask(long, **more)
        message = refused.body["error"]["message"] if path == "/v1/embeddings" else refused.body["detail"]
        advice = f'(more with truncate and truncation_direction "Right", which reads the first {limit})'
        assert refused.status == 400 and advice in message, message


@pytest.mark.parametrize(
    ("query", "body", "says"),
    [
        ("?model=single", {}, "inputs is missing"),
        ("?model=single", {"inputs": []}, "inputs is empty"),
        ("?model=single", {"inputs": ["a", ["b"]]}, "inputs[1]"),
        ("?model=single", {"inputs": [["a", "b"]]}, "it must be 1 for model single"),
        ("?model=pairs", {"inputs": "a"}, "it must be 2 for model pairs"),
        ("?model=single", {"inputs": "a", "truncate": 1}, "truncate is 1"),
        ("?model=single", {"inputs": "a", "parameters": {"top_k": 0}}, "parameters.top_k"),
        ("?model=single", {"inputs": "a", "parameters": {"function_to_apply": "tanh"}}, '"softmax", "sigmoid", or'),
        ("?model=single", {"inputs": "a", "truncation_direction": "up"}, '"Right" or "Left"'),
        ("?model=vil", {"inputs": "%"}, "base64"),
        ("", {"inputs": "a"}, "?model=NAME in the address, must name one of the classifiers of texts: pairs, single"),
    ],
)
def test_predict_names_what_is_wrong(classifiers: Server, query: str, body: dict[str, object], says: str) -> None:
    answer = post(classifiers, "/predict" + query, body)
    assert answer.status == 400 and says in answer.body["detail"]
    assert answer.body["error"] == answer.body["detail"]


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
        ("", b'{"inputs": "eA==", "parameters": {"function_to_apply": "none"}}', "application/json", 400, "/predict"),
        ("", b'{"inputs": "eA==", "parameters": {"function_to_apply": "sigmoid"}}', "application/json", 400, "softmax"),
    ],
)
def test_a_wrong_image_call_is_explained(
    classifiers: Server, query: str, body: bytes, content_type: str, status: int, says: str
) -> None:
    answer = post(classifiers, "/classify" + query, body, content_type)
    assert answer.status == status and says in answer.body["detail"]
