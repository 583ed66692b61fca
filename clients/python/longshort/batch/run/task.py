"""One call of `score`, `classify` or `embed`: finds inputs, begins or resumes the run in its folder, sums it up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from longshort._proto import inference_pb2, models_pb2, types_pb2
from longshort.batch.inputs.column_types import common_schema
from longshort.batch.inputs.finding import finds
from longshort.batch.inputs.memory import DEFAULT_MEMORY, Memory, return_freed_blocks
from longshort.batch.inputs.parquet import Parquet
from longshort.batch.inputs.reading import Reader, check_carried_fields, open_readers, read_shards
from longshort.batch.inputs.rows import Columns
from longshort.batch.inputs.shards import SHARD_BYTES, SHARD_ROWS, Extent, Part, ShardLimits
from longshort.batch.inputs.sources import Input, Source, find, sources_of
from longshort.batch.output import manifest
from longshort.batch.output.folders import Folder, open_folder
from longshort.batch.output.manifest import Manifest, check_no_foreign_files, shard_of, unlisted
from longshort.batch.output.records import CompletionMarker, Entry
from longshort.batch.output.shard_files import OUTPUT_FORMATS, Output, OutputFormat
from longshort.batch.output.shard_writer import ShardWriter
from longshort.batch.report.counts import MIN_SUCCESS, LeftOut, described_errors, too_few
from longshort.batch.report.failures import BatchError, Refused, TooFewResults
from longshort.batch.report.progress import Progress
from longshort.batch.report.summary import Summary, not_carried_note
from longshort.batch.run import signals
from longshort.batch.run.error_limits import ErrorLimits
from longshort.batch.run.models import check_model, identity
from longshort.batch.run.options import BatchOptions
from longshort.batch.run.pipeline import Run
from longshort.batch.run.scorer import Scorer
from longshort.requests import check_options

# Set once a run of this process is in its folder: from then on, the same command resumes it.
RUN_BEGUN = threading.Event()


class Task:
    """The arguments of one call, checked."""

    def __init__(
        self,
        command: str,
        inputs: str | Sequence[str],
        out: str,
        texts: inference_pb2.ScoreTextsOptions,
        options: BatchOptions,
        *,
        region_tokens: int = 0,
        second: str = "",
    ) -> None:
        """Raises ValueError, and TypeError for an unknown option."""
        check_options(options, BatchOptions)
        self.command = command
        self.inputs = [inputs] if isinstance(inputs, str) else inputs
        self.out = out
        self.texts = texts
        self.options = options
        self.region_tokens = region_tokens
        carry, memory = options.get("carry"), Memory(options.get("memory", DEFAULT_MEMORY))
        carried = None if carry is None else tuple(carry)
        self.columns = Columns(options.get("text", "text"), second, carried, memory)
        self.limits = ShardLimits(options.get("shard_rows", SHARD_ROWS), options.get("shard_bytes", SHARD_BYTES))
        memory.check_shards(self.limits.rows, self.limits.bytes)
        self.part = Part(options.get("part", 0), options.get("parts", 1))
        self.format: OutputFormat = options.get("output", "parquet")
        if self.format not in OUTPUT_FORMATS:
            raise ValueError(f"output is {self.format!r}; it must be one of {', '.join(OUTPUT_FORMATS)}")
        self.min_success = options.get("min_success", MIN_SUCCESS)
        if not 0 <= self.min_success <= 1:
            raise ValueError(f"min_success is {self.min_success}; it must be from 0 to 1")

    def result_options(self) -> dict[str, Any]:
        """The options that determine results and shards."""
        own: dict[str, Any] = {"region_tokens": self.region_tokens}
        if self.command == "classify":
            own = {"top_k": self.texts.top_k, "truncate": self.texts.truncate, "second": self.columns.second}
        if self.command == "embed":
            embedding = self.texts.embedding
            own = {
                "pooling": types_pb2.Pooling.Name(embedding.pooling),
                "normalize": embedding.normalize,
                "truncate": self.texts.truncate,
                "second": self.columns.second,
            }
        return {
            "text": self.columns.text,
            "carry": None if self.columns.carry is None else list(self.columns.carry),
            "output": self.format,
            "shard_rows": self.limits.rows,
            "shard_bytes": self.limits.bytes,
            "max_row_bytes": self.columns.memory.row_bytes,
            **own,
        }


@dataclass(frozen=True)
class _Found:
    """The inputs of a task."""

    files: list[Input]
    sources: list[Source]
    readers: list[Reader]
    left_out: LeftOut


@dataclass(frozen=True)
class _Begun:
    """A run that is begun, or resumed, in its folder."""

    manifest: Manifest
    output: Output
    # All shards that were done before, and those of this part.
    done: dict[tuple[int, int], Entry]
    own: list[Entry]


async def run(task: Task) -> Summary:
    """Raises what `score` raises."""
    if (running := asyncio.current_task()) is not None:
        running.set_name(signals.RUN)
    begun = time.monotonic()
    return_freed_blocks()
    found = await _find(task)
    folder = open_folder(task.out)
    output, not_carried = _output(task, folder, found.readers)
    with folder.lock(task.part.index, task.part.count):
        scorer = Scorer(task.options, task.texts, task.region_tokens)
        try:
            model = await scorer.start()
            check_model(model, task.command, 2 if task.columns.second else 1)
            resumed = _begin(task, folder, output, model, found.files)
            writer, extents = await _score(task, found, resumed, scorer, not_carried)
        finally:
            await scorer.close()
    summary = _summary(task, found, resumed, writer, extents, model, not_carried, time.monotonic() - begun)
    _check_success(summary, task.min_success, any(extent.rows for extent in extents))
    return summary


async def _find(task: Task) -> _Found:
    for one in task.inputs:
        if any(finds(one, f"{task.out.rstrip('/')}/{file}") for file in (f"rows/0.{task.format}", "errors/0.jsonl")):
            raise Refused(
                f"the output folder {task.out} is in the input {one}: a second run would read its results. Give --out"
                " (out=) a folder that is not in an input, or a name that begins with . or _"
            )
    left_out = LeftOut()
    files = await asyncio.to_thread(find, task.inputs, task.options.get("format"), left_out)
    sources = sources_of(files)
    readers = open_readers(sources, task.columns)
    if task.columns.carry and task.min_success > 0:
        await asyncio.to_thread(check_carried_fields, readers, task.columns.carry)
    return _Found(files, sources, readers, left_out)


def _output(task: Task, folder: Folder, readers: Sequence[Reader]) -> tuple[Output, dict[str, str]]:
    """The output, whose carried columns the readers get, too; and the large columns that are not carried, with the
    reason."""
    large: dict[str, str] = {}
    for reader in readers:
        if isinstance(reader, Parquet):
            large |= reader.too_large
    # In JSON lines, values of JSON lines keep their types.
    typed = [reader for reader in readers if task.format == "parquet" or isinstance(reader, Parquet)]
    schema = common_schema(reader.carried for reader in typed)
    carried = pa.schema([field for field in schema if field.name not in large])
    output = Output(folder, task.format, task.command, task.region_tokens, carried)
    for reader in readers:
        output.check_carried([name for name in reader.carried.names if name not in large])
        reader.carried = carried
    return output, large


def _begin(task: Task, folder: Folder, output: Output, model: models_pb2.Model, files: Sequence[Input]) -> _Begun:
    record = Manifest(folder)
    record.begin(manifest.Run(task.command, identity(model), task.result_options(), files), task.part.count == 1)
    RUN_BEGUN.set()
    there = record.files()
    check_no_foreign_files(task.out, there)
    done = record.done(there)
    output.expect(set(there) - _names(done))
    return _Begun(record, output, done, [one for one in done.values() if task.part.has(one.source, one.shard)])


def _names(done: dict[tuple[int, int], Entry]) -> set[str]:
    return {file.name for entry in done.values() for file in entry.files}


async def _score(
    task: Task, found: _Found, begun: _Begun, scorer: Scorer, not_carried: dict[str, str]
) -> tuple[ShardWriter, list[Extent]]:
    """Scores and writes the shards that are not done, and marks the part as complete."""
    progress = Progress(task.options.get("progress", "quiet"), sum(source.bytes for source in found.sources))
    if not_carried:
        progress.note(not_carried_note(not_carried))
    stop = threading.Event()
    writer = ShardWriter(begun.output, begun.manifest)
    for entry in begun.own:
        writer.add_before(entry)
    pipeline = Run(
        read_shards(found.sources, found.readers, task.limits, task.part, begun.done, stop),
        scorer,
        writer,
        ErrorLimits(
            max_errors=task.options.get("max_errors"),
            errors_before=sum(entry.errors for entry in begun.own),
            check_first=task.min_success > 0 and not any(entry.scored for entry in begun.own),
        ),
        progress,
        stop,
        region_tokens=task.region_tokens,
        shard_bytes=task.limits.bytes,
        ahead_bytes=task.columns.memory.ahead_bytes,
    )
    try:
        await pipeline.run()
        _check_no_unlisted_files(begun.manifest, task.part, _names(begun.done) | writer.files)
        if task.min_success == 0 or any(extent.rows for extent in pipeline.extents):
            begun.manifest.finish(CompletionMarker(task.part, tuple(pipeline.extents)))
    finally:
        progress.end()
    return writer, pipeline.extents


def _check_no_unlisted_files(record: Manifest, part: Part, named: set[str]) -> None:
    """Raises BatchError for a file of the part's results that the manifest does not list: the part is not complete."""
    for name in unlisted(record.files(), named):
        shard = shard_of(name)
        if shard is not None and part.has(*shard):
            raise BatchError(
                f"all shards are done, but {name} belongs to none of them, and readers of the folder would read it:"
                " move it away and run the same command again"
            )


def _summary(
    task: Task,
    found: _Found,
    begun: _Begun,
    writer: ShardWriter,
    extents: Sequence[Extent],
    model: models_pb2.Model,
    not_carried: dict[str, str],
    seconds: float,
) -> Summary:
    totals = writer.totals
    return Summary(
        out=task.out,
        rows=totals.rows,
        errors=totals.errors,
        tokens=totals.tokens,
        seconds=seconds,
        all_rows=totals.rows + sum(entry.scored for entry in begun.own),
        all_errors=totals.errors + sum(entry.errors for entry in begun.own),
        shards=totals.shards,
        shards_before=len(begun.own),
        model=model.name,
        version=model.version,
        fingerprint=model.fingerprint,
        not_carried=not_carried,
        lacking=dict(writer.lacking),
        lost=dict(writer.lost),
        left_out=dict(found.left_out.counts),
        without_rows=tuple(
            source.files[0].name for source, extent in zip(found.sources, extents, strict=True) if extent.rows == 0
        ),
        causes=writer.causes.most_frequent(),
        command=task.command,
    )


def _check_success(summary: Summary, min_success: float, has_rows: bool) -> None:
    """Raises TooFewResults."""
    if not has_rows and min_success > 0:
        raise TooFewResults(
            "the inputs have no rows, so nothing was done. Correct the inputs, or allow this with --min-success=0"
            " (min_success=0)",
            summary,
        )
    if failed := too_few(summary.all_rows, summary.all_errors, min_success):
        raise TooFewResults(
            f"{failed}; min_success is {min_success:g}. {described_errors(summary.causes)} To do the rows again with"
            " other options, use another folder",
            summary,
        )
