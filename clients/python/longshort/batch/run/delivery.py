"""Chooses how to send a document to a server: in one message, in pieces, or not at all."""

from __future__ import annotations

import enum

from longshort._proto import models_pb2
from longshort.batch.run.long_documents import MAX_NAMED_TOKENS
from longshort.batch.run.work import Job
from longshort.inputs import Document

# Upper bound of a message's bytes beside the text.
_OVERHEAD_BYTES = 64


class Delivery(enum.Enum):
    """How to send a document; it depends on the model and its limits."""

    MESSAGE = enum.auto()
    PIECES = enum.auto()


def choose_delivery(job: Job, model: models_pb2.Model, region_tokens: int, truncate: bool) -> Delivery | str:
    """The delivery, or why the server would refuse the document. Cuts the text that a classifier would truncate."""
    assert job.document is not None
    if truncate and model.tokenizer == "bytes_plus_one":
        job.document = _cut(job.document, model.classifier.max_document_tokens + 1)
        return Delivery.MESSAGE
    fits = job.bytes + _OVERHEAD_BYTES <= model.limits.message_bytes or model.limits.message_bytes == 0
    if not model.HasField("language_model") or isinstance(job.document, tuple):
        return Delivery.MESSAGE if fits else _too_large(job, model)
    tokens = _tokens(job.document, job.bytes, model.tokenizer)
    if tokens > model.limits.prompt_tokens > 0:
        limit = model.limits.prompt_tokens
        return f"the document has {tokens} tokens; the server accepts at most {limit} (--max-prompt-tokens)"
    return Delivery.MESSAGE if fits and not (region_tokens and tokens > MAX_NAMED_TOKENS) else Delivery.PIECES


def _too_large(job: Job, model: models_pb2.Model) -> str:
    limit = model.limits.message_bytes
    needed = f"the document needs a message of {job.bytes} bytes"
    return f"{needed}; the server accepts at most {limit} (--max-message-bytes)"


def _tokens(document: Document, size: int, tokenizer: str) -> int:
    """An upper bound of the document's tokens."""
    return size if isinstance(document, str) and tokenizer != "fairseq_characters" else len(document)


def _cut(document: Document, kept: int) -> Document:
    """The first `kept` characters. A character has at least one byte, so the server still detects the truncation."""
    if isinstance(document, tuple) and len(document) == 2 and not isinstance(document[0], int):
        return document[0][:kept], document[1][:kept]
    return document[:kept]
