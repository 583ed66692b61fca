"""The functions `score`, `classify` and `embed`, which the program `longshort-batch` calls, too."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Unpack

import pyarrow as pa  # type: ignore[import-untyped]

from longshort._proto import inference_pb2, types_pb2
from longshort.batch.inputs import sources as inputs
from longshort.batch.inputs.column_types import common_schema
from longshort.batch.inputs.files import open_folder
from longshort.batch.inputs.finding import LeftOut, finds
from longshort.batch.inputs.memory import DEFAULT_MEMORY, Memory, return_freed_blocks
from longshort.batch.inputs.parquet import Parquet
from longshort.batch.inputs.reading import Reader, check_carried_fields, open_readers, read_shards
from longshort.batch.inputs.rows import Columns
from longshort.batch.inputs.shards import SHARD_BYTES, SHARD_ROWS, Part, ShardLimits
from longshort.batch.output import manifest
from longshort.batch.output import shard_files as output
from longshort.batch.output.completion import CompletionMarker
from longshort.batch.output.shard_files import Output, OutputFormat
from longshort.batch.output.shard_writer import ShardWriter
from longshort.batch.output.unlisted_files import check_no_foreign_files, shard_of, unlisted
from longshort.batch.report.causes import MIN_SUCCESS, described, too_few
from longshort.batch.report.failures import BatchError, Refused, TooFewResults
from longshort.batch.report.progress import Progress
from longshort.batch.report.summary import Summary, not_carried_note
from longshort.batch.run import signals
from longshort.batch.run.batch_options import BatchOptions
from longshort.batch.run.connecting import connection_of
from longshort.batch.run.error_limits import ErrorLimits
from longshort.batch.run.models import check_model, identity
from longshort.batch.run.pipeline import Run
from longshort.batch.run.scorer import Scorer
from longshort.requests import POOLINGS

# Set once a run of this process is in its folder: from then on, the same command resumes it.
RUN_BEGUN = threading.Event()


def score(inputs: str | Sequence[str], out: str, *, region_tokens: int = 0, **options: Unpack[BatchOptions]) -> Summary:
    """Computes the log-likelihood of each row of the inputs under a language model.

    inputs         paths, folders and patterns of files; fsspec URLs, too
    out            the output folder: a path, or an fsspec URL. A run that it holds is resumed
    region_tokens  also compute the bits of each region of this many tokens; 0: do not

    Errors: Refused if the run cannot begin or be resumed; InUse while another run uses the folder; TooFewResults if no
    row, or fewer than `min_success`, have results; another BatchError, or LongshortError, if a run ended that can be
    resumed; ValueError for wrong options.
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
    """Computes the most probable classes of each row of the inputs by a text classifier; as `score` otherwise.

    top_k     number of classes, most probable first
    truncate  truncate documents to the model's maximum length; without it, longer ones are errors
    second    the column of the second document, for models that compare or join two
    """
    if top_k < 1:
        raise ValueError(f"top_k is {top_k}; it must be at least 1")
    texts = inference_pb2.ScoreTextsOptions(top_k=top_k, truncate=truncate)
    return _run(_Task("classify", inputs, out, texts, options, second=second))


def embed(
    inputs: str | Sequence[str],
    out: str,
    *,
    pooling: str = "",
    normalize: bool = False,
    truncate: bool = False,
    second: str = "",
    **options: Unpack[BatchOptions],
) -> Summary:
    """Embeds each row of the inputs by a text classifier: a column `embedding` of 32-bit floats; as `score` otherwise.

    pooling    "cls": the CLS token's row; "mean": the mean of all tokens' rows; "": what the model's head reads
    normalize  divide each vector by its length
    truncate   truncate documents to the model's maximum length; without it, longer ones are errors
    second     the column of the second document, for models that join two
    """
    if (pooling or None) not in POOLINGS:
        raise ValueError(f"pooling is {pooling!r}; it must be cls or mean")
    embedding = inference_pb2.EmbeddingOptions(pooling=POOLINGS[pooling or None], normalize=normalize)
    texts = inference_pb2.ScoreTextsOptions(truncate=truncate, embedding=embedding)
    return _run(_Task("embed", inputs, out, texts, options, second=second))


@dataclass(frozen=True)
class _Task:
    """The arguments of one call."""

    command: str
    inputs: str | Sequence[str]
    out: str
    texts: inference_pb2.ScoreTextsOptions
    options: BatchOptions
    region_tokens: int = 0
    second: str = ""


def _run(task: _Task) -> Summary:
    """Runs an event loop for the task, in another thread if the caller's thread has one."""
    known = BatchOptions.__required_keys__ | BatchOptions.__optional_keys__
    for name in task.options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; there are: {', '.join(sorted(known))}")
    # Before there is an event loop, whose signal handlers would wait for a FIFO.
    connection_of(task.options).check_files()
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
    return_freed_blocks()
    columns = _columns(task)
    limits = ShardLimits(options.get("shard_rows", SHARD_ROWS), options.get("shard_bytes", SHARD_BYTES))
    columns.memory.check_shards(limits.rows, limits.bytes)
    part = Part(options.get("part", 0), options.get("parts", 1))
    format = options.get("output", "parquet")
    if format not in output.OUTPUT_FORMATS:
        raise ValueError(f"output is {format!r}; it must be one of {', '.join(output.OUTPUT_FORMATS)}")
    min_success = options.get("min_success", MIN_SUCCESS)
    if not 0 <= min_success <= 1:
        raise ValueError(f"min_success is {min_success}; it must be from 0 to 1")
    connection = connection_of(options)
    given = [task.inputs] if isinstance(task.inputs, str) else task.inputs
    left_out = LeftOut()
    for one in given:
        if any(finds(one, f"{task.out.rstrip('/')}/{file}") for file in (f"rows/0.{format}", "errors/0.jsonl")):
            raise Refused(
                f"the output folder {task.out} is in the input {one}: a second run would read its results. Give --out"
                " (out=) a folder that is not in an input, or a name that begins with . or _"
            )
    found = await asyncio.to_thread(inputs.find, given, options.get("format"), left_out)
    sources = inputs.sources(found)
    readers = open_readers(sources, columns)
    if columns.carry and min_success > 0:
        await asyncio.to_thread(check_carried_fields, readers, columns.carry)
    folder = open_folder(task.out)
    written = Output(folder, format, task.command, task.region_tokens)
    carried, not_carried = _carried(readers, format)
    written.carry(carried)
    for reader in readers:
        written.check_carried([name for name in reader.carried.names if name not in not_carried])
        reader.carried = carried
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
            result_options = _result_options(task, columns, limits, format)
            record.begin(manifest.Run(task.command, identity(model), result_options, found), part.count == 1)
            RUN_BEGUN.set()
            files = record.files()
            check_no_foreign_files(task.out, files)
            done = record.done(files)
            named = {file.name for entry in done.values() for file in entry.files}
            written.expect(set(files) - named)
            progress = Progress(options.get("progress", "quiet"), sum(source.bytes for source in sources))
            if not_carried:
                progress.note(not_carried_note(not_carried))
            stop = threading.Event()
            own = [entry for entry in done.values() if part.has(entry.source, entry.shard)]
            writer = ShardWriter(written, record)
            for entry in own:
                writer.add_before(entry)
            run = Run(
                read_shards(sources, readers, limits, part, done, stop),
                scorer,
                writer,
                ErrorLimits(
                    max_errors=options.get("max_errors"),
                    errors_before=sum(entry.errors for entry in own),
                    check_first=min_success > 0 and not any(entry.scored for entry in own),
                ),
                progress,
                stop,
                region_tokens=task.region_tokens,
                shard_bytes=limits.bytes,
                ahead_bytes=columns.memory.ahead_bytes,
            )
            try:
                await run.run()
                _check_no_unlisted_files(record, part, named | writer.files)
                has_rows = any(extent.rows for extent in run.extents)
                if has_rows or min_success == 0:
                    record.finish(CompletionMarker(part, tuple(run.extents)))
            finally:
                progress.end()
        finally:
            await scorer.close()
    totals = writer.totals
    summary = Summary(
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
        not_carried=not_carried,
        lacking=dict(writer.lacking),
        lost=dict(writer.lost),
        left_out=dict(left_out.counts),
        without_rows=tuple(
            source.files[0].name for source, extent in zip(sources, run.extents, strict=True) if extent.rows == 0
        ),
        causes=writer.causes.most_frequent(),
        command=task.command,
    )
    if not has_rows and min_success > 0:
        raise TooFewResults(
            "the inputs have no rows, so nothing was done. Correct the inputs, or allow this with --min-success=0"
            " (min_success=0)",
            summary,
        )
    if failed := too_few(summary.all_rows, summary.all_errors, min_success):
        raise TooFewResults(
            f"{failed}; min_success is {min_success:g}. {described(summary.causes)} To do the rows again with other"
            " options, use another folder",
            summary,
        )
    return summary


def _carried(readers: Sequence[Reader], format: OutputFormat) -> tuple[pa.Schema, dict[str, str]]:
    """The carried columns of all inputs; and the large ones that are not carried, with the reason. In JSON
    lines, values of JSON lines keep their types."""
    large: dict[str, str] = {}
    for reader in readers:
        if isinstance(reader, Parquet):
            large |= reader.too_large
    typed = [reader for reader in readers if format == "parquet" or isinstance(reader, Parquet)]
    schema = common_schema(reader.carried for reader in typed)
    return pa.schema([field for field in schema if field.name not in large]), large


def _check_no_unlisted_files(record: manifest.Manifest, part: Part, named: set[str]) -> None:
    """Raises BatchError for a file of the part's results that the manifest does not list: the part is not complete."""
    for name in unlisted(record.files(), named):
        shard = shard_of(name)
        if shard is not None and part.has(*shard):
            raise BatchError(
                f"all shards are done, but {name} belongs to none of them, and readers of the folder would read it:"
                " move it away and run the same command again"
            )


def _columns(task: _Task) -> Columns:
    carry = task.options.get("carry")
    memory = Memory(task.options.get("memory", DEFAULT_MEMORY))
    return Columns(task.options.get("text", "text"), task.second, None if carry is None else tuple(carry), memory)


def _result_options(task: _Task, columns: Columns, limits: ShardLimits, format: str) -> dict[str, Any]:
    """The options that determine results and shards."""
    own: dict[str, Any] = {"region_tokens": task.region_tokens}
    if task.command == "classify":
        own = {"top_k": task.texts.top_k, "truncate": task.texts.truncate, "second": columns.second}
    if task.command == "embed":
        embedding = task.texts.embedding
        own = {
            "pooling": types_pb2.Pooling.Name(embedding.pooling),
            "normalize": embedding.normalize,
            "truncate": task.texts.truncate,
            "second": columns.second,
        }
    return {
        "text": columns.text,
        "carry": None if columns.carry is None else list(columns.carry),
        "output": format,
        "shard_rows": limits.rows,
        "shard_bytes": limits.bytes,
        "max_row_bytes": columns.memory.row_bytes,
        **own,
    }
