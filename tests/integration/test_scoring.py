"""ScoreText and Tokenize of the real server."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect, model_directory
from integration.model_directory import FIRST_BYTE_ID
from integration.server_process import Server

TEXT = "The quick brown fox\njumps over the lazy dog. " * 5
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def score(api: SimpleNamespace, inference: Any, *inputs: Any, **fields: Any) -> Any:
    return inference.ScoreText(api.inference.ScoreTextRequest(inputs=inputs, **fields), timeout=30)


def test_every_token_but_the_first_is_scored(api: SimpleNamespace, inference: Any) -> None:
    answer = score(api, inference, {"text": TEXT}, token_log_probabilities=True)
    (document,) = answer.scores
    assert document.token_count == len(TEXT)
    assert document.scored_token_count == len(TEXT) - 1 == len(document.tokens)
    assert document.log_likelihood == pytest.approx(sum(t.log_probability for t in document.tokens), rel=1e-5)
    bits = -document.log_likelihood / math.log(2) / (len(TEXT) - 1)
    assert document.bits_per_byte == pytest.approx(bits, rel=1e-9)
    assert not document.HasField("bits_per_character")
    assert b"".join(t.raw for t in document.tokens) == TEXT.encode()[1:]
    assert answer.model.name == "tiny" and answer.model.version == 1
    assert answer.usage.prompt_tokens == len(TEXT)


def test_text_bytes_and_ids_of_one_document_score_alike(api: SimpleNamespace, inference: Any) -> None:
    ids = list(inference.Tokenize(api.inference.TokenizeRequest(input={"text": TEXT})).ids)
    kinds = ({"text": TEXT}, {"raw": TEXT.encode()}, {"ids": {"ids": ids}})
    likelihoods = [score(api, inference, kind).scores[0].log_likelihood for kind in kinds]
    assert likelihoods[0] == pytest.approx(likelihoods[1], rel=1e-6)
    assert likelihoods[0] == pytest.approx(likelihoods[2], rel=1e-6)


def test_documents_of_one_call_do_not_see_each_other(api: SimpleNamespace, inference: Any) -> None:
    together = score(api, inference, {"text": TEXT}, {"text": "short"}, {"text": TEXT})
    alone = score(api, inference, {"text": TEXT}).scores[0].log_likelihood
    assert together.scores[0].log_likelihood == pytest.approx(alone, rel=1e-5)
    assert together.scores[2].log_likelihood == pytest.approx(alone, rel=1e-5)
    assert together.scores[1].token_count == 5


def test_a_document_of_one_token_has_no_rate(api: SimpleNamespace, inference: Any) -> None:
    (document,) = score(api, inference, {"text": "x"}).scores
    assert document.scored_token_count == 0 and document.log_likelihood == 0
    assert not document.HasField("bits_per_byte")


def test_alternatives_are_the_likeliest_first(api: SimpleNamespace, inference: Any) -> None:
    (document,) = score(api, inference, {"text": "hello"}, token_log_probabilities=True, top_alternatives=5).scores
    for token in document.tokens:
        likelihoods = [alternative.log_probability for alternative in token.alternatives]
        assert len(likelihoods) == 5
        assert likelihoods == sorted(likelihoods, reverse=True)
        assert token.log_probability <= likelihoods[0] + 1e-6


def test_tokenize_gives_ids_with_their_bytes(api: SimpleNamespace, inference: Any) -> None:
    answer = inference.Tokenize(api.inference.TokenizeRequest(input={"text": "a\né"}))
    assert b"".join(answer.pieces) == "a\né".encode()
    assert answer.ids[1] == 2
    assert (list(answer.byte_begins), list(answer.byte_ends)) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert (list(answer.character_begins), list(answer.character_ends)) == ([0, 1, 2, 2], [1, 2, 3, 3])
    again = inference.Tokenize(api.inference.TokenizeRequest(input={"ids": {"ids": list(answer.ids)}}))
    assert list(again.ids) == list(answer.ids)
    assert list(again.pieces) == list(answer.pieces) and not again.byte_begins


def test_tokenize_takes_ids_of_a_model_without_vocabulary(api: SimpleNamespace, tmp_path: Path) -> None:
    directory = model_directory.write(tmp_path / "repository")
    config = directory / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"tokenizer": "none"}))
    (directory / "vocabulary.txt").unlink()
    with Server(tmp_path / "repository", tmp_path / "server") as server:
        tokenize = api.inference_grpc.InferenceStub(server.channel).Tokenize
        answer = tokenize(api.inference.TokenizeRequest(input={"ids": {"ids": [3, 4]}}))
        assert list(answer.ids) == [3, 4] and not answer.pieces
        with expect.error(INVALID, "no vocabulary"):
            tokenize(api.inference.TokenizeRequest(input={"text": "a"}))


def test_wrong_inputs_name_the_field(api: SimpleNamespace, inference: Any) -> None:
    with expect.error(INVALID, "number of inputs is 0", "[1, 2048]"):
        score(api, inference)
    with expect.error(INVALID, "number of inputs is 2049"):
        score(api, inference, *[{"text": "x"}] * 2049)
    with expect.error(INVALID, "inputs[1] is unset"):
        score(api, inference, {"text": "x"}, {})
    with expect.error(INVALID, "inputs[0] is empty"):
        score(api, inference, {"text": ""})
    with expect.error(INVALID, "inputs[0].ids.ids[1] is -1", "[0, 259]"):
        score(api, inference, {"ids": {"ids": [FIRST_BYTE_ID, -1]}})
    with expect.error(INVALID, "inputs[0].ids.ids[0] is 260"):
        score(api, inference, {"ids": {"ids": [260]}})
    with expect.error(INVALID, "top_alternatives is 21", "[0, 20]"):
        score(api, inference, {"text": "x"}, token_log_probabilities=True, top_alternatives=21)
    with expect.error(INVALID, "number of tokens to return", "131072"):
        score(api, inference, {"text": "x" * 100_000}, token_log_probabilities=True, top_alternatives=20)


def test_an_unknown_model_is_named(api: SimpleNamespace, inference: Any) -> None:
    with expect.error(grpc.StatusCode.NOT_FOUND, "stranger", "tiny"):
        score(api, inference, {"text": "x"}, model={"name": "stranger"})
    with expect.error(grpc.StatusCode.NOT_FOUND, "7"):
        score(api, inference, {"text": "x"}, model={"name": "tiny", "version": 7})
    with expect.error(INVALID, "model.version is -1"):
        score(api, inference, {"text": "x"}, model={"version": -1})
    with expect.error(INVALID, "model.name", "256"):
        score(api, inference, {"text": "x"}, model={"name": "n" * 100_000})
