"""Converts the messages of items to answers."""

from __future__ import annotations

from longshort import errors
from longshort._proto import inference_pb2, types_pb2
from longshort.answers import Classification, DocumentReading, Embedding, ItemError, TextScore, read


def item_error(error: types_pb2.ItemError, first_id: int = 0) -> ItemError:
    """`first_id`: the id of the call's item 0."""
    retry_after = error.retry_after_seconds if error.HasField("retry_after_seconds") else None
    return ItemError(errors.code_of(error.code), errors.renumbered(error.message, first_id), retry_after)


def images(answer: inference_pb2.ClassifyImageResponse, first_id: int) -> list[Classification]:
    return [_image(result, answer.model, first_id, i) for i, result in enumerate(answer.results)]


def _image(
    result: inference_pb2.ImageResult, model: types_pb2.ModelSelector, first_id: int, index: int
) -> Classification:
    id = first_id + index
    if result.HasField("error"):
        return Classification(id, item_error(result.error, first_id), model.name, model.version)
    return read(Classification, result.classification, id=id, model=model.name, version=model.version)


def embeddings(answer: inference_pb2.EmbedResponse, first_id: int) -> list[Embedding]:
    return [_embedding(result, answer.model, first_id, i) for i, result in enumerate(answer.results)]


def _embedding(
    result: inference_pb2.EmbedResult, model: types_pb2.ModelSelector, first_id: int, index: int
) -> Embedding:
    id = first_id + index
    if result.HasField("error"):
        return Embedding(id, item_error(result.error, first_id), model.name, model.version)
    return read(Embedding, result.embedding, id=id, model=model.name, version=model.version)


def scores(answer: inference_pb2.ScoreTextResponse, first_id: int) -> list[TextScore]:
    if answer.classifications:
        raise is_a_classifier(answer.model.name)
    return [_score(score, answer.model, first_id + i) for i, score in enumerate(answer.scores)]


def classifications(answer: inference_pb2.ScoreTextResponse, first_id: int) -> list[Classification]:
    if answer.scores:
        raise is_a_language_model(answer.model.name)
    return [_classification(one, answer.model, first_id + i) for i, one in enumerate(answer.classifications)]


def stream_score(answer: inference_pb2.ScoreTextsResponse) -> TextScore:
    if answer.HasField("classification"):
        raise is_a_classifier(answer.model.name)
    if answer.HasField("error"):
        return TextScore(answer.id, item_error(answer.error), answer.model.name, answer.model.version)
    return _score(answer.score, answer.model, answer.id)


def stream_classification(answer: inference_pb2.ScoreTextsResponse) -> Classification:
    if answer.HasField("score"):
        raise is_a_language_model(answer.model.name)
    if answer.HasField("error"):
        return Classification(answer.id, item_error(answer.error), answer.model.name, answer.model.version)
    return _classification(answer.classification, answer.model, answer.id)


def _score(score: inference_pb2.TextScore, model: types_pb2.ModelSelector, id: int) -> TextScore:
    return read(TextScore, score, id=id, model=model.name, version=model.version)


def _classification(one: inference_pb2.TextClassification, model: types_pb2.ModelSelector, id: int) -> Classification:
    documents = tuple(read(DocumentReading, document) for document in one.documents)
    return read(Classification, one.classification, id=id, model=model.name, version=model.version, documents=documents)


def is_a_classifier(name: str) -> errors.LongshortError:
    return errors.FailedPrecondition(f"{name} is a classifier: use classify or classify_stream")


def is_a_language_model(name: str) -> errors.LongshortError:
    return errors.FailedPrecondition(
        f"{name} is a language model: use score or score_stream; only classifiers give classes and embeddings"
    )
