"""Checks that a model is the run's model, and that it supports the command."""

from __future__ import annotations

from typing import Any

from longshort._proto import models_pb2
from longshort.batch.report.failures import Refused


def identity(model: models_pb2.Model) -> dict[str, Any]:
    """The properties of a model that determine results, and its name and version."""
    found: dict[str, Any] = {
        "name": model.name,
        "version": model.version,
        "fingerprint": model.fingerprint,
        "precision": model.precision,
    }
    if model.HasField("language_model"):
        found["M"] = model.language_model.memory_length
        found["L"] = model.language_model.segment_length
    return found


def check_model(model: models_pb2.Model, command: str, documents: int) -> None:
    """Raises Refused if the model does not support the command, or rows of this many documents."""
    is_classifier = model.HasField("classifier")
    if command == "score" and is_classifier:
        raise Refused(f"{model.name} is a classifier: use classify")
    if command != "score" and not is_classifier:
        raise Refused(f"{model.name} is a language model: use score")
    if not is_classifier:
        return
    if model.classifier.input != models_pb2.CLASSIFIER_INPUT_TEXT:
        raise Refused(f"the model {model.name} takes images, not documents")
    if command == "embed" and not model.classifier.embedding_width:
        raise Refused("the server is older than embeddings")
    least = model.classifier.documents
    most = max(least, model.classifier.max_documents)  # older servers do not say max_documents
    if command == "embed" and least == 2:
        if documents == 2:
            raise Refused(f"the model {model.name} embeds each document by itself: name no second column")
        return
    if not least <= documents <= most:
        wanted = "two documents: name the second column" if documents == 1 else "one document: name no second column"
        raise Refused(f"the model {model.name} takes {wanted}")
