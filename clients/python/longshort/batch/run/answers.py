"""Converts answers to the columns of the output."""

from __future__ import annotations

from array import array
from typing import Any

from longshort.batch.inputs.rows import RowError
from longshort.batch.output.result_columns import columns
from longshort.batch.run.long_documents import LongScore, region_bits
from longshort.batch.run.work import Answer, AnyAnswer
from longshort.errors import code_of


def result(answer: AnyAnswer, region_tokens: int) -> dict[str, Any] | RowError:
    """The values of these columns, or the error of the row."""
    if isinstance(answer, LongScore):
        names = columns("score", region_tokens).names
        return {name: getattr(answer, name) for name in names}
    if answer.HasField("error"):
        return RowError(code_of(answer.error.code), answer.error.message)
    if answer.HasField("classification"):
        return _classes(answer)
    if answer.HasField("embedding"):
        return _embedding(answer)
    score = answer.score
    found: dict[str, Any] = {
        "log_likelihood": score.log_likelihood,
        "token_count": score.token_count,
        "scored_token_count": score.scored_token_count,
        "bits_per_byte": score.bits_per_byte if score.HasField("bits_per_byte") else None,
        "bits_per_character": score.bits_per_character if score.HasField("bits_per_character") else None,
    }
    if region_tokens:
        found["region_bits"] = region_bits([token.log_probability for token in score.tokens], region_tokens)
    return found


def tokens_of(found: dict[str, Any]) -> int:
    """The number of tokens that the server has read."""
    return int(found["token_count"])


def _embedding(answer: Answer) -> dict[str, Any]:
    documents = answer.embedding.documents
    return {
        "embedding": array("f", answer.embedding.values),  # a list would take eight times the memory
        "token_count": sum(one.token_count for one in documents),
        "truncated": any(one.truncated for one in documents),
    }


def _classes(answer: Answer) -> dict[str, Any]:
    classes = [
        {"index": one.index, "label": one.label, "probability": one.probability}
        for one in answer.classification.classification.classes
    ]
    documents = answer.classification.documents
    return {
        "label": classes[0]["label"],
        "class_index": classes[0]["index"],
        "probability": classes[0]["probability"],
        "classes": classes,
        "token_count": sum(one.token_count for one in documents),
        "truncated": any(one.truncated for one in documents),
    }
