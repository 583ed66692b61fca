"""`models`: what the server has loaded."""

from __future__ import annotations

from typing import Any

from longshort import methods
from longshort._command import exits, output
from longshort._command.context import CALL, Command, Context
from longshort._proto import models_pb2

DESCRIPTION = """python -m longshort models [options]

Lists the models that the server has loaded: what each takes (text, pairs of texts, images), and how many classes a
classifier has. With --model, tells all about one: hyperparameters, names of classes, limits, fingerprint.

Examples:
  python -m longshort models
  python -m longshort models --model=characters/1
  python -m longshort models --json | jq -r .name
"""
_SHOWN_CLASSES = 10
_HEADING = [
    "NAME",
    "VERSION",
    "ARCHITECTURE",
    "PARAMETERS",
    "PRECISION",
    "TAKES",
    "CLASSES",
    "TOKENIZER",
    "VOCABULARY",
    "MEMORY",
]


def add_options(parser: Any) -> None:
    pass


def run(context: Context) -> int:
    if context.model.name:
        found = context.describe_model()
        if context.options.json:
            output.write_json(found)
        else:
            output.write_table(_rows(found))
        return exits.OK
    answer = context.calls.unary(methods.LIST_MODELS, models_pb2.ListModelsRequest(), CALL)
    if context.options.json:
        for model in answer.models:
            output.write_json(model)
    else:
        output.write_table([_HEADING, *(_line(model) for model in answer.models)])
    return exits.OK


def _takes(model: models_pb2.Model) -> str:
    classifier = model.classifier
    if classifier.input == models_pb2.CLASSIFIER_INPUT_IMAGE:
        return "grey images" if classifier.channels == 1 else "images"
    if classifier.input == models_pb2.CLASSIFIER_INPUT_PIXEL_SEQUENCE:
        return "images as grey pixels"
    return "pairs of texts" if classifier.documents == 2 else "text"


def _line(model: models_pb2.Model) -> list[str]:
    return [
        model.name,
        str(model.version),
        model.architecture,
        str(model.parameters),
        model.precision,
        _takes(model),
        str(model.classifier.classes or "-"),
        model.tokenizer or "-",
        str(model.vocabulary_size or "-"),
        str(model.language_model.memory_length or "-"),
    ]


def _rows(model: models_pb2.Model) -> list[list[str]]:
    rows = [
        ["name", model.name],
        ["version", str(model.version)],
        ["architecture", model.architecture],
        ["fingerprint", model.fingerprint],
        ["precision", model.precision],
        ["parameters", str(model.parameters)],
    ]
    return rows + (_classifier_rows(model) if model.HasField("classifier") else _language_model_rows(model))


def _language_model_rows(model: models_pb2.Model) -> list[list[str]]:
    own, limits = model.language_model, model.limits
    return [
        ["vocabulary", f"{model.vocabulary_size} tokens, {model.tokenizer}"],
        ["layers", str(own.layers)],
        ["model width", str(own.model_width)],
        ["heads", str(own.heads)],
        ["feed-forward width", str(own.feed_forward_width)],
        ["chunk", f"{own.chunk_size} tokens to {own.chunk_rank} vectors"],
        ["window", f"{own.window_length} tokens"],
        ["memory", f"{own.memory_length} tokens"],
        ["segment", f"{own.segment_length} tokens"],
        ["prompt or document", f"at most {limits.prompt_tokens} tokens"],
        ["completion", f"at most {limits.max_tokens} tokens"],
        ["completions in a call", f"at most {limits.completions}"],
        ["documents in a call", f"at most {limits.inputs}"],
    ]


def _classifier_rows(model: models_pb2.Model) -> list[list[str]]:
    own, limits = model.classifier, model.limits
    rows = [["takes", _takes(model)], ["classes", _classes(own)]]
    if own.input == models_pb2.CLASSIFIER_INPUT_TEXT:
        rows += [
            ["vocabulary", f"{model.vocabulary_size} tokens, {model.tokenizer}"],
            ["document", f"at most {own.max_document_tokens} tokens"],
            ["documents in a call", f"at most {limits.inputs}"],
            ["documents in work", f"at most {limits.window} of a stream"],
        ]
    else:
        rows += [
            ["image", f"at most {limits.image_bytes} bytes, {limits.image_pixels} pixels"],
            ["images in a call", f"at most {limits.images}"],
        ]
    return rows


def _classes(classifier: models_pb2.ClassifierProperties) -> str:
    """ "3: daisy, rose, tulip"; of many classes the first few."""
    if not classifier.labels:
        return f"{classifier.classes}, without names"
    more = ", ... (--json names all)" if len(classifier.labels) > _SHOWN_CLASSES else ""
    return f"{classifier.classes}: {', '.join(classifier.labels[:_SHOWN_CLASSES])}{more}"


COMMAND = Command("models", "Show what the server has loaded", DESCRIPTION, add_options, run)
