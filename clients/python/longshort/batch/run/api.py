"""The functions `score`, `classify` and `embed`, which the program `longshort-batch` calls, too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Unpack

from longshort.batch.report.summary import Summary
from longshort.batch.run.addresses import connection_of
from longshort.batch.run.options import BatchOptions, texts_to_classify, texts_to_embed, texts_to_score
from longshort.batch.run.task import Task, run


def score(inputs: str | Sequence[str], out: str, *, region_tokens: int = 0, **options: Unpack[BatchOptions]) -> Summary:
    """Computes the log-likelihood of each row of the inputs under a language model.

    inputs         paths, folders and patterns of files; fsspec URLs, too
    out            the output folder: a path, or an fsspec URL. A run that it holds is resumed
    region_tokens  also compute the bits of each region of this many tokens; 0: do not

    Errors: Refused if the run cannot begin or be resumed; InUse while another run uses the folder; TooFewResults if no
    row, or fewer than `min_success`, have results; another BatchError, or LongshortError, if a run ended that can be
    resumed; ValueError for wrong options.
    """
    return _run(Task("score", inputs, out, texts_to_score(region_tokens), options, region_tokens=region_tokens))


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
    return _run(Task("classify", inputs, out, texts_to_classify(top_k, truncate), options, second=second))


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
    return _run(Task("embed", inputs, out, texts_to_embed(pooling, normalize, truncate), options, second=second))


def _run(task: Task) -> Summary:
    """Runs an event loop for the task, in another thread if the caller's thread has one."""
    # Before there is an event loop, whose signal handlers would wait for a FIFO.
    connection_of(task.options).check_files()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run(task))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run(task)).result()
