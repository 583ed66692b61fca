"""/openapi.json: valid, and enough to generate a client that calls the server."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from openapi_spec_validator import validate

from integration.server_process import Server


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/openapi.json") as answer:
        assert answer.headers["content-type"] == "application/json"
        return json.load(answer)


def test_the_document_is_valid_and_has_every_rpc_that_http_can_carry(document: dict[str, Any]) -> None:
    validate(document)
    assert document["openapi"] == "3.1.0"
    assert {"/longshort.v1.Inference/GenerateStream", "/v1/completions", "/classify"} <= set(document["paths"])
    assert "/longshort.v1.Inference/ScoreTexts" not in document["paths"], "it streams in both directions"
    assert {"/v2/models/{name}/infer", "/v2/models/{name}/versions/{version}/infer"} <= set(document["paths"])
    assert "/v2/logging" not in document["paths"], "it is always refused"
    assert "security" not in document["paths"]["/longshort.v1.Models/ListModels"]["post"], "the server has no tokens"


@pytest.fixture(scope="module")
def generated(document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A client that openapi-python-client makes from the document."""
    folder: Path = tmp_path_factory.mktemp("openapi")
    (folder / "openapi.json").write_text(json.dumps(document))
    config = folder / "config.yaml"
    config.write_text("post_hooks: []\n")
    subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", folder / "openapi.json"]
        + ["--output-path", folder / "made_from_openapi", "--meta", "none", "--config", config],
        check=True,
        capture_output=True,
    )
    sys.path.insert(0, str(folder))
    return importlib.import_module("made_from_openapi")


@pytest.mark.not_sanitized("most of it is the generator's work; the tests of Connect make its calls")
def test_a_generated_client_scores_a_text(generated: ModuleType, server: Server) -> None:
    models = importlib.import_module("made_from_openapi.models")
    score_text = importlib.import_module("made_from_openapi.api.longshort_v_1_inference.score_text")
    client = generated.Client(f"http://127.0.0.1:{server.http_port}")
    request = models.LongshortV1ScoreTextRequest(inputs=[models.LongshortV1Input(text="a text")])
    answer = score_text.sync(client=client, body=request)
    assert answer.usage.prompt_tokens == "6"
    assert answer.scores[0].log_likelihood < 0
    assert answer.model.version == "1"
