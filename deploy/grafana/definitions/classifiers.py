"""How much do classifiers process, in which batches, and how long do items wait?"""

from __future__ import annotations

from typing import Any

from definitions.boards import JOB, board, models
from definitions.panels import buckets, limit, lines, number
from definitions.queries import BY_VERSION, FAILURE, MODELS, VERSION, Query

ITEMS = "longshort_items_total"
BATCH = "longshort_batch_duration_seconds"
PREPARATION = "longshort_preparation_duration_seconds"
QUEUE = "longshort_queue_duration_seconds"

NOW = (
    number(
        "Items",
        "Completed images and documents per second, with any code.",
        "suffix: items/s",
        Query(MODELS.rate(ITEMS), "items"),
    ),
    number(
        "Failed",
        "Share of images and documents with server errors.",
        "percentunit",
        Query(MODELS.share(ITEMS, FAILURE), "failed"),
        limit(0.01, warn=0.001),
        alerts=["LongshortItemsFail"],
    ),
    number(
        "Waiting",
        "Images and documents queued for a batch, including those in preparation.",
        "none",
        Query(MODELS.total("longshort_queued_items"), "waiting"),
        alerts=["LongshortStandsStill"],
    ),
    number(
        "In a batch",
        "Mean number of items in a batch.",
        "none",
        Query(MODELS.mean("longshort_batch_items"), "items"),
    ),
    number("Batch, 95 %", "19 of 20 batches took no longer.", "s", Query(MODELS.quantile(0.95, BATCH), "95 %")),
    number(
        "Preparation, 95 %",
        "19 of 20 images were decoded and resized within this time.",
        "s",
        Query(MODELS.quantile(0.95, PREPARATION), "95 %"),
    ),
)

WORK = (
    lines(
        "Items by version",
        "Completed images and documents per second.",
        "suffix: items/s",
        Query(MODELS.rate(ITEMS, by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Items that are not OK",
        "Images and documents per second that end with a code other than OK, such as damaged images or too long "
        "documents. They fail within calls that are OK.",
        "suffix: items/s",
        Query(MODELS.rate(ITEMS, 'code!="OK"', by="model, code"), "{{model}} {{code}}"),
        stacked=True,
        alerts=["LongshortItemsFail"],
    ),
    lines(
        "Waiting",
        "Images and documents queued for a batch, including those in preparation.",
        "none",
        Query(MODELS.total("longshort_queued_items", by=BY_VERSION), VERSION),
        stacked=True,
        alerts=["LongshortFull"],
    ),
    lines(
        "Work",
        "Multiply-adds of matrix products and convolutions per second.",
        "si:MAC/s",
        Query(MODELS.rate("longshort_multiply_adds_total", by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Tokens",
        "Document tokens read per second.",
        "suffix: tok/s",
        Query(MODELS.rate("longshort_prompt_tokens_total", by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Workers at work",
        "Batches that run at once, on average.",
        "none",
        Query(MODELS.rate(f"{BATCH}_sum", by=BY_VERSION), VERSION),
        stacked=True,
    ),
)

BATCHES = (
    lines("Batches", "Batches per second.", "ops", Query(MODELS.rate(f"{BATCH}_count", by=BY_VERSION), VERSION)),
    lines(
        "Items in a batch",
        "Mean number of items in a batch. Larger batches cost less per item; max_queue_delay lets batches fill up.",
        "none",
        Query(MODELS.mean("longshort_batch_items", by=BY_VERSION), VERSION),
    ),
    lines(
        "Duration of a batch",
        "One run of a model over all items of a batch.",
        "s",
        *MODELS.percentiles(BATCH),
        log=True,
    ),
    buckets(
        "Sizes of batches",
        "Batches per second by number of items.",
        "none",
        MODELS.rate("longshort_batch_items_bucket", by="le"),
        width=12,
    ),
    lines(
        "Duration by version, 95 %",
        "19 of 20 batches of this version took no longer.",
        "s",
        Query(MODELS.quantile(0.95, BATCH, by=BY_VERSION), VERSION),
        log=True,
        width=12,
    ),
)

WAITING = (
    lines(
        "Time in the queue",
        "Time from the end of preparation to the batch.",
        "s",
        *MODELS.percentiles(QUEUE),
        log=True,
        alerts=["LongshortFull"],
    ),
    lines(
        "Preparation of images",
        "Time to decode and resize one image. All models share the threads that do this.",
        "s",
        *MODELS.percentiles(PREPARATION),
        log=True,
    ),
    lines(
        "What an item waits for",
        "Mean times: preparation (images), queue, batch.",
        "s",
        Query(MODELS.mean(PREPARATION), "preparation"),
        Query(MODELS.mean(QUEUE), "queue"),
        Query(MODELS.mean(BATCH), "batch"),
        stacked=True,
    ),
    lines(
        "Batches that failed",
        "Their items were retried.",
        "none",
        Query(f"sum by ({BY_VERSION}) (increase({MODELS.select('longshort_step_failures_total')}[15m]))", VERSION),
        line_at=10,
        width=24,
        alerts=["LongshortStepsFail"],
    ),
)


def make() -> Any:
    series = "longshort_queued_items"
    return board(
        "longshort-classifiers",
        "Classifiers",
        __doc__,
        [JOB, *models(series)],
        [("", NOW), ("Work", WORK), ("Batches", BATCHES), ("Waiting and failures", WAITING)],
    )
