"""Whether a model is the one that a run is of, and does what is asked for."""

from __future__ import annotations

from typing import Any

from longshort._proto import models_pb2
from longshort.batch.failures import Refused


def identity(model: models_pb2.Model) -> dict[str, Any]:
    """What results depend on, and what people know a model by."""
    told: dict[str, Any] = {
        "name": model.name,
        "version": model.version,
        "fingerprint": model.fingerprint,
        "precision": model.precision,
    }
    if model.HasField("language_model"):
        told["M"] = model.language_model.memory_length
        told["L"] = model.language_model.segment_length
    return told


def check_model(model: models_pb2.Model, command: str, documents: int) -> None:
    """Raises Refused if the model does not do that with so many documents in a row."""
    is_classifier = model.HasField("classifier")
    if command == "score" and is_classifier:
        raise Refused(f"{model.name} is a classifier: use classify")
    if command == "classify" and not is_classifier:
        raise Refused(f"{model.name} is a language model: use score")
    if not is_classifier:
        return
    if model.classifier.input != models_pb2.CLASSIFIER_INPUT_TEXT:
        raise Refused(f"the model {model.name} takes images; documents are classified here")
    if model.classifier.documents != documents:
        wanted = "two documents: name the column of the second" if documents == 1 else "one document: name no second"
        raise Refused(f"the model {model.name} takes {wanted}")
