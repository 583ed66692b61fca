"""Classifiers of several labels, regressions, and encoders without a head: what each protocol says and answers.

What they must answer follows from the logits that Hugging Face's model gave for the same texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http
from numpy.typing import NDArray

from integration import classifier_directory, expect, rest_calls
from integration.http_calls import post
from integration.server_process import Server

CASES: list[dict[str, Any]] = json.loads((classifier_directory.ROBERTA / "texts.json").read_text())
SINGLE = [case for case in CASES if len(case["texts"]) == 1]
PAIRS = [case for case in CASES if len(case["texts"]) == 2]
LABELS = classifier_directory.ROBERTA_LABELS
WIDTH = 24
TOLERANCE = 2e-5
NO_HEAD = "the model has no head: it embeds, but does not classify"
# Number of classes, and the problem type.
MODELS = {
    "one": (3, "single_label_classification"),
    "several": (3, "multi_label_classification"),
    "yes_or_no": (1, "multi_label_classification"),
    "number": (1, "regression"),
    "numbers": (3, "regression"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = tmp_path_factory.mktemp("repository")
    for name, (classes, kind) in MODELS.items():
        options = ("--set", f"problem_type={kind}", "--set", "documents=2")
        classifier_directory.write_encoder(repository, name, *options, classes=classes)
    classifier_directory.write_encoder(repository, "single")
    classifier_directory.write_encoder(repository, "encoder", classes=0)
    with Server(repository, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def stub(api: SimpleNamespace, server: Server) -> Any:
    return api.inference_grpc.InferenceStub(server.channel)


def logits_of(name: str, cases: list[dict[str, Any]]) -> NDArray[np.float64]:
    return np.array([case["logits"][: MODELS[name][0]] for case in cases])


def results_of(name: str, cases: list[dict[str, Any]]) -> NDArray[np.float64]:
    logits = logits_of(name, cases)
    if MODELS[name][1] == "regression":
        return logits
    if MODELS[name][1] == "multi_label_classification":
        return 1 / (1 + np.exp(-logits))
    odds = np.exp(logits)
    return odds / odds.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", MODELS)
def test_get_model_says_what_the_logits_mean(name: str, api: SimpleNamespace, server: Server) -> None:
    classes, kind = MODELS[name]
    model = api.models_grpc.ModelsStub(server.channel).GetModel(api.models.GetModelRequest(model={"name": name}))
    found = model.classifier
    assert api.models.ProblemType.Name(found.problem_type) == f"PROBLEM_TYPE_{kind.upper()}"
    assert (found.classes, list(found.labels)) == (classes, LABELS[:classes])
    assert (found.documents, found.max_documents, found.embedding_width) == (1, 2, WIDTH)


@pytest.mark.parametrize("cases", [SINGLE, PAIRS])
@pytest.mark.parametrize("name", MODELS)
def test_score_text_gives_the_results(name: str, cases: list[dict[str, Any]], api: SimpleNamespace, stub: Any) -> None:
    request = api.inference.ScoreTextRequest(
        model={"name": name},
        inputs=[{"text": case["texts"][0]} for case in cases],
        second_inputs=[{"text": text} for case in cases for text in case["texts"][1:]],
        all_logits=True,
    )
    answer = stub.ScoreText(request, timeout=60)
    wanted = zip(logits_of(name, cases), results_of(name, cases), strict=True)
    for found, (logits, results) in zip(answer.classifications, wanted, strict=True):
        assert found.classification.logits == pytest.approx(logits, abs=TOLERANCE)
        order = [one.index for one in found.classification.classes]
        assert order == list(np.argsort(-logits))
        assert [one.label for one in found.classification.classes] == [LABELS[index] for index in order]
        got = [one.probability for one in found.classification.classes]
        assert got == pytest.approx(results[order], abs=TOLERANCE)


def ask(
    module: ModuleType, server: Server, model: str, cases: list[dict[str, Any]], outputs: list[str], **more: Any
) -> Any:
    """An inference by tritonclient, of gRPC or HTTP."""
    inputs = []
    for place, name in enumerate(("document", "second_document")[: len(cases[0]["texts"])]):
        tensor = module.InferInput(name, [len(cases), 1], "BYTES")
        tensor.set_data_from_numpy(np.array([[case["texts"][place].encode()] for case in cases], dtype=object))
        inputs.append(tensor)
    port = server.grpc_port if module is triton else server.http_port
    asked = [module.InferRequestedOutput(output, **more) for output in outputs]
    with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
        return client.infer(model, inputs, outputs=asked or None)


@pytest.mark.parametrize("module", [triton, triton_http])
@pytest.mark.parametrize("cases", [SINGLE, PAIRS])
@pytest.mark.parametrize("name", MODELS)
def test_tritonclient_gets_logits_results_and_embeddings(
    name: str, cases: list[dict[str, Any]], module: ModuleType, server: Server
) -> None:
    by_default = ask(module, server, name, cases, [])
    assert by_default.as_numpy("logits") == pytest.approx(logits_of(name, cases), abs=TOLERANCE)
    assert by_default.as_numpy("probabilities") == pytest.approx(results_of(name, cases), abs=TOLERANCE)
    assert by_default.as_numpy("embedding") is None
    asked = ask(module, server, name, cases, ["embedding", "probabilities"])
    assert asked.as_numpy("probabilities") == pytest.approx(results_of(name, cases), abs=TOLERANCE)
    assert asked.as_numpy("embedding").shape == (len(cases), WIDTH)
    assert asked.as_numpy("embedding").dtype == np.float32
    # An encoder with the same weights and no head has the same embedding.
    alone = ask(module, server, "encoder", cases, [])
    assert alone.as_numpy("embedding") == pytest.approx(asked.as_numpy("embedding"), abs=TOLERANCE)
    assert alone.as_numpy("logits") is None


@pytest.mark.parametrize("name", ["several", "number"])
def test_classification_names_the_greatest_results(name: str, server: Server) -> None:
    for output, wanted in (("probabilities", results_of(name, SINGLE)), ("logits", logits_of(name, SINGLE))):
        found = ask(triton, server, name, SINGLE, [output], class_count=2).as_numpy(output)
        assert found.shape == (len(SINGLE), min(2, MODELS[name][0]))
        for row, values in zip(found, wanted, strict=True):
            for one, index in zip(row, np.argsort(-values), strict=False):
                value, place, label = one.decode().split(":")
                assert (int(place), label) == (index, LABELS[index])
                assert float(value) == pytest.approx(values[index], abs=TOLERANCE)


@pytest.mark.parametrize("name", [*MODELS, "encoder"])
def test_the_metadata_of_both_protocols_have_the_tensors(name: str, server: Server) -> None:
    texts = [(tensor, "BYTES", [-1, 1]) for tensor in ("document", "second_document")]
    classes = MODELS[name][0] if name in MODELS else 0
    outputs = [(tensor, "FP32", [-1, classes]) for tensor in ("logits", "probabilities") if classes]
    outputs.append(("embedding", "FP32", [-1, WIDTH]))
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        by_grpc = client.get_model_metadata(name, as_json=True)
        config = client.get_model_config(name, as_json=True)["config"]
    _, _, body = rest_calls.send(server, "GET", f"/v2/models/{name}")
    for found in (by_grpc, json.loads(body)):
        for kind, wanted in (("inputs", texts), ("outputs", outputs)):
            got = [(one["name"], one["datatype"], [int(size) for size in one["shape"]]) for one in found[kind]]
            assert got == wanted
    assert [one.get("optional", False) for one in config["input"]] == [False, True]
    assert [(one["name"], one.get("label_filename", "")) for one in config["output"]] == [
        (tensor, "" if tensor == "embedding" else "labels.txt") for tensor, _, _ in outputs
    ]


@pytest.mark.parametrize("name", MODELS)
def test_predict_gives_labels_and_scores(name: str, server: Server) -> None:
    def check(found: list[dict[str, Any]], case: dict[str, Any], values: NDArray[np.float64]) -> None:
        order = np.argsort(-logits_of(name, [case])[0])
        assert [list(one) for one in found] == [["score", "label"]] * len(order)
        assert [one["label"] for one in found] == [LABELS[index] for index in order]
        assert [one["score"] for one in found] == pytest.approx(values[order], abs=TOLERANCE)

    def predict(inputs: Any, **more: Any) -> Any:
        answer = post(server, f"/predict?model={name}", {"inputs": inputs, **more})
        assert answer.status == 200, answer.body
        return answer.body

    case, pair = SINGLE[0], PAIRS[0]
    check(predict(case["texts"][0]), case, results_of(name, [case])[0])
    check(predict(case["texts"][0], raw_scores=True), case, logits_of(name, [case])[0])
    own = {"single_label_classification": "softmax", "multi_label_classification": "sigmoid", "regression": "none"}
    for function in ("softmax", "sigmoid", "none"):
        body = {"inputs": case["texts"][0], "parameters": {"function_to_apply": function}}
        answer = post(server, f"/predict?model={name}", body)
        if function == own[MODELS[name][1]]:
            check(answer.body[0], case, results_of(name, [case])[0])
        elif function == "none":
            check(answer.body[0], case, logits_of(name, [case])[0])
        else:
            assert answer.status == 400 and f'is "{function}"; it must be "' in answer.body["error"]
    check(predict([pair["texts"]])[0], pair, results_of(name, [pair])[0])
    found = predict([one["texts"][0] for one in SINGLE[:2]])
    for one, of_it, values in zip(SINGLE[:2], found, results_of(name, SINGLE[:2]), strict=True):
        check(of_it, one, values)
    for cases in (SINGLE, PAIRS):
        found = predict([one["texts"] for one in cases])
        for one, of_it, values in zip(cases, found, results_of(name, cases), strict=True):
            check(of_it, one, values)


@pytest.mark.parametrize("name", [*MODELS, "encoder"])
def test_v1_embeddings_are_those_of_embed(name: str, api: SimpleNamespace, stub: Any, server: Server) -> None:
    texts = [case["texts"][0] for case in SINGLE if case["texts"][0]]
    request = {"model": {"name": name}, "inputs": [{"text": text} for text in texts], "normalize": True}
    wanted = stub.Embed(api.inference.EmbedRequest(**request), timeout=60)
    answer = post(server, "/v1/embeddings", {"model": name, "input": texts})
    assert answer.status == 200, answer.body
    assert [one["object"] for one in answer.body["data"]] == ["embedding"] * len(texts)
    for found, result in zip(answer.body["data"], wanted.results, strict=True):
        assert found["embedding"] == pytest.approx(list(result.embedding.values), abs=TOLERANCE)
    tokens = sum(len(case["ids"]) for case in SINGLE if case["texts"][0])
    assert answer.body["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_an_encoder_does_not_classify(api: SimpleNamespace, stub: Any, server: Server) -> None:
    with expect.error(grpc.StatusCode.FAILED_PRECONDITION, NO_HEAD):
        stub.ScoreText(api.inference.ScoreTextRequest(model={"name": "encoder"}, inputs=[{"text": "a"}]), timeout=60)
    refused = post(server, "/predict?model=encoder", {"inputs": "a"})
    assert (refused.status, refused.body["code"], refused.body["detail"]) == (400, "failed_precondition", NO_HEAD)
    for output in ("logits", "probabilities"):
        with pytest.raises(Exception, match=f'output "{output}" is unknown; model encoder has embedding'):
            ask(triton, server, "encoder", SINGLE[:1], [output])
    document = {"name": "document", "datatype": "BYTES", "shape": [1, 1], "data": ["a"]}
    logits = {"inputs": [document], "outputs": [{"name": "logits"}]}
    status, message = rest_calls.error(rest_calls.infer(server, "encoder", logits))
    assert status == 400 and message == 'output "logits" is unknown; model encoder has embedding'
    with pytest.raises(Exception, match="parameters.classification of output embedding is 1"):
        ask(triton, server, "several", SINGLE[:1], ["embedding"], class_count=1)


def test_texts_and_pairs_do_not_mix(api: SimpleNamespace, stub: Any, server: Server) -> None:
    texts = [{"text": "a"}, {"text": "b"}]
    request = api.inference.ScoreTextRequest(model={"name": "several"}, inputs=texts, second_inputs=texts[:1])
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "number of second_inputs is 1", "2"):
        stub.ScoreText(request, timeout=60)
    refused = post(server, "/predict?model=several", {"inputs": [["a"], ["a", "b"]]})
    assert refused.status == 400
    assert refused.body["detail"] == "number of strings of inputs[1] is 2; it must be 1, as of inputs[0]"
    refused = post(server, "/predict?model=several", {"inputs": [["a", "b", "c"]]})
    assert refused.status == 400 and "inputs[0]" in refused.body["detail"]


def test_predict_takes_pairs_only_for_a_model_that_was_trained_on_them(server: Server) -> None:
    assert post(server, "/predict?model=single", {"inputs": [["a"], ["b"]]}).status == 200
    refused = post(server, "/predict?model=single", {"inputs": [["a", "b"]]})
    assert refused.status == 400
    assert refused.body["detail"] == (
        "number of strings of inputs[0] is 2; it must be 1 for model single, which was trained on single texts"
    )
