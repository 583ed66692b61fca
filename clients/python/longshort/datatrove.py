"""Blocks for datatrove's pipelines that annotate documents with a model's figures, and filter by them.

    LocalPipelineExecutor(
        pipeline=[
            ParquetReader("corpus"),
            BitsPerByteFilter(at_most=2.5, server="127.0.0.1:8500", model="enwiki"),
            ParquetWriter("kept"),
        ],
        tasks=8,
    ).run()

Needs `pip install './clients/python[datatrove]'`, in the repository. The figures are in a document's metadata, with
names that begin with "longshort_": longshort_bits_per_byte, longshort_label, ... (docs/batch_pipelines.md). A document
without figures has longshort_error.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, Unpack

import grpc

from longshort import inputs
from longshort._extras import missing
from longshort.requests import check_options

try:
    from datatrove.data import Document, DocumentsPipeline  # type: ignore[import-untyped]
    from datatrove.pipeline.base import PipelineStep  # type: ignore[import-untyped]
    from datatrove.pipeline.filters.base_filter import BaseFilter  # type: ignore[import-untyped]
    from datatrove.pipeline.writers.disk_base import DiskWriter  # type: ignore[import-untyped]

    from longshort.batch.inputs.rows import RowError, checked_document, checked_text
    from longshort.batch.output.result_columns import columns
    from longshort.batch.run.addresses import connection_of
    from longshort.batch.run.options import ServerOptions
    from longshort.batch.run.pool import Pool
except ModuleNotFoundError as error:
    raise missing("longshort.datatrove", "datatrove", error) from None

__all__ = ["Annotator", "BitsPerByteFilter", "BlockOptions", "ClassFilter"]

PREFIX = "longshort_"
# One batch is being returned, one is in flight, one is being read.
_BATCHES_AHEAD = 3


class BlockOptions(ServerOptions, total=False):
    """Keyword arguments of all blocks, besides those of longshort.batch.run.options.ServerOptions: server, model,
    priority, client_id, timeout, patience, ... Use `token_file` instead of `token`: datatrove writes a block's
    arguments to its logs.

    batch_size  documents that are sent together; three such batches are in memory. Default 256
    """

    batch_size: int


class _Figures:
    """Adds figures to the metadata of documents, in order. Each task has its own connections."""

    def __init__(
        self, command: Literal["score", "classify"], own: dict[str, Any], options: BlockOptions, second: str = ""
    ) -> None:
        """`second`: the name of the second document in the metadata."""
        check_options(options, BlockOptions)
        if "token" in options:
            raise ValueError("token: datatrove would write it to its logs; use token_file")
        if second and command == "score":
            raise ValueError("second is only for classify")
        self.command: Literal["score", "classify"] = command
        self.second = second
        self.batch_size = options.get("batch_size", 256)
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}; it must be at least 1")
        self.pool: dict[str, Any] = {**own, **options}
        self.pool.pop("batch_size", None)
        connection_of(options)  # raises early, rather than in a task

    def __repr__(self) -> str:
        return f"{self.command} {self.pool}"

    def add(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Raises LongshortError if no server is available, and ModelChanged."""
        with (
            Pool(self.command, documents=2 if self.second else 1, **self.pool) as pool,
            ThreadPoolExecutor(_BATCHES_AHEAD - 1) as threads,
        ):
            ahead: deque[tuple[list[Document], Future[list[dict[str, Any] | RowError]]]] = deque()
            given = iter(documents)
            while batch := list(itertools.islice(given, self.batch_size)):
                ahead.append((batch, threads.submit(self._results, pool, batch)))
                if len(ahead) == _BATCHES_AHEAD:
                    yield from self._answered(*ahead.popleft())
            while ahead:
                yield from self._answered(*ahead.popleft())

    def _results(self, pool: Pool, batch: list[Document]) -> list[dict[str, Any] | RowError]:
        asked = [self._texts(document) for document in batch]
        answers = iter(pool.results([one for one in asked if not isinstance(one, RowError)]))
        return [one if isinstance(one, RowError) else next(answers) for one in asked]

    def _texts(self, document: Document) -> inputs.Document | RowError:
        try:
            if not self.second:
                return checked_text(document.text, "text")
            return checked_document([document.text, document.metadata.get(self.second)], ["text", self.second])
        except ValueError as error:
            return RowError(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _answered(self, batch: list[Document], results: Future[list[dict[str, Any] | RowError]]) -> Iterator[Document]:
        own = ("error", *columns(self.command, self.pool.get("region_tokens", 0)).names)
        for document, found in zip(batch, results.result(), strict=True):
            # Those of an earlier block or run are of another model.
            for name in own:
                document.metadata.pop(f"{PREFIX}{name}", None)
            if isinstance(found, RowError):
                document.metadata[f"{PREFIX}error"] = f"{found.code.name}: {found.message}"
            else:
                document.metadata |= {f"{PREFIX}{name}": value for name, value in found.items()}
            yield document


class Annotator(PipelineStep):  # type: ignore[misc]
    """Adds a model's figures to each document's metadata.

    command        "score" for language models, "classify" for classifiers
    region_tokens  score: also add the bits of each region of this many tokens; 0 adds none
    top_k          classify: number of classes to add, most probable first
    truncate       classify: truncate documents to the model's maximum length
    second         classify: the name of the second document in the metadata, for models that compare or join two
    """

    name = "Longshort annotator"
    type = "📊 - ANNOTATOR"

    def __init__(
        self,
        command: Literal["score", "classify"],
        *,
        region_tokens: int = 0,
        top_k: int = 5,
        truncate: bool = False,
        second: str = "",
        **options: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        own: dict[str, Any] = {"region_tokens": region_tokens}
        if command == "classify":
            own = {"top_k": top_k, "truncate": truncate}
        self.figures = _Figures(command, own, options, second)

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        for document in self.figures.add(data):
            self.stat_update("errors" if f"{PREFIX}error" in document.metadata else "annotated")
            self.update_doc_stats(document)
            yield document


class _Filter(BaseFilter):  # type: ignore[misc]
    """Adds figures to documents and filters by them. Drops documents without figures."""

    def __init__(self, figures: _Figures, exclusion_writer: DiskWriter | None) -> None:
        super().__init__(exclusion_writer)
        self.figures = figures

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        yield from super().run(self.figures.add(data), rank, world_size)


class BitsPerByteFilter(_Filter):
    """Keeps documents with at least `at_least` and at most `at_most` bits per byte. A document that is probable under
    the language model has few bits. Writes dropped documents to `exclusion_writer`, with the reason: too_few_bits,
    too_many_bits, no_figure."""

    name = "Longshort bits per byte"

    def __init__(
        self,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        exclusion_writer: DiskWriter | None = None,
        **options: Unpack[BlockOptions],
    ) -> None:
        if at_least is None and at_most is None:
            raise ValueError("at_least, at_most: give one of them, or both")
        super().__init__(_Figures("score", {}, options), exclusion_writer)
        self.at_least = at_least
        self.at_most = at_most

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        bits = doc.metadata.get(f"{PREFIX}bits_per_byte")
        if bits is None:
            return False, "no_figure"
        if self.at_least is not None and bits < self.at_least:
            return False, "too_few_bits"
        if self.at_most is not None and bits > self.at_most:
            return False, "too_many_bits"
        return True


class ClassFilter(_Filter):
    """Keeps documents whose class `label` has a probability of at least `at_least` and at most `at_most`. Writes
    dropped documents to `exclusion_writer`, with the reason: too_unlikely, too_likely, no_figure.

    truncate  truncate documents to the model's maximum length; otherwise longer ones have no figure
    second    the name of the second document in the metadata, for models that compare or join two
    """

    name = "Longshort class"

    def __init__(
        self,
        label: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        truncate: bool = False,
        second: str = "",
        exclusion_writer: DiskWriter | None = None,
        **options: Unpack[BlockOptions],
    ) -> None:
        if at_least is None and at_most is None:
            raise ValueError("at_least, at_most: give one of them, or both")
        figures = _Figures("classify", {"top_k": _ALL_CLASSES, "truncate": truncate}, options, second)
        super().__init__(figures, exclusion_writer)
        self.label = label
        self.at_least = at_least
        self.at_most = at_most

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        classes = doc.metadata.get(f"{PREFIX}classes")
        if classes is None:
            return False, "no_figure"
        found = {one["label"]: one["probability"] for one in classes}
        if self.label not in found:
            raise ValueError(f"the model has no class {self.label!r}; it has: {', '.join(sorted(found))}")
        if self.at_least is not None and found[self.label] < self.at_least:
            return False, "too_unlikely"
        if self.at_most is not None and found[self.label] > self.at_most:
            return False, "too_likely"
        return True


# More than any model has.
_ALL_CLASSES = 1 << 20
