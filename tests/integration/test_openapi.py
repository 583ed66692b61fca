"""/openapi.json: valid, true of real answers and errors, and enough to generate a client of every operation."""

from __future__ import annotations

import importlib
import io
import json
import re
import subprocess
import sys
import typing
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from openapi_spec_validator import validate

from integration import classifier_directory, model_directory, tokens
from integration.openapi_calls import CALLS, PICTURE, Call, Document, Operation, check, closed, operations, send
from integration.server_process import Server


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model of each kind, which are loaded and unloaded."""
    folder = tmp_path_factory.mktemp("described")
    for name in ("tiny", "other", "other2"):
        model_directory.write(folder, name)
    classifier_directory.write_text(folder, "texts", 1)
    classifier_directory.write_images(folder, "vil")
    with Server(folder, tmp_path_factory.mktemp("server"), "--model-control") as running:
        yield running


def document_of(server: Server) -> Document:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/openapi.json") as answer:
        assert answer.headers["content-type"] == "application/json"
        return json.load(answer)


@pytest.fixture(scope="module")
def document(described: Server) -> Document:
    return document_of(described)


@pytest.fixture(scope="module")
def strict(document: Document) -> Document:
    return closed(document)


def test_the_document_is_valid_and_has_every_rpc_that_http_can_carry(document: Document) -> None:
    validate(document)
    assert document["openapi"] == "3.1.0"
    assert "/longshort.v1.Inference/ScoreTexts" not in document["paths"], "it streams in both directions"
    assert "/v2/logging" not in document["paths"], "it is always refused"
    assert {one.id for one in operations(document)} == set(CALLS)
    assert "security" not in document["paths"]["/longshort.v1.Models/ListModels"]["post"], "the server has no tokens"


def test_messages_and_fields_have_the_comments_of_the_contract(document: Document) -> None:
    schemas = document["components"]["schemas"]
    generate = document["paths"]["/longshort.v1.Inference/Generate"]["post"]
    assert generate["description"].startswith("Continues a prompt")
    assert "tokens" in schemas["longshort.v1.GenerateRequest"]["properties"]["maxTokens"]["description"]
    assert schemas["CompletionRequest"]["required"] == ["prompt"]
    assert schemas["CompletionRequest"]["properties"]["max_tokens"]["default"] == 16


def test_calls_need_a_token_if_the_server_has_tokens(repository: Path, tmp_path: Path) -> None:
    secret = tokens.write(tmp_path / "tokens", tokens.line("alice", "alice-secret"))
    with Server(repository, tmp_path, f"--token-file={secret}") as guarded:
        document = document_of(guarded)
        validate(document)
        for one in operations(document):
            refused = send(guarded, one, CALLS[one.id])
            in_stream = refused.media_type == "application/connect+json"  # which has its error
            is_health = "/health/" in one.path or one.path.endswith("/ready")  # public without --protect-health
            assert in_stream or is_health or (refused.status == 401) == ("security" in one.described), one.id
            check(closed(document), one, refused)


def test_real_answers_are_as_the_document_says(described: Server, strict: Document) -> None:
    for one in operations(strict):
        CALLS[one.id].prepare(described)
        answer = send(described, one, CALLS[one.id])
        assert answer.status == 200, (one.id, answer)
        check(strict, one, answer)


def test_the_list_that_clients_of_hugging_face_get_is_described(described: Server, strict: Document) -> None:
    classify = next(one for one in operations(strict) if one.id == "classify")
    call = Call(PICTURE, CALLS["classify"].parameters, fields={"user-agent": "unknown/None; hf_hub/1.2.3"})
    answer = send(described, classify, call)
    assert [set(one) for one in json.loads(answer.content)] == [{"label", "score"}] * 2
    check(strict, classify, answer)


def test_real_errors_are_as_the_document_says(described: Server, strict: Document) -> None:
    for one in operations(strict):
        wrong_method = send(described, one, CALLS[one.id], method="DELETE")
        assert wrong_method.status == 405, one.id
        check(strict, one, wrong_method)
        parameters = {name: "none" for name in CALLS[one.id].parameters}
        if "requestBody" in one.described:
            wrong = send(described, one, Call(b"{", CALLS[one.id].parameters))
        elif parameters:
            wrong = send(described, one, Call(parameters=parameters))
        else:
            continue
        # Streams have their errors in the answer.
        assert 400 <= wrong.status < 500 or wrong.media_type == "application/connect+json", (one.id, wrong)
        check(strict, one, wrong)


@pytest.fixture(scope="module")
def generated(document: Document, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A client that openapi-python-client makes from the document."""
    folder: Path = tmp_path_factory.mktemp("openapi")
    (folder / "openapi.json").write_text(json.dumps(document))
    config = folder / "config.yaml"
    kinds = ("application/connect+json", "image/jpeg", "image/png", "image/webp")
    overrides = "".join(f"  {kind}: application/octet-stream\n" for kind in kinds)
    config.write_text(f"post_hooks: []\ncontent_type_overrides:\n{overrides}")
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", folder / "openapi.json"]
        + ["--output-path", folder / "made_from_openapi", "--meta", "none", "--config", config],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "warning" not in made.stdout.lower() + made.stderr.lower(), made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    return importlib.import_module("made_from_openapi")


def snake(name: str) -> str:
    """As the generator writes names of modules and arguments."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)
    return "_".join(parts).lower()


def arguments(function: Any, operation: Operation, call: Call) -> dict[str, Any]:
    """The call's, in the types of the generated function."""
    hints = typing.get_type_hints(function)
    given: dict[str, Any] = {}
    for name, value in call.parameters.items():
        of_type = hints[snake(name)]
        is_number = int in (of_type, *typing.get_args(of_type))
        enums = [one for one in (of_type, *typing.get_args(of_type)) if hasattr(one, "__members__")]
        given[snake(name)] = int(value) if is_number else enums[0](value) if enums else value
    if "requestBody" not in operation.described:
        return given
    kinds = typing.get_args(hints["body"]) or (hints["body"],)
    if isinstance(call.body, bytes):
        (file,) = {kind for kind in kinds if kind.__name__ == "File"}
        return given | {"body": file(payload=io.BytesIO(call.body))}
    model = next(kind for kind in kinds if hasattr(kind, "from_dict"))
    return given | {"body": model.from_dict(call.body)}


def plain(value: Any) -> Any:
    """A result as JSON."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


@pytest.mark.not_sanitized("most of it is the generator's work; other tests make the calls")
def test_a_generated_client_gets_typed_results_of_every_operation(
    generated: ModuleType, described: Server, document: Document
) -> None:
    client = generated.Client(f"http://127.0.0.1:{described.http_port}")
    folder = Path(generated.__file__ or "").parent / "api"
    for one in operations(document):
        file = folder / snake(one.described["tags"][0]) / f"{snake(one.id)}.py"
        module = importlib.import_module(f"made_from_openapi.api.{file.parent.name}.{file.stem}")
        CALLS[one.id].prepare(described)
        answer = module.sync_detailed(client=client, **arguments(module.sync_detailed, one, CALLS[one.id]))
        assert answer.status_code == 200, (one.id, answer)
        assert answer.parsed is not None and "Error" not in type(answer.parsed).__name__, (one.id, answer)
        if isinstance(answer.parsed, str) or type(answer.parsed).__name__ == "File":
            continue
        assert plain(answer.parsed) == json.loads(answer.content), one.id


@pytest.mark.not_sanitized("most of it is the generator's work; other tests make the calls")
def test_a_generated_client_gets_typed_errors(generated: ModuleType, described: Server) -> None:
    client = generated.Client(f"http://127.0.0.1:{described.http_port}")
    models = importlib.import_module("made_from_openapi.models")
    completions = importlib.import_module("made_from_openapi.api.open_ai.openai_completions")
    refused = completions.sync(client=client, body=models.CompletionRequest(prompt="a", model="none"))
    assert isinstance(refused, models.OpenAIError) and refused.error.code == "model_not_found"
    predict = importlib.import_module("made_from_openapi.api.classifiers.predict")
    problem = predict.sync(client=client, body=models.PredictRequest(inputs=[]), model="texts")
    assert isinstance(problem, models.Problem) and problem.status == 400
