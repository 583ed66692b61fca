"""Are calls answered, how fast, and is there capacity left?"""

from __future__ import annotations

from typing import Any

from definitions.boards import JOB, board, models
from definitions.panels import buckets, limit, lines, number, states
from definitions.queries import BY_VERSION, FAILURE, MODELS, PROCESSES, REFUSAL, VERSION, WINDOW, Query

CALLS = "longshort_requests_total"
DURATION = "longshort_request_duration_seconds"
# Calls that name a served model.
NAMED = 'model!=""'
FIRING = 'ALERTS{alertname=~"Longshort.+", alertstate="firing"}'

NOW = (
    number(
        "Servers",
        "Servers that answer Prometheus.",
        "none",
        Query(f"sum({PROCESSES.up()})", "up"),
        ((None, "red"), (1, "green")),
        alerts=["LongshortDown"],
    ),
    number("Calls", "Completed calls per second, with any code.", "reqps", Query(MODELS.rate(CALLS), "calls")),
    number(
        "Failed",
        "Share of calls that end with INTERNAL, UNKNOWN, UNAVAILABLE or DATA_LOSS: server errors.",
        "percentunit",
        Query(MODELS.share(CALLS, FAILURE), "failed"),
        limit(0.01, warn=0.001),
        alerts=["LongshortInternalErrors"],
    ),
    number(
        "Refused",
        "Share of the models' calls that end with RESOURCE_EXHAUSTED: overload, or a limit.",
        "percentunit",
        Query(MODELS.share(CALLS, REFUSAL, NAMED), "refused"),
        limit(0.05, warn=0.01),
        alerts=["LongshortFull"],
    ),
    number(
        "Waiting",
        "Queued requests of language models, and queued images and documents of classifiers.",
        "none",
        Query(MODELS.total("longshort_queue_length"), "waiting"),
        alerts=["LongshortStandsStill"],
    ),
    number(
        "Alerts",
        "Firing alerts of Longshort, by name. The dashboard Runbooks says what to do about each.",
        "none",
        Query(f"count(count by (alertname) ({FIRING})) or vector(0)", "firing"),
        ((None, "green"), (1, "red")),
    ),
)

TRAFFIC = (
    lines(
        "Calls by RPC",
        "Completed calls per second, by RPC.",
        "reqps",
        Query(MODELS.rate(CALLS, by="rpc"), "{{rpc}}"),
        stacked=True,
    ),
    lines(
        "Calls by model",
        "Completed calls per second, by model and version. Calls that name no model have neither.",
        "reqps",
        Query(MODELS.rate(CALLS, by=BY_VERSION), VERSION),
        stacked=True,
    ),
    lines(
        "Calls that are not OK",
        "Calls per second that end with a code other than OK, including client errors.",
        "reqps",
        Query(MODELS.rate(CALLS, 'code!="OK"', by="code"), "{{code}}"),
        stacked=True,
    ),
    lines(
        "Failed, by version",
        "Share of calls with server errors. Roll back a new version that fails more often than the old one.",
        "percentunit",
        Query(MODELS.share(CALLS, FAILURE, by=BY_VERSION), VERSION),
        line_at=0.01,
        alerts=["LongshortInternalErrors"],
    ),
    lines(
        "Refused, by model",
        "Share of a model's calls that end with RESOURCE_EXHAUSTED.",
        "percentunit",
        Query(MODELS.share(CALLS, REFUSAL, NAMED, by="model"), "{{model}}"),
        line_at=0.05,
        alerts=["LongshortFull"],
    ),
    lines(
        "Late, by model",
        "Share of a model's calls that missed their deadline.",
        "percentunit",
        Query(MODELS.share(CALLS, 'code="DEADLINE_EXCEEDED"', NAMED, by="model"), "{{model}}"),
        line_at=0.05,
        alerts=["LongshortLate"],
    ),
)

LATENCY = (
    lines(
        "Duration of calls",
        "Time from a call's arrival to its end, over all calls. A streaming call lasts as long as its generation.",
        "s",
        *MODELS.percentiles(DURATION),
        log=True,
    ),
    lines(
        "Duration by RPC, 95 %",
        "19 of 20 calls of this RPC took no longer.",
        "s",
        Query(MODELS.quantile(0.95, DURATION, by="rpc"), "{{rpc}}"),
        log=True,
    ),
    lines(
        "Duration by version, 95 %",
        "19 of 20 calls on this version took no longer.",
        "s",
        Query(MODELS.quantile(0.95, DURATION, by=BY_VERSION), VERSION),
        log=True,
    ),
    buckets(
        "Durations",
        "Calls per second by duration. Two bands are two kinds of calls.",
        "s",
        MODELS.rate(f"{DURATION}_bucket", by="le"),
        width=12,
    ),
    lines(
        "Time in the queue, 95 %",
        "19 of 20 requests, images and documents were queued no longer.",
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
        "Queue length by model. Autoscalers use it.",
        "none",
        Query(MODELS.total("longshort_queue_length", by="model"), "{{model}}"),
        stacked=True,
    ),
    lines(
        "Workers at work",
        "Steps and batches that run at once, on average; at most the number of workers.",
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
        "CPU cores that the servers keep busy.",
        "none",
        Query(f"sum by (instance) (rate({PROCESSES.select('process_cpu_seconds_total')}[{WINDOW}]))", "{{instance}}"),
        stacked=True,
    ),
    lines(
        "Connections",
        "Open connections of all servers.",
        "none",
        Query(PROCESSES.total("longshort_connections_open"), "gRPC"),
        Query(PROCESSES.total("longshort_http_connections_open"), "HTTP"),
    ),
    lines(
        "Closed connections and slow readers",
        "Per second: connections closed because the client abused HTTP/2 or file descriptors ran out, and "
        "streams and long answers cancelled because the client did not read them; and messages that arrived "
        "compressed, each of which can hold a thousand times its bytes.",
        "cps",
        Query(PROCESSES.rate("longshort_connections_closed_total", by="reason"), "closed: {{reason}}"),
        Query(PROCESSES.rate("longshort_connections_refused_total"), "no descriptor"),
        Query(PROCESSES.rate("longshort_slow_readers_cancelled_total"), "slow readers"),
        Query(PROCESSES.rate("longshort_compressed_messages_total"), "compressed messages"),
        alerts=["LongshortDescriptorsRunOut"],
    ),
    lines(
        "Calls by identity",
        "Calls of each identity in the token file. Empty without a token file.",
        "reqps",
        Query(f"topk(10, {PROCESSES.rate('longshort_identity_requests_total', by='identity')})", "{{identity}}"),
        stacked=True,
    ),
    lines(
        "Tokens by identity",
        "Tokens read and generated for each identity in the token file.",
        "suffix: tok/s",
        Query(f"topk(10, {PROCESSES.rate('longshort_identity_tokens_total', by='identity')})", "{{identity}}"),
        stacked=True,
    ),
    lines(
        "Refused, by identity",
        "Share of each identity's calls that end with RESOURCE_EXHAUSTED: overload, or its limits.",
        "percentunit",
        Query(PROCESSES.share("longshort_identity_requests_total", REFUSAL, by="identity"), "{{identity}}"),
    ),
    states(
        "Alerts",
        "Times at which each alert fired.",
        Query(f"max by (alertname) ({FIRING})", "{{alertname}}"),
        {1: ("fires", "red")},
        width=8,
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
