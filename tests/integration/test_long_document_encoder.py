"""A RoBERTa from checkpoint to answers: converted, served, and called with raw text by both protocols.

What it must answer is in texts.json, which Hugging Face's tokenizer and model made of the same folder
(tests/golden/with_transformers.py).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import longshort
import numpy as np
import pytest
from numpy.typing import NDArray
from reference import safetensors_file
from reference.text_classifier import TextClassifier

from integration import classifier_directory, expect, open_inference
from integration.open_inference import strings
from integration.server_process import BINARY, Server

CASES: list[dict[str, Any]] = json.loads((classifier_directory.ROBERTA / "texts.json").read_text())
SINGLE = [case for case in CASES if len(case["texts"]) == 1]
PAIRS = [case for case in CASES if len(case["texts"]) == 2]
TOLERANCE = 2e-5
LONG_SHORT = ("--window=8", "--rank=2", "--max-length=400")
MULTI_LABEL = ("--set", "problem_type=multi_label_classification")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A server of the RoBERTa, of one with windows and landmarks, and of one with independent labels."""
    repository = tmp_path_factory.mktemp("repository")
    for name, options in (("roberta", ()), ("long_short", LONG_SHORT), ("labels", MULTI_LABEL)):
        classifier_directory.write_encoder(repository, name, *options)
    with Server(repository, tmp_path_factory.mktemp("server")) as server:
        yield SimpleNamespace(server=server, repository=repository)


def score(api: SimpleNamespace, served: SimpleNamespace, model: str, cases: list[dict[str, Any]], **more: Any) -> Any:
    request = api.inference.ScoreTextRequest(
        model={"name": model},
        inputs=[{"text": case["texts"][0]} for case in cases],
        second_inputs=[{"text": case["texts"][1]} for case in cases if len(case["texts"]) == 2],
        all_logits=True,
        **more,
    )
    return api.inference_grpc.InferenceStub(served.server.channel).ScoreText(request, timeout=60)


def logits_of(answer: Any) -> NDArray[np.float64]:
    return np.array([found.classification.logits for found in answer.classifications])


@pytest.mark.parametrize("cases", [SINGLE, PAIRS])
def test_longshort_v1_answers_as_transformers(
    cases: list[dict[str, Any]], api: SimpleNamespace, served: SimpleNamespace
) -> None:
    answer = score(api, served, "roberta", cases)
    wanted = np.array([case["logits"] for case in cases])
    assert logits_of(answer) == pytest.approx(wanted, abs=TOLERANCE)
    assert answer.usage.prompt_tokens == sum(len(case["ids"]) for case in cases)
    for found, logits in zip(answer.classifications, wanted, strict=True):
        labels = ["bad", "good", "so so"]
        assert [kind.label for kind in found.classification.classes] == [labels[index] for index in np.argsort(-logits)]


@pytest.mark.parametrize("cases", [SINGLE, PAIRS])
def test_tritonclient_answers_as_transformers(cases: list[dict[str, Any]], served: SimpleNamespace) -> None:
    inputs = [strings("document", *(case["texts"][0].encode() for case in cases))]
    if len(cases[0]["texts"]) == 2:
        inputs.append(strings("second_document", *(case["texts"][1].encode() for case in cases)))
    with open_inference.client_of(served.server) as client:
        answer = client.infer("roberta", inputs)
    wanted = np.array([case["logits"] for case in cases])
    assert answer.as_numpy("logits") == pytest.approx(wanted, abs=TOLERANCE)
    odds = np.exp(wanted)
    assert answer.as_numpy("probabilities") == pytest.approx(odds / odds.sum(axis=1, keepdims=True), abs=1e-5)


def test_ids_give_the_same_as_text(api: SimpleNamespace, served: SimpleNamespace) -> None:
    request = api.inference.ScoreTextRequest(
        model={"name": "roberta"}, inputs=[{"ids": {"ids": case["ids"]}} for case in CASES], all_logits=True
    )
    answer = api.inference_grpc.InferenceStub(served.server.channel).ScoreText(request, timeout=60)
    assert logits_of(answer) == pytest.approx(np.array([case["logits"] for case in CASES]), abs=TOLERANCE)


@pytest.mark.parametrize("cases", [SINGLE, PAIRS])
def test_windows_and_landmarks_are_those_of_the_reference(
    cases: list[dict[str, Any]], api: SimpleNamespace, served: SimpleNamespace
) -> None:
    folder = served.repository / "long_short" / "1"
    config = json.loads((folder / "config.json").read_text())
    reference = TextClassifier(config, safetensors_file.read(folder / "model.safetensors"))
    wanted = np.array([reference.logits([np.array(case["ids"])]) for case in cases])
    assert logits_of(score(api, served, "long_short", cases)) == pytest.approx(wanted, abs=TOLERANCE)
    assert np.abs(wanted - np.array([case["logits"] for case in cases])).max() > 0.01


def test_a_document_that_is_too_long_is_refused_or_truncated(api: SimpleNamespace, served: SimpleNamespace) -> None:
    words = " ".join(str(number) for number in range(200))
    answer = score(api, served, "roberta", [{"texts": [words]}], truncate=True)
    assert answer.usage.prompt_tokens == 128
    answer = score(api, served, "roberta", [{"texts": [words, words]}], truncate=True)
    assert answer.usage.prompt_tokens == 128
    refused = score(api, served, "roberta", [{"texts": ["short"]}, {"texts": [words[:400]]}], truncate=True)
    assert len(refused.classifications) == 2
    with pytest.raises(Exception, match="128"):
        score(api, served, "roberta", [{"texts": [words]}])


def test_independent_labels_have_their_own_probabilities(api: SimpleNamespace, served: SimpleNamespace) -> None:
    answer = score(api, served, "labels", SINGLE[:1])
    for found in answer.classifications[0].classification.classes:
        logit = SINGLE[0]["logits"][found.index]
        assert found.probability == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-5)


def test_the_client_reads_pairs_of_files(served: SimpleNamespace, tmp_path: Path) -> None:
    case = PAIRS[0]
    files = [tmp_path / name for name in ("first.txt", "second.txt")]
    for file, text in zip(files, case["texts"], strict=True):
        file.write_text(text)
    program = [BINARY.with_name("longshort"), f"--server=127.0.0.1:{served.server.grpc_port}", "classify"]
    command = [*program, "--model=roberta", "--json", "--logits", files[0], f"--second={files[1]}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["classification"]["logits"] == pytest.approx(case["logits"], abs=TOLERANCE)
    with longshort.Client(served.server.address, model="roberta") as client:
        both = [tuple(case["texts"]), case["texts"][0]]
        vectors = client.embed(both)
        classes = client.classify(both, logits=True)
    assert classes[0].logits == pytest.approx(case["logits"], abs=TOLERANCE)
    assert [sum(one.token_count for one in found.documents) for found in classes][0] == len(case["ids"])
    for options, vector in zip(([f"--second={files[1]}"], []), vectors, strict=True):
        embed = [*program[:-1], "embed", "--model=roberta", files[0], *options]
        done = subprocess.run(embed, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["values"] == pytest.approx(vector.values, abs=TOLERANCE)
    refused = subprocess.run([*command, files[0]], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "joins two documents: give one file and --second=FILE" in refused.stderr


def test_an_answer_of_tokenize_is_bounded_by_bytes(api: SimpleNamespace, served: SimpleNamespace) -> None:
    tokenize = api.inference_grpc.InferenceStub(served.server.channel).Tokenize

    def request(text: str) -> Any:
        return api.inference.TokenizeRequest(model={"name": "roberta"}, input={"text": text})

    pieces = [piece for case in CASES for piece in tokenize(request(case["texts"][0])).pieces]
    longest = max(pieces, key=len).decode()
    count = (3 << 20) // (18 + len(longest))
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "pieces and places"):
        tokenize(request(longest * (count + count // 50)))
    assert list(tokenize(request(longest * (count // 2))).pieces).count(longest.encode()) == count // 2


def test_ids_of_another_tokenizer_are_noticed_by_the_first(api: SimpleNamespace, served: SimpleNamespace) -> None:
    stub = api.inference_grpc.InferenceStub(served.server.channel)
    ids = list(stub.Tokenize(api.inference.TokenizeRequest(model={"name": "roberta"}, input={"text": "a"})).ids)

    def score(ids: list[int]) -> Any:
        request = api.inference.ScoreTextRequest(model={"name": "roberta"}, inputs=[{"ids": {"ids": ids}}])
        return stub.ScoreText(request)

    assert score(ids).classifications[0].documents[0].token_count == len(ids)
    with expect.error(grpc.StatusCode.INVALID_ARGUMENT, "the first id of inputs[0]", f"is {ids[1]}", "(<s>)"):
        score(ids[1:])
