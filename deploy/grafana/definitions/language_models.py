"""How fast do language models read and write, and what do their caches save?"""

from __future__ import annotations

from typing import Any

from definitions.boards import JOB, board, models
from definitions.panels import buckets, limit, lines, number
from definitions.queries import MODELS, Query

FIRST = "longshort_time_to_first_token_seconds"
NEXT = "longshort_inter_token_duration_seconds"
STEP = "longshort_step_duration_seconds"
BY_VERSION = "model, version"
VERSION = "{{model}} {{version}}"
HITS = MODELS.rate("longshort_cache_hits_total", by=BY_VERSION)
MISSES = MODELS.rate("longshort_cache_misses_total", by=BY_VERSION)
REUSED = MODELS.rate("longshort_reused_tokens_total", by=BY_VERSION)
READ = MODELS.rate("longshort_prompt_tokens_total", by=BY_VERSION)
IN_TIME = MODELS.rate(f"{FIRST}_bucket", 'le="2"', by=BY_VERSION)
LATE = f"1 - {IN_TIME} / {MODELS.rate(f'{FIRST}_count', by=BY_VERSION)}"

NOW = (
    number(
        "Streams",
        "Sequences that hold cache: texts that are being read or written.",
        "none",
        Query(MODELS.total("longshort_streams_active"), "streams"),
        alerts=["LongshortStandsStill"],
    ),
    number(
        "Waiting",
        "Requests that wait for a worker.",
        "none",
        Query(MODELS.total("longshort_queued_requests"), "waiting"),
    ),
    number(
        "Written",
        "Tokens sampled each second.",
        "suffix: tok/s",
        Query(MODELS.rate("longshort_generated_tokens_total"), "generated"),
    ),
    number(
        "First token, 95 %",
        "19 of 20 streams had their first token within this time. The objective is 2 s.",
        "s",
        Query(MODELS.quantile(0.95, FIRST), "95 %"),
        limit(2, warn=1),
        alerts=["LongshortFirstTokensLate"],
    ),
    number(
        "Between tokens, 95 %",
        "19 of 20 tokens came within this time after the one before.",
        "s",
        Query(MODELS.quantile(0.95, NEXT), "95 %"),
        limit(0.5, warn=0.2),
    ),
    number(
        "Cache in use",
        "Part of the caches that running sequences hold, of the fullest model.",
        "percentunit",
        Query(f"max({MODELS.select('longshort_cache_use_ratio')})", "in use"),
        limit(0.98, warn=0.9),
    ),
)

STREAMS = (
    lines(
        "Streams",
        "Sequences that hold cache, by model and version.",
        "none",
        Query(MODELS.total("longshort_streams_active", by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Waiting",
        "Requests that wait for a worker. Beyond --max-queued-requests they are refused.",
        "none",
        Query(MODELS.total("longshort_queued_requests", by=BY_VERSION), VERSION),
        stacked=True,
        alerts=["LongshortFull"],
    ),
    lines(
        "Tokens",
        "Tokens each second: read, found in the cache and so not read, sampled.",
        "suffix: tok/s",
        Query(MODELS.rate("longshort_prompt_tokens_total"), "read"),
        Query(MODELS.rate("longshort_reused_tokens_total"), "found in the cache"),
        Query(MODELS.rate("longshort_generated_tokens_total"), "sampled"),
    ),
    lines(
        "Sampled, by version",
        "Tokens sampled each second.",
        "suffix: tok/s",
        Query(MODELS.rate("longshort_generated_tokens_total", by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Steps",
        "Runs of the model each second, over all its rows.",
        "ops",
        Query(MODELS.rate(f"{STEP}_count", by=BY_VERSION), VERSION),
    ),
    lines(
        "Rows of a step",
        "Tokens that one step computes, over all sequences, on average: more at once cost less each.",
        "none",
        Query(MODELS.mean("longshort_batch_rows", by=BY_VERSION), VERSION),
    ),
)

LATENCY = (
    lines(
        "First token",
        "From a request's submission to its first sampled token. The line is the objective.",
        "s",
        *MODELS.percentiles(FIRST),
        line_at=2,
        log=True,
        alerts=["LongshortFirstTokensLate"],
    ),
    lines(
        "First token by version, 95 %",
        "19 of 20 streams of this version had their first token within this time.",
        "s",
        Query(MODELS.quantile(0.95, FIRST, by=BY_VERSION), VERSION),
        line_at=2,
        log=True,
        alerts=["LongshortFirstTokensLate"],
    ),
    lines(
        "Late first tokens",
        "Share of streams whose first token took longer than 2 s. Beyond the line for an hour, an alert fires.",
        "percentunit",
        Query(LATE, VERSION),
        line_at=0.05,
        alerts=["LongshortFirstTokensLate"],
    ),
    lines(
        "What the first token waits for",
        "Means: in the queue, for a place; then while the prompt is read.",
        "s",
        Query(MODELS.mean("longshort_queue_duration_seconds"), "queue"),
        Query(MODELS.mean("longshort_prefill_duration_seconds"), "reading the prompt"),
        stacked=True,
    ),
    lines(
        "Between tokens",
        "Between two sampled tokens of a text, pauses of slow readers included.",
        "s",
        *MODELS.percentiles(NEXT),
        log=True,
    ),
    lines(
        "Between tokens by version, 95 %",
        "19 of 20 tokens of this version came within this time.",
        "s",
        Query(MODELS.quantile(0.95, NEXT, by=BY_VERSION), VERSION),
        log=True,
    ),
    buckets(
        "First tokens",
        "How many streams a second had their first token after how long.",
        "s",
        MODELS.rate(f"{FIRST}_bucket", by="le"),
        width=12,
    ),
    lines(
        "Duration of a step",
        "One run of the model over all its rows. --step-time aims at it.",
        "s",
        *MODELS.percentiles(STEP),
        log=True,
        width=12,
        alerts=["LongshortStandsStill"],
    ),
)

CACHE = (
    lines(
        "Cache",
        "Bytes of cache pages: used by running sequences, idle (kept, so that texts that begin alike, sessions "
        "and paused streams need not be read again), free.",
        "bytes",
        Query(MODELS.total("longshort_cache_bytes", by="state"), "{{state}}"),
        stacked=True,
    ),
    lines(
        "Cache in use",
        "Part of the cache that running sequences hold. Full, streams wait or pause.",
        "percentunit",
        Query(f"max by ({BY_VERSION}) ({MODELS.select('longshort_cache_use_ratio')})", VERSION),
        most=1,
    ),
    lines(
        "Pages",
        "Pages of the cache by kind and state; kept ones are needed to go on somewhere, spare ones go first.",
        "none",
        Query(MODELS.total("longshort_cache_pages", 'state!="free"', by="kind, state"), "{{kind}} {{state}}"),
        stacked=True,
    ),
    lines(
        "Begun behind what was read",
        "Share of sequences that began with tokens that the cache had.",
        "percentunit",
        Query(f"{HITS} / ({HITS} + {MISSES})", VERSION),
        most=1,
    ),
    lines(
        "Prompt tokens not read",
        "Share of the prompts' tokens that the cache had.",
        "percentunit",
        Query(f"{REUSED} / ({REUSED} + {READ})", VERSION),
        most=1,
    ),
    lines(
        "Evictions",
        "What was given up each second to make room: sessions and paused streams, ends that others might "
        "have begun behind, pages that no end needed.",
        "ops",
        Query(MODELS.rate("longshort_evictions_total", by="kind"), "{{kind}}"),
    ),
    lines(
        "Sessions",
        "Sessions that live.",
        "none",
        Query(MODELS.total("longshort_sessions", by="model"), "{{model}}"),
        stacked=True,
    ),
    lines(
        "Tokens of sessions",
        "Tokens that these sessions hold.",
        "none",
        Query(MODELS.total("longshort_session_tokens", by="model"), "{{model}}"),
        stacked=True,
    ),
    lines(
        "Ends",
        "Ends of what was read before that others can begin behind.",
        "none",
        Query(MODELS.total("longshort_cache_ends", by=BY_VERSION), VERSION),
        stacked=True,
    ),
)

TROUBLE = (
    lines(
        "Steps that failed",
        "Their requests were tried again.",
        "none",
        Query(f"sum by ({BY_VERSION}) (increase({MODELS.select('longshort_step_failures_total')}[15m]))", VERSION),
        line_at=10,
        width=12,
        alerts=["LongshortStepsFail"],
    ),
    lines(
        "Workers",
        "Workers that got a new replica of their model, and times that one could get none, in 5 minutes.",
        "none",
        Query(f"sum(increase({MODELS.select('longshort_worker_rebuilds_total')}[5m]))", "new replica"),
        Query(f"sum(increase({MODELS.select('longshort_worker_rebuild_failures_total')}[5m]))", "no replica"),
        line_at=5,
        width=12,
        alerts=["LongshortWorkersWithoutModel"],
    ),
)


def make() -> Any:
    series = "longshort_streams_active"
    return board(
        "longshort-language-models",
        "Language models",
        __doc__,
        [JOB, *models(series)],
        [
            ("", NOW),
            ("Streams and tokens", STREAMS),
            ("Latency", LATENCY),
            ("Cache and sessions", CACHE),
            ("Trouble", TROUBLE),
        ],
    )
