"""How fast are language models, and what do their caches save?"""

from __future__ import annotations

from typing import Any

from definitions.boards import JOB, board, models
from definitions.panels import buckets, limit, lines, number
from definitions.queries import BY_VERSION, MODELS, VERSION, Query

FIRST = "longshort_time_to_first_token_seconds"
NEXT = "longshort_inter_token_duration_seconds"
STEP = "longshort_step_duration_seconds"
HITS = MODELS.rate("longshort_cache_hits_total", by=BY_VERSION)
MISSES = MODELS.rate("longshort_cache_misses_total", by=BY_VERSION)
REUSED = MODELS.rate("longshort_reused_tokens_total", by=BY_VERSION)
READ = MODELS.rate("longshort_prompt_tokens_total", by=BY_VERSION)
IN_TIME = MODELS.rate(f"{FIRST}_bucket", 'le=~"2(\\\\.0)?"', by=BY_VERSION)
LATE = f"1 - {IN_TIME} / {MODELS.rate(f'{FIRST}_count', by=BY_VERSION)}"

NOW = (
    number(
        "Streams",
        "Sequences that hold cache pages: they are being read or generated.",
        "none",
        Query(MODELS.total("longshort_streams_active"), "streams"),
        alerts=["LongshortStandsStill"],
    ),
    number(
        "Waiting",
        "Requests queued for a worker.",
        "none",
        Query(MODELS.total("longshort_queued_requests"), "waiting"),
    ),
    number(
        "Generated",
        "Tokens sampled per second.",
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
        "19 of 20 tokens followed the previous token within this time.",
        "s",
        Query(MODELS.quantile(0.95, NEXT), "95 %"),
        limit(0.5, warn=0.2),
    ),
    number(
        "Cache in use",
        "Share of the cache that running sequences hold, for the model with the highest share.",
        "percentunit",
        Query(f"max({MODELS.select('longshort_cache_use_ratio')})", "in use"),
        limit(0.98, warn=0.9),
    ),
)

STREAMS = (
    lines(
        "Streams",
        "Sequences that hold cache pages, by model and version.",
        "none",
        Query(MODELS.total("longshort_streams_active", by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Waiting",
        "Requests queued for a worker. The server refuses more than --max-queued-requests.",
        "none",
        Query(MODELS.total("longshort_queued_requests", by=BY_VERSION), VERSION),
        stacked=True,
        alerts=["LongshortFull"],
    ),
    lines(
        "Tokens",
        "Tokens per second: read, found in the cache (not read), sampled.",
        "suffix: tok/s",
        Query(MODELS.rate("longshort_prompt_tokens_total"), "read"),
        Query(MODELS.rate("longshort_reused_tokens_total"), "found in the cache"),
        Query(MODELS.rate("longshort_generated_tokens_total"), "sampled"),
    ),
    lines(
        "Sampled, by version",
        "Tokens sampled per second.",
        "suffix: tok/s",
        Query(MODELS.rate("longshort_generated_tokens_total", by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Steps",
        "Steps of the model per second.",
        "ops",
        Query(MODELS.rate(f"{STEP}_count", by=BY_VERSION), VERSION),
    ),
    lines(
        "Rows of a step",
        "Mean number of tokens in a step, over all sequences. Larger steps cost less per token.",
        "none",
        Query(MODELS.mean("longshort_batch_rows", by=BY_VERSION), VERSION),
    ),
)

LATENCY = (
    lines(
        "First token",
        "Time from a request's submission to its first sampled token. The line is the objective.",
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
        "Share of streams whose first token took longer than 2 s. An alert fires after an hour above the line.",
        "percentunit",
        Query(LATE, VERSION),
        line_at=0.05,
        alerts=["LongshortFirstTokensLate"],
    ),
    lines(
        "What the first token waits for",
        "Mean times: in the queue, then reading the prompt.",
        "s",
        Query(MODELS.mean("longshort_queue_duration_seconds"), "queue"),
        Query(MODELS.mean("longshort_prefill_duration_seconds"), "reading the prompt"),
        stacked=True,
    ),
    lines(
        "Between tokens",
        "Time between two sampled tokens of a completion, including pauses of slow readers.",
        "s",
        *MODELS.percentiles(NEXT),
        log=True,
    ),
    lines(
        "Between tokens by version, 95 %",
        "19 of 20 tokens of this version followed within this time.",
        "s",
        Query(MODELS.quantile(0.95, NEXT, by=BY_VERSION), VERSION),
        log=True,
    ),
    buckets(
        "First tokens",
        "Streams per second by the time to their first token.",
        "s",
        MODELS.rate(f"{FIRST}_bucket", by="le"),
        width=12,
    ),
    lines(
        "Duration of a step",
        "Duration of one step over all its rows. --step-time is its target.",
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
        "Bytes of cache pages: used by running sequences, idle (kept for prefixes, sessions and paused streams), free.",
        "bytes",
        Query(MODELS.total("longshort_cache_bytes", by="state"), "{{state}}"),
        stacked=True,
    ),
    lines(
        "Cache in use",
        "Share of the cache that running sequences hold. If it is full, streams wait or pause.",
        "percentunit",
        Query(f"max by ({BY_VERSION}) ({MODELS.select('longshort_cache_use_ratio')})", VERSION),
        most=1,
    ),
    lines(
        "Pages",
        "Cache pages by kind and state. Kept pages are needed to continue a text; spare pages are evicted first.",
        "none",
        Query(MODELS.total("longshort_cache_pages", 'state!="free"', by="kind, state"), "{{kind}} {{state}}"),
        stacked=True,
    ),
    lines(
        "Cache hits",
        "Share of sequences whose first tokens were in the cache.",
        "percentunit",
        Query(f"{HITS} / ({HITS} + {MISSES})", VERSION),
        most=1,
    ),
    lines(
        "Prompt tokens from the cache",
        "Share of prompt tokens that were in the cache.",
        "percentunit",
        Query(f"{REUSED} / ({REUSED} + {READ})", VERSION),
        most=1,
    ),
    lines(
        "Evictions",
        "Evictions per second to make room: parked sessions and paused streams, cached ends, and pages that no "
        "leaf needs.",
        "ops",
        Query(MODELS.rate("longshort_evictions_total", by="kind"), "{{kind}}"),
    ),
    lines(
        "Sessions",
        "Live sessions.",
        "none",
        Query(MODELS.total("longshort_sessions", by="model"), "{{model}}"),
        stacked=True,
    ),
    lines(
        "Tokens of sessions",
        "Tokens of the live sessions.",
        "none",
        Query(MODELS.total("longshort_session_tokens", by="model"), "{{model}}"),
        stacked=True,
    ),
    lines(
        "Cached ends",
        "Ends of cached texts that new texts can continue.",
        "none",
        Query(MODELS.total("longshort_cache_ends", by=BY_VERSION), VERSION),
        stacked=True,
    ),
)

TROUBLE = (
    lines(
        "Steps that failed",
        "Each of their requests is tried again, unless it has failed too often.",
        "none",
        Query(f"sum by ({BY_VERSION}) (increase({MODELS.select('longshort_step_failures_total')}[15m]))", VERSION),
        line_at=10,
        width=12,
        alerts=["LongshortStepsFail"],
    ),
    lines(
        "Workers",
        "Replaced replicas, and failed attempts to replace one, in 5 minutes.",
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
            ("Failures", TROUBLE),
        ],
    )
