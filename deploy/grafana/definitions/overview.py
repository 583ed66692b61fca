"""Are calls answered, how fast, and is there room?"""

from __future__ import annotations

from typing import Any

from definitions.boards import JOB, board, models
from definitions.panels import buckets, limit, lines, number, states
from definitions.queries import FAILURE, MODELS, PROCESSES, REFUSAL, WINDOW, Query

CALLS = "longshort_requests_total"
DURATION = "longshort_request_duration_seconds"
# Calls that came as far as their model.
NAMED = 'model!=""'
FIRING = 'ALERTS{alertname=~"Longshort.+", alertstate="firing"}'

NOW = (
    number(
        "Servers",
        "Servers that answer Prometheus.",
        "none",
        Query(f"sum(up{{{PROCESSES.matchers[0]}}})", "up"),
        ((None, "red"), (1, "green")),
        alerts=["LongshortDown"],
    ),
    number("Calls", "Calls that end each second, whatever their code.", "reqps", Query(MODELS.rate(CALLS), "calls")),
    number(
        "Failed",
        "Share of calls that end INTERNAL, UNKNOWN, UNAVAILABLE or DATA_LOSS: the servers' fault.",
        "percentunit",
        Query(MODELS.share(CALLS, FAILURE), "failed"),
        limit(0.01, warn=0.001),
        alerts=["LongshortInternalErrors"],
    ),
    number(
        "Refused",
        "Share of calls that end RESOURCE_EXHAUSTED, for want of room or by a limit.",
        "percentunit",
        Query(MODELS.share(CALLS, REFUSAL), "refused"),
        limit(0.05, warn=0.01),
        alerts=["LongshortFull"],
    ),
    number(
        "Waiting",
        "Requests of language models, images and documents of classifiers that wait for their turn.",
        "none",
        Query(MODELS.total("longshort_queue_length"), "waiting"),
        alerts=["LongshortStandsStill"],
    ),
    number(
        "Alerts",
        "Alerts of Longshort that fire. What to do about each stands in the dashboard of runbooks.",
        "none",
        Query(f"count({FIRING}) or vector(0)", "firing"),
        ((None, "green"), (1, "red")),
    ),
)

TRAFFIC = (
    lines(
        "Calls by RPC",
        "Calls that end each second, by what they ask.",
        "reqps",
        Query(MODELS.rate(CALLS, by="rpc"), "{{rpc}}"),
        stacked=True,
    ),
    lines(
        "Calls by model",
        "Calls that end each second, by model and version. Calls that name no model have neither.",
        "reqps",
        Query(MODELS.rate(CALLS, by="model, version"), "{{model}} {{version}}"),
        stacked=True,
    ),
    lines(
        "Calls that are not OK",
        "Calls that end with another code than OK each second, clients' mistakes too.",
        "reqps",
        Query(MODELS.rate(CALLS, 'code!="OK"', by="code"), "{{code}}"),
        stacked=True,
    ),
    lines(
        "Failed, by version",
        "Share of calls that fail by the servers' fault. A new version that fails more than the one before is no good.",
        "percentunit",
        Query(MODELS.share(CALLS, FAILURE, by="model, version"), "{{model}} {{version}}"),
        line_at=0.01,
        alerts=["LongshortInternalErrors"],
    ),
    lines(
        "Refused, by model",
        "Share of calls on a model that end RESOURCE_EXHAUSTED.",
        "percentunit",
        Query(MODELS.share(CALLS, REFUSAL, NAMED, by="model"), "{{model}}"),
        line_at=0.05,
        alerts=["LongshortFull"],
    ),
    lines(
        "Late, by model",
        "Share of calls on a model whose deadline passed before they were done.",
        "percentunit",
        Query(MODELS.share(CALLS, 'code="DEADLINE_EXCEEDED"', NAMED, by="model"), "{{model}}"),
        line_at=0.05,
        alerts=["LongshortLate"],
    ),
)

LATENCY = (
    lines(
        "Duration of calls",
        "From a call's arrival to its end, over all calls: streams last as long as their text.",
        "s",
        *MODELS.percentiles(DURATION),
        log=True,
    ),
    lines(
        "Duration by RPC, 95 %",
        "19 of 20 calls of this kind took no longer.",
        "s",
        Query(MODELS.quantile(0.95, DURATION, by="rpc"), "{{rpc}}"),
        log=True,
    ),
    lines(
        "Duration by version, 95 %",
        "19 of 20 calls on this version took no longer.",
        "s",
        Query(MODELS.quantile(0.95, DURATION, by="model, version"), "{{model}} {{version}}"),
        log=True,
    ),
    buckets(
        "Durations",
        "How many calls a second took how long: two bands are two kinds of calls.",
        "s",
        MODELS.rate(f"{DURATION}_bucket", by="le"),
        width=12,
    ),
    lines(
        "Time in the queue, 95 %",
        "How long 19 of 20 requests, images and documents waited at most for their turn.",
        "s",
        Query(MODELS.quantile(0.95, "longshort_queue_duration_seconds", by="model"), "{{model}}"),
        log=True,
        width=12,
        alerts=["LongshortFull", "LongshortLate"],
    ),
)

SATURATION = (
    lines(
        "Waiting",
        "What waits, by model. Scalers add servers by it.",
        "none",
        Query(MODELS.total("longshort_queue_length", by="model"), "{{model}}"),
        stacked=True,
    ),
    lines(
        "Workers at work",
        "Steps and batches that run at once, on average: beyond the number of workers is none.",
        "none",
        Query(
            f"{MODELS.rate('longshort_step_duration_seconds_sum', by='model')} or "
            f"{MODELS.rate('longshort_batch_duration_seconds_sum', by='model')}",
            "{{model}}",
        ),
        stacked=True,
    ),
    lines(
        "Processors",
        "Processors that the servers keep busy.",
        "none",
        Query(f"sum by (instance) (rate({PROCESSES.select('process_cpu_seconds_total')}[{WINDOW}]))", "{{instance}}"),
        stacked=True,
    ),
    lines(
        "Connections",
        "Open gRPC connections, all servers together.",
        "none",
        Query(PROCESSES.total("longshort_connections_open"), "open"),
    ),
    lines(
        "Turned away",
        "Connections closed each second since the client took without giving, or for want of "
        "descriptors; streams and long answers cancelled since nobody read them.",
        "cps",
        Query(PROCESSES.rate("longshort_connections_closed_total", by="reason"), "closed: {{reason}}"),
        Query(PROCESSES.rate("longshort_connections_refused_total"), "no descriptor"),
        Query(PROCESSES.rate("longshort_slow_readers_cancelled_total"), "slow readers"),
        alerts=["LongshortDescriptorsRunOut"],
    ),
    lines(
        "Calls by identity",
        "Calls of each identity of the token file; without such a file there are none.",
        "reqps",
        Query(f"topk(10, {PROCESSES.rate('longshort_identity_requests_total', by='identity')})", "{{identity}}"),
        stacked=True,
    ),
    lines(
        "Tokens by identity",
        "Tokens read and generated for each identity of the token file.",
        "suffix: tok/s",
        Query(f"topk(10, {PROCESSES.rate('longshort_identity_tokens_total', by='identity')})", "{{identity}}"),
        stacked=True,
        width=12,
    ),
    states(
        "Alerts",
        "When each alert fired.",
        Query(f"max by (alertname) ({FIRING})", "{{alertname}}"),
        {1: ("fires", "red")},
    ),
)


def make() -> Any:
    return board(
        "longshort-overview",
        "Overview",
        __doc__,
        [JOB, *models("longshort_model_load_duration_seconds", with_none=True)],
        [("", NOW), ("Traffic and errors", TRAFFIC), ("Latency", LATENCY), ("Saturation and refusals", SATURATION)],
    )
