"""The keywords of `score`, `classify` and `embed`."""

from __future__ import annotations

from collections.abc import Sequence

from longshort.batch.inputs.sources import Format
from longshort.batch.output.shard_files import OutputFormat
from longshort.batch.report.progress import Style
from longshort.batch.run.connecting import ConnectionOptions
from longshort.batch.run.scorer import Priority


class BatchOptions(ConnectionOptions, total=False):
    """Options of a run besides inputs and output.

    model       "name" or "name/version"; optional if the servers have only one
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
    priority    priority over other calls; default "low"
    client_id   name of this client
    timeout     seconds after which the documents of a server that sends no answer go to others; default 1800
    patience    seconds without any available server after which the run stops; default 600
    progress    "bar", "lines", "json" or "quiet" (default), on standard error
    """

    model: str
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
    priority: Priority
    client_id: str
    timeout: float
    patience: float
    progress: Style
