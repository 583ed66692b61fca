"""Corpora scored and classified: what `longshort.batch` and the program `longshort-batch` do."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Unpack

from longshort._proto import inference_pb2
from longshort.batch import inputs, manifest, output, signals
from longshort.batch.connecting import ConnectionOptions, connection_of
from longshort.batch.failures import BatchError
from longshort.batch.files import open_folder
from longshort.batch.inputs import Format
from longshort.batch.marks import Mark
from longshort.batch.models import check_model, identity
from longshort.batch.output import Output, OutputFormat
from longshort.batch.progress import Progress, Style
from longshort.batch.reading import open_reader, read_shards
from longshort.batch.rows import Columns
from longshort.batch.run import Run
from longshort.batch.scorer import Priority, Scorer
from longshort.batch.shards import SHARD_BYTES, SHARD_ROWS, Cut, Part
from longshort.batch.strays import check_no_strangers, shard_of, unnamed
from longshort.batch.summary import Summary


class BatchOptions(ConnectionOptions, total=False):
    """What runs take besides inputs and output.

    model       "name" or "name/version"; may be left out if the servers have one
    format      "jsonl", "parquet", "warc" or "text", of all inputs; default: by the end of each name
    text        the column or field that is scored: strings, bytes or lists of token ids; default "text"
    carry       columns that are carried through; default: all others
    output      "parquet" (default) or "jsonl"
    shard_rows  rows in a shard at the most; default 10,000
    shard_bytes bytes of input after which a shard takes no more rows; default 2 MiB
    part        which part of the shards this call does, from 0
    parts       how many parts there are; default 1
    max_errors  rows with errors after which the run stops; default: it does not
    priority    how documents weigh against other calls; default "low"
    client_id   who asks
    timeout     seconds that a server may give no answer while it has documents, before others get them; default 1800
    patience    seconds that no server may be there, before the run stops; default 600
    progress    "bar", "lines", "json" or "quiet" (default), on standard error
    """

    model: str
    format: Format | None
    text: str
    carry: Sequence[str] | None
    output: OutputFormat
    shard_rows: int
    shard_bytes: int
    part: int
    parts: int
    max_errors: int | None
    priority: Priority
    client_id: str
    timeout: float
    patience: float
    progress: Style


def score(inputs: str | Sequence[str], out: str, *, region_tokens: int = 0, **options: Unpack[BatchOptions]) -> Summary:
    """How likely a language model finds each row of the inputs.

    inputs         paths, folders and patterns of files; fsspec URLs, too
    out            the folder of results: a path, or an fsspec URL. A run that it holds is gone on with
    region_tokens  tells the surprise of each window of so many tokens, too; 0 does not

    Errors: Refused for what cannot begin or go on; InUse while another run has the folder; another BatchError, or
    LongshortError, for what ended a run that can be gone on with; ValueError for wrong options.
    """
    if region_tokens < 0:
        raise ValueError(f"region_tokens is {region_tokens}; it must be at least 0")
    texts = inference_pb2.ScoreTextsOptions(token_log_probabilities=region_tokens > 0)
    return _run(_Task("score", inputs, out, texts, options, region_tokens=region_tokens))


def classify(
    inputs: str | Sequence[str],
    out: str,
    *,
    top_k: int = 5,
    truncate: bool = False,
    second: str = "",
    **options: Unpack[BatchOptions],
) -> Summary:
    """Which classes a text classifier gives to each row of the inputs; as `score` otherwise.

    top_k     how many of the likeliest classes to tell
    truncate  of a document that is longer than the model takes, read the beginning instead of making it an error
    second    the column of the second document, for models that compare two
    """
    if top_k < 1:
        raise ValueError(f"top_k is {top_k}; it must be at least 1")
    texts = inference_pb2.ScoreTextsOptions(top_k=top_k, truncate=truncate)
    return _run(_Task("classify", inputs, out, texts, options, second=second))


@dataclass(frozen=True)
class _Task:
    """What one call asks for."""

    command: str
    inputs: str | Sequence[str]
    out: str
    texts: inference_pb2.ScoreTextsOptions
    options: BatchOptions
    region_tokens: int = 0
    second: str = ""


def _run(task: _Task) -> Summary:
    """In an event loop of its own; if the caller's thread has one, in another thread."""
    known = BatchOptions.__required_keys__ | BatchOptions.__optional_keys__
    for name in task.options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; there are: {', '.join(sorted(known))}")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_run_task(task))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _run_task(task)).result()


async def _run_task(task: _Task) -> Summary:
    if (running := asyncio.current_task()) is not None:
        running.set_name(signals.RUN)
    options = task.options
    begun = time.monotonic()
    columns = _columns(task)
    limits = Cut(options.get("shard_rows", SHARD_ROWS), options.get("shard_bytes", SHARD_BYTES))
    part = Part(options.get("part", 0), options.get("parts", 1))
    format = options.get("output", "parquet")
    if format not in output.OUTPUT_FORMATS:
        raise ValueError(f"output is {format!r}; it must be one of {', '.join(output.OUTPUT_FORMATS)}")
    connection = connection_of(options)
    given = [task.inputs] if isinstance(task.inputs, str) else task.inputs
    found = await asyncio.to_thread(inputs.find, given, options.get("format"))
    sources = inputs.sources(found)
    readers = [open_reader(source, columns) for source in sources]
    folder = open_folder(task.out)
    written = Output(folder, format, task.command, task.region_tokens)
    for reader in readers:
        written.check_carried(reader.carried)
    with folder.lock(part.index, part.count):
        scorer = Scorer(
            connection,
            options.get("model", ""),
            task.texts,
            region_tokens=task.region_tokens,
            priority=options.get("priority", "low"),
            client_id=options.get("client_id", ""),
            timeout=options.get("timeout", 1800.0),
            patience=options.get("patience", 600.0),
        )
        try:
            model = await scorer.start()
            check_model(model, task.command, 2 if task.second else 1)
            record = manifest.Manifest(folder)
            record.begin(manifest.Run(task.command, identity(model), _decisive(task, columns, limits, format), found))
            files = record.files()
            check_no_strangers(task.out, files)
            done = record.done(files)
            named = {file.name for entry in done.values() for file in entry.files}
            written.expect(set(files) - named)
            progress = Progress(options.get("progress", "quiet"), sum(source.bytes for source in sources))
            stop = threading.Event()
            own = [entry for entry in done.values() if part.has(entry.source, entry.shard)]
            run = Run(
                read_shards(sources, readers, limits, part, done, stop),
                scorer,
                written,
                record,
                progress,
                stop,
                region_tokens=task.region_tokens,
                max_errors=options.get("max_errors"),
                errors_before=sum(entry.errors for entry in own),
            )
            try:
                await run.run()
                _check_no_strays(record, part, named | run.files)
                record.finish(Mark(part, tuple(run.extents)))
            finally:
                progress.end()
        finally:
            await scorer.close()
    totals = run.totals
    return Summary(
        out=task.out,
        rows=totals.rows,
        errors=totals.errors,
        tokens=totals.tokens,
        seconds=time.monotonic() - begun,
        all_rows=totals.rows + sum(entry.scored for entry in own),
        all_errors=totals.errors + sum(entry.errors for entry in own),
        shards=totals.shards,
        shards_before=len(own),
        model=model.name,
        version=model.version,
        fingerprint=model.fingerprint,
    )


def _check_no_strays(record: manifest.Manifest, part: Part, named: set[str]) -> None:
    """Raises BatchError for a file of the part's results that no shard has written: the part is not done with it."""
    for name in unnamed(record.files(), named):
        shard = shard_of(name)
        if shard is not None and part.has(*shard):
            raise BatchError(
                f"all shards are done, but {name} is of none of them, and would be read with the others: move it away"
                " and run the same command again"
            )


def _columns(task: _Task) -> Columns:
    carry = task.options.get("carry")
    return Columns(task.options.get("text", "text"), task.second, None if carry is None else tuple(carry))


def _decisive(task: _Task, columns: Columns, limits: Cut, format: str) -> dict[str, Any]:
    """The options that results and shards depend on."""
    own: dict[str, Any] = {"region_tokens": task.region_tokens}
    if task.command == "classify":
        own = {"top_k": task.texts.top_k, "truncate": task.texts.truncate, "second": columns.second}
    return {
        "text": columns.text,
        "carry": None if columns.carry is None else list(columns.carry),
        "output": format,
        "shard_rows": limits.rows,
        "shard_bytes": limits.bytes,
        **own,
    }
