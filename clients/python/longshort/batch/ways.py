"""How a document goes to a server: in one message, in pieces, or not at all."""

from __future__ import annotations

import enum

from longshort._proto import models_pb2
from longshort.batch.long_documents import MOST_NAMED_TOKENS
from longshort.batch.work import Job
from longshort.inputs import Document

# Of a message, beside the text.
_OVERHEAD_BYTES = 64


class Way(enum.Enum):
    """The model and its limits decide."""

    MESSAGE = enum.auto()
    PIECES = enum.auto()


def way_of(job: Job, model: models_pb2.Model, region_tokens: int, truncate: bool) -> Way | str:
    """Or why the server would refuse it. Cuts what a classifier would not read, so that it fits."""
    assert job.document is not None
    if truncate and model.tokenizer == "bytes_plus_one":
        job.document = _cut(job.document, model.classifier.max_document_tokens + 1)
        return Way.MESSAGE
    fits = job.bytes + _OVERHEAD_BYTES <= model.limits.message_bytes or model.limits.message_bytes == 0
    if not model.HasField("language_model") or isinstance(job.document, tuple):
        return Way.MESSAGE if fits else _too_large(job, model)
    tokens = _tokens(job.document, job.bytes, model.tokenizer)
    if tokens > model.limits.prompt_tokens > 0:
        limit = model.limits.prompt_tokens
        return f"it has {tokens} tokens; the server takes at most {limit} (--max-prompt-tokens)"
    return Way.MESSAGE if fits and not (region_tokens and tokens > MOST_NAMED_TOKENS) else Way.PIECES


def _too_large(job: Job, model: models_pb2.Model) -> str:
    return (
        f"it takes a message of about {job.bytes} bytes; the server takes at most {model.limits.message_bytes}"
        " (--max-message-bytes)"
    )


def _tokens(document: Document, size: int, tokenizer: str) -> int:
    """At the most."""
    return size if isinstance(document, str) and tokenizer != "fairseq_characters" else len(document)


def _cut(document: Document, kept: int) -> Document:
    """The server still sees that it goes on: a character is a byte at least."""
    if isinstance(document, tuple) and len(document) == 2 and not isinstance(document[0], int):
        return document[0][:kept], document[1][:kept]
    return document[:kept]
