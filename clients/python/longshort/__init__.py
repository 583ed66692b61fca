"""The Python client of Longshort, a gRPC server for Transformer-LS models.

    with longshort.Client("127.0.0.1:8500", model="enwiki") as client:
        for text in client.generate("The history of ", max_tokens=200):
            print(text, end="", flush=True)

Client is synchronous, AsyncClient is for asyncio. Both have the same methods.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator

from longshort._async.answer_stream import AsyncAnswerStream
from longshort._async.client import AsyncClient
from longshort._async.session import AsyncSession
from longshort._async.text_stream import AsyncTextStream
from longshort._sync.answer_stream import AnswerStream
from longshort._sync.client import Client
from longshort._sync.session import Session
from longshort._sync.text_stream import TextStream
from longshort.answers import (
    Classification,
    ClassificationTimings,
    ClassifierProperties,
    ClassProbability,
    Completion,
    Delta,
    DocumentReading,
    Embedding,
    ExportedSession,
    Generation,
    ItemError,
    LanguageModelHyperparameters,
    Limits,
    ListedSession,
    Model,
    TextScore,
    Timings,
    Token,
    Tokens,
    Usage,
)
from longshort.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    LongshortError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from longshort.inputs import Document, Image, Text
from longshort.metadata import CallOptions
from longshort.requests import ClassifyOptions, EmbedOptions, GenerateOptions, ScoreOptions
from longshort.retries import RetryPolicy
from longshort.version import __version__


class _SearchPath(list[str]):
    """This folder, then every folder "longshort" of the current sys.path. So stubs that a user generates from proto/
    can be imported as longshort.v1 beside this package."""

    def __iter__(self) -> Iterator[str]:
        return iter(pkgutil.extend_path(list(super().__iter__()), __name__))


__path__ = _SearchPath(__path__)

__all__ = [
    "Aborted",
    "AlreadyExists",
    "AnswerStream",
    "AsyncAnswerStream",
    "AsyncClient",
    "AsyncSession",
    "AsyncTextStream",
    "CallOptions",
    "Cancelled",
    "ClassProbability",
    "Classification",
    "ClassificationTimings",
    "ClassifierProperties",
    "ClassifyOptions",
    "Client",
    "Completion",
    "DataLoss",
    "DeadlineExceeded",
    "Delta",
    "Document",
    "DocumentReading",
    "EmbedOptions",
    "Embedding",
    "ExportedSession",
    "FailedPrecondition",
    "GenerateOptions",
    "Generation",
    "Image",
    "Internal",
    "InvalidArgument",
    "ItemError",
    "LanguageModelHyperparameters",
    "Limits",
    "ListedSession",
    "LongshortError",
    "Model",
    "NotFound",
    "PermissionDenied",
    "ResourceExhausted",
    "RetryPolicy",
    "ScoreOptions",
    "Session",
    "Text",
    "TextScore",
    "TextStream",
    "Timings",
    "Token",
    "Tokens",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Usage",
    "__version__",
]
