"""Converts answers to the columns of the output."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from longshort.batch.inputs.rows import RowError
from longshort.batch.run.long_documents import LongScore
from longshort.batch.run.regions import region_bits
from longshort.batch.run.work import Answer, AnyAnswer
from longshort.errors import code_of

_CLASS = pa.struct([("index", pa.int32()), ("label", pa.string()), ("probability", pa.float32())])
SCORE_COLUMNS = pa.schema(
    [
        ("log_likelihood", pa.float64()),
        ("token_count", pa.int64()),
        ("scored_token_count", pa.int64()),
        ("bits_per_byte", pa.float64()),
        ("bits_per_character", pa.float64()),
    ]
)
REGION_COLUMN = pa.field("region_bits", pa.list_(pa.float64()))
CLASS_COLUMNS = pa.schema(
    [
        ("label", pa.string()),
        ("class_index", pa.int32()),
        ("probability", pa.float32()),
        ("classes", pa.list_(_CLASS)),
        ("token_count", pa.int64()),
        ("truncated", pa.bool_()),
    ]
)


EMBED_COLUMNS = pa.schema(
    [("embedding", pa.list_(pa.float32())), ("token_count", pa.int64()), ("truncated", pa.bool_())]
)


def columns(command: str, region_tokens: int) -> pa.Schema:
    """The columns of a run's results, without keys and carried columns."""
    if command == "embed":
        return EMBED_COLUMNS
    if command == "classify":
        return CLASS_COLUMNS
    return SCORE_COLUMNS.append(REGION_COLUMN) if region_tokens else SCORE_COLUMNS


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


def column(field: pa.Field, values: Sequence[Any]) -> Any:
    """The values of a column of results as an Arrow array."""
    if not values or not isinstance(values[0], array):
        return pa.array(values, field.type)
    numbers = pa.Array.from_buffers(
        pa.float32(), sum(map(len, values)), [None, pa.py_buffer(b"".join(one.tobytes() for one in values))]
    )
    return pa.ListArray.from_arrays(pa.array(itertools.accumulate(map(len, values), initial=0), pa.int32()), numbers)


def json_values(found: dict[str, Any]) -> dict[str, Any]:
    """The same values for a JSON line. Nine digits identify a 32-bit number."""
    return {
        name: [float(f"{one:.9g}") for one in value] if isinstance(value, array) else value
        for name, value in found.items()
    }


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
