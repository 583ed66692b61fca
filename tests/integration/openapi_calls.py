"""A call of every operation in /openapi.json, and what the document says of their answers."""

from __future__ import annotations

import base64
import copy
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from integration import images
from integration.connect_calls import envelope
from integration.http_calls import post
from integration.rest_calls import document as tensor
from integration.server_process import Server

Document = dict[str, Any]
PICTURE = images.png(images.some_pixels(3))


@dataclass
class Call:
    """The request's body, as JSON or as bytes, its parameters, a call that makes what it needs, and fields of the
    head."""

    body: Any = None
    parameters: dict[str, str] = field(default_factory=dict)
    before: tuple[str, Any] | None = None
    fields: dict[str, str] = field(default_factory=dict)

    def prepare(self, server: Server) -> None:
        if self.before is not None:
            assert post(server, *self.before).status == 200


def _get(message: Any) -> Call:
    return Call(parameters={"encoding": "json", "message": json.dumps(message)})


def _loading(name: str) -> tuple[str, Any]:
    return "/longshort.v1.Models/LoadModel", {"model": {"name": name}}


LM, TEXTS, IMAGES = {"name": "tiny"}, {"name": "texts"}, {"name": "vil"}
_PROMPT = {"name": "prompt", "shape": [1], "datatype": "BYTES", "data": ["abc"]}
_SESSION = (
    "/longshort.v1.Inference/Generate",
    {"model": LM, "prompt": {"text": "a"}, "maxTokens": 1, "session": {"id": "s"}},
)
CALLS = {
    "ScoreText": Call({"model": LM, "inputs": [{"text": "a text"}], "tokenLogProbabilities": True}),
    "ClassifyImage": Call(
        {"model": IMAGES, "images": [{"encoded": base64.b64encode(PICTURE).decode()}], "allLogits": True}
    ),
    "Embed": Call({"model": TEXTS, "inputs": [{"text": "a text"}]}),
    "Generate": Call({"model": LM, "prompt": {"text": "a"}, "maxTokens": 3, "tokenLogProbabilities": True}),
    "GenerateStream": Call(envelope({"model": LM, "prompt": {"text": "a"}, "maxTokens": 3})),
    "Tokenize": Call({"model": LM, "input": {"text": "a text"}}),
    "TokenizeByGet": _get({"model": LM, "input": {"text": "a text"}}),
    "ListModels": Call({}),
    "ListModelsByGet": _get({}),
    "GetModel": Call({"model": TEXTS}),
    "GetModelByGet": _get({"model": IMAGES}),
    "LoadModel": Call({"model": LM}),
    "UnloadModel": Call({"model": {"name": "other"}}, before=_loading("other")),
    "ListSessions": Call({"model": LM}),
    "ListSessionsByGet": _get({"model": LM}),
    "CloseSession": Call({"model": LM, "sessionId": "s"}, before=_SESSION),
    "ExportSession": Call(envelope({"model": LM, "sessionId": "none"})),
    "ImportSession": Call(envelope({})),
    "ServerMetadata": Call(),
    "ServerLive": Call(),
    "ServerReady": Call(),
    "AllModelStatistics": Call(),
    **{
        name + of: Call(None, {"name": "texts"} | version)
        for name in ("ModelMetadata", "ModelReady", "ModelConfig", "ModelStatistics")
        for of, version in (("", {}), ("OfVersion", {"version": "1"}))
    },
    "ModelInfer": Call({"id": "7", "inputs": [tensor("a", "b")]}, {"name": "texts"}),
    "ModelInferOfVersion": Call({"inputs": [_PROMPT], "parameters": {"seed": 1}}, {"name": "tiny", "version": "1"}),
    "RepositoryIndex": Call({}),
    "RepositoryModelLoad": Call({}, {"name": "texts"}),
    "RepositoryModelUnload": Call({}, {"name": "other2"}, _loading("other2")),
    "openai_models": Call(),
    "openai_model": Call(None, {"model": "tiny"}),
    "openai_completions": Call({"model": "tiny", "prompt": ["a", "b"], "max_tokens": 3, "logprobs": 2}),
    "openai_embeddings": Call({"model": "texts", "input": ["a", "b"]}),
    "tokenizer_info": Call(None, {"model": "tiny"}),
    "tokenize": Call({"model": "tiny", "prompt": "a text"}),
    "detokenize": Call({"model": "tiny", "tokens": [5, 6]}),
    "predict": Call({"inputs": ["a", "b"]}, {"model": "texts"}),
    "embed": Call({"inputs": "a"}, {"model": "texts"}),
    "classify": Call(PICTURE, {"model": "vil", "top_k": "2"}),
    **{name: Call() for name in ("metrics", "livez", "readyz", "health", "version", "info", "openapi", "docs", "page")},
}


class Operation(NamedTuple):
    path: str
    method: str
    described: Document

    @property
    def id(self) -> str:
        return str(self.described["operationId"])


def operations(document: Document) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            yield Operation(path, method, described)


class Answer(NamedTuple):
    status: int
    media_type: str
    content: bytes


def send(server: Server, operation: Operation, call: Call, method: str | None = None) -> Answer:
    """`method`: in place of the operation's."""
    path, query = operation.path, {}
    for name, value in call.parameters.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", urllib.parse.quote(value, safe=""))
        else:
            query[name] = value
    address = f"http://127.0.0.1:{server.http_port}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
    headers, body = dict(call.fields), None
    if "requestBody" in operation.described and method is None:
        kinds = list(operation.described["requestBody"]["content"])
        is_json = not isinstance(call.body, bytes) or call.body == b"{"
        headers["content-type"] = "application/json" if is_json and "application/json" in kinds else kinds[0]
        body = call.body if isinstance(call.body, bytes) else json.dumps(call.body).encode()
    request = urllib.request.Request(address, body, headers, method=(method or operation.method).upper())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return Answer(answer.status, answer.headers.get_content_type(), answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers.get_content_type(), error.read())


def closed(document: Document) -> Document:
    """The document, in which objects have no fields that it does not name."""
    strict = copy.deepcopy(document)
    for schema in strict["components"]["schemas"].values():
        schema.setdefault("additionalProperties", False)
    return strict


def check(document: Document, operation: Operation, answer: Answer) -> None:
    """That the document, see `closed`, has this answer."""
    responses = operation.described["responses"]
    response = responses.get(str(answer.status), responses["default"])
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    assert answer.media_type in response["content"], (operation.id, answer)
    if answer.media_type.endswith("json") and "connect" not in answer.media_type:
        schema = response["content"][answer.media_type]["schema"] | {"components": document["components"]}
        Draft202012Validator(schema).validate(json.loads(answer.content))
