"""The keywords of calls, and the options of a stream that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from longshort._proto import inference_pb2
from longshort.batch.inputs.sources import Format
from longshort.batch.output.shard_files import OutputFormat
from longshort.batch.report.progress import Style
from longshort.connection import Paths
from longshort.requests import POOLINGS

Priority = Literal["low", "normal", "high"]


class ConnectionOptions(TypedDict, total=False):
    """As of longshort.Client. Each address of a host name is a server."""

    server: str | Sequence[str]
    tls: bool
    tls_ca: Paths
    tls_certificate: Paths
    tls_key: Paths
    tls_server_name: str
    token: str
    token_file: Paths
    insecure: bool
    health_check: bool


class ServerOptions(ConnectionOptions, total=False):
    """The servers, as ConnectionOptions name them, and what they are asked besides the documents.

    model      "name" or "name/version"; optional if the servers have only one
    priority   priority of the documents over other calls; default "low"
    client_id  name of this client
    timeout    seconds after which the documents of a server that sends no answer go to others; default 1800
    patience   seconds without any available server after which the work fails, at the beginning at most a minute;
               default 600
    """

    model: str
    priority: Priority
    client_id: str
    timeout: float
    patience: float


class BatchOptions(ServerOptions, total=False):
    """Options of a run besides inputs and output; also those of ServerOptions: model, priority, ...

    format      format of all inputs: "jsonl", "parquet", "warc" or "text"; default: determined by the file names
    text        the column or field with the documents: strings, bytes or lists of token ids; default "text"
    carry       columns to copy to the output; default: all others, except large ones of bytes (images)
    output      "parquet" (default) or "jsonl"
    shard_rows  maximum rows in a shard; default 10,000
    shard_bytes bytes of documents and carried columns after which a shard ends; default 2 MiB
    memory      bytes of memory that the process may use; default 512 MiB. It bounds rows, pages and shards
    part        the part whose shards this call processes, from 0
    parts       number of parts; default 1
    min_success the run fails if a smaller share of rows, 0 to 1, has results, or none has, or there are no rows;
                default 0.5. It ends at once if the first 100 rows all have the same error. 0: none of these
    max_errors  the run stops if more rows have errors; default: never
    progress    "bar", "lines", "json" or "quiet" (default), on standard error
    """

    format: Format | None
    text: str
    carry: Sequence[str] | None
    output: OutputFormat
    shard_rows: int
    shard_bytes: int
    memory: int
    part: int
    parts: int
    max_errors: int | None
    min_success: float
    progress: Style


def texts_to_score(region_tokens: int) -> inference_pb2.ScoreTextsOptions:
    """The options of a stream for `score`. Raises ValueError."""
    if region_tokens < 0:
        raise ValueError(f"region_tokens is {region_tokens}; it must be at least 0")
    return inference_pb2.ScoreTextsOptions(token_log_probabilities=region_tokens > 0)


def texts_to_classify(top_k: int, truncate: bool) -> inference_pb2.ScoreTextsOptions:
    """The same for `classify`."""
    if top_k < 1:
        raise ValueError(f"top_k is {top_k}; it must be at least 1")
    return inference_pb2.ScoreTextsOptions(top_k=top_k, truncate=truncate)


def texts_to_embed(pooling: str, normalize: bool, truncate: bool) -> inference_pb2.ScoreTextsOptions:
    """The same for `embed`."""
    if (pooling or None) not in POOLINGS:
        raise ValueError(f"pooling is {pooling!r}; it must be cls or mean")
    embedding = inference_pb2.EmbeddingOptions(pooling=POOLINGS[pooling or None], normalize=normalize)
    return inference_pb2.ScoreTextsOptions(truncate=truncate, embedding=embedding)
