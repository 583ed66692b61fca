"""How many images and documents are classified, in which batches, and what do they wait for?"""

from __future__ import annotations

from typing import Any

from definitions.boards import JOB, board, models
from definitions.panels import buckets, limit, lines, number
from definitions.queries import FAILURE, MODELS, Query

ITEMS = "longshort_items_total"
BATCH = "longshort_batch_duration_seconds"
PREPARATION = "longshort_preparation_duration_seconds"
QUEUE = "longshort_queue_duration_seconds"
BY_VERSION = "model, version"
VERSION = "{{model}} {{version}}"

NOW = (
    number(
        "Items",
        "Images and documents that end each second, whatever their code.",
        "suffix: items/s",
        Query(MODELS.rate(ITEMS), "items"),
    ),
    number(
        "Failed",
        "Share of images and documents that fail by the server's fault.",
        "percentunit",
        Query(MODELS.share(ITEMS, FAILURE), "failed"),
        limit(0.01, warn=0.001),
        alerts=["LongshortItemsFail"],
    ),
    number(
        "Waiting",
        "Images and documents that wait for a batch, those in preparation included.",
        "none",
        Query(MODELS.total("longshort_queued_items"), "waiting"),
        alerts=["LongshortStandsStill"],
    ),
    number(
        "In a batch",
        "Items that one batch has, on average.",
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
        "Images and documents that end each second.",
        "suffix: items/s",
        Query(MODELS.rate(ITEMS, by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Items that are not OK",
        "Images and documents that end with another code than OK each second: damaged images, "
        "documents that are too long. They fail alone, in calls that are OK.",
        "suffix: items/s",
        Query(MODELS.rate(ITEMS, 'code!="OK"', by="model, code"), "{{model}} {{code}}"),
        stacked=True,
        alerts=["LongshortItemsFail"],
    ),
    lines(
        "Waiting",
        "Images and documents that wait for a batch, those in preparation included.",
        "none",
        Query(MODELS.total("longshort_queued_items", by=BY_VERSION), VERSION),
        stacked=True,
        alerts=["LongshortFull"],
    ),
    lines(
        "Work",
        "Multiply-adds of matrix products and convolutions each second.",
        "si:MAC/s",
        Query(MODELS.rate("longshort_multiply_adds_total", by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Tokens",
        "Tokens of documents read each second.",
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
    lines(
        "Batches", "Batches that run each second.", "ops", Query(MODELS.rate(f"{BATCH}_count", by=BY_VERSION), VERSION)
    ),
    lines(
        "Items in a batch",
        "On average. More at once cost less each; max_queue_delay has batches wait for more.",
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
        "How many batches a second had how many items.",
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
        "From being prepared to the batch.",
        "s",
        *MODELS.percentiles(QUEUE),
        log=True,
        alerts=["LongshortFull"],
    ),
    lines(
        "Preparation of images",
        "Decoding and resizing one image. All models share the threads that do it.",
        "s",
        *MODELS.percentiles(PREPARATION),
        log=True,
    ),
    lines(
        "What an item waits for",
        "Means: being prepared (images), in the queue, in its batch.",
        "s",
        Query(MODELS.mean(PREPARATION), "preparation"),
        Query(MODELS.mean(QUEUE), "queue"),
        Query(MODELS.mean(BATCH), "batch"),
        stacked=True,
    ),
    lines(
        "Batches that failed",
        "Their items were tried again.",
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
        [("", NOW), ("Work", WORK), ("Batches", BATCHES), ("Waiting and trouble", WAITING)],
    )
