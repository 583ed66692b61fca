"""Servers compared: are they up, with their models and with memory to spare, and do they share the load evenly?"""

from __future__ import annotations

from typing import Any

from definitions.boards import INSTANCE, JOB, board
from definitions.panels import CALM, limit, lines, number, rows, states
from definitions.queries import SERVERS, WINDOW, Query

START = SERVERS.select("process_start_time_seconds")
MEMORY = f"{SERVERS.select('process_resident_memory_bytes')} / ({SERVERS.select('longshort_memory_limit_bytes')} > 0)"
CALLS = SERVERS.rate("longshort_requests_total", by="instance")
DESCRIPTORS = f"{SERVERS.select('process_open_fds')} / {SERVERS.select('process_max_fds')}"
SERVER = "{{instance}}"

NOW = (
    number(
        "Up",
        "Share of the servers that answer Prometheus.",
        "percentunit",
        Query(f"avg({SERVERS.up()})", "up"),
        ((None, "red"), (1, "green")),
        alerts=["LongshortDown"],
    ),
    number(
        "Versions of Longshort",
        "More than one while servers are being replaced.",
        "none",
        Query(f"count(count by (version) ({SERVERS.select('longshort_build_info')}))", "versions"),
        ((None, "green"), (2, "orange")),
    ),
    number(
        "Most memory",
        "Memory use of the server with the highest share of its limit.",
        "percentunit",
        Query(f"max({MEMORY})", "fullest"),
        limit(0.92, warn=0.85),
        alerts=["LongshortMemoryRunsOut"],
    ),
    number(
        "Restarts",
        "Restarts of servers within 30 minutes.",
        "none",
        Query(f"sum(changes({START}[30m]))", "restarts"),
        limit(3, warn=1),
        alerts=["LongshortRestarts"],
    ),
    number(
        "Imbalance",
        "Calls of the busiest server, divided by the mean: 1 if all are equal.",
        "none",
        Query(f"max({CALLS}) / avg({CALLS})", "busiest / mean"),
        limit(2, warn=1.5),
    ),
    number(
        "Versions not loaded",
        "Model versions that failed to load within a day.",
        "none",
        Query(f"round(sum(increase({SERVERS.select('longshort_model_load_failures_total')}[1d])))", "not loaded"),
        ((None, "green"), (0.5, "red")),
        alerts=["LongshortVersionsDoNotLoad"],
    ),
)

TABLE = (
    rows(
        "Servers",
        "Each server, now.",
        "instance",
        (
            (Query(f"max by (instance, version) ({SERVERS.select('longshort_build_info')})", "Build"), "none", CALM),
            (Query(f"max by (instance) ({SERVERS.up()})", "Up"), "none", ((None, "red"), (1, "green"))),
            (Query(f"max by (instance) (time() - {START})", "Uptime"), "s", CALM),
            (
                Query(f"count by (instance) ({SERVERS.select('longshort_model_load_duration_seconds')})", "Models"),
                "none",
                CALM,
            ),
            (Query(f"max by (instance) ({MEMORY})", "Memory"), "percentunit", limit(0.92, warn=0.85)),
            (Query(SERVERS.total("longshort_streams_active", by="instance"), "Streams"), "none", CALM),
            (Query(SERVERS.total("longshort_queue_length", by="instance"), "Waiting"), "none", CALM),
            (Query(CALLS, "Calls"), "reqps", CALM),
        ),
        alerts=["LongshortDown", "LongshortNotReady"],
    ),
)

LIFE = (
    states(
        "Up",
        "Whether each server answered Prometheus.",
        Query(f"max by (instance) ({SERVERS.up()})", SERVER),
        {0: ("down", "red"), 1: ("up", "green")},
        alerts=["LongshortDown"],
    ),
    lines(
        "Uptime",
        "Time since each server started: a line that falls to zero is a restart.",
        "s",
        Query(f"max by (instance) (time() - {START})", SERVER),
        width=12,
        alerts=["LongshortRestarts"],
    ),
    lines(
        "Models",
        "Loaded model versions. A server without any is not ready.",
        "none",
        Query(f"count by (instance) ({SERVERS.select('longshort_model_load_duration_seconds')})", SERVER),
        alerts=["LongshortNotReady"],
    ),
    lines(
        "Loading",
        "How long each version took to load. A new server needs at least this long to become ready.",
        "s",
        Query(
            f"max by (model, version) ({SERVERS.select('longshort_model_load_duration_seconds')})",
            "{{model}} {{version}}",
        ),
    ),
    lines(
        "Wrong files",
        "Model versions that failed to load, and invalid changes of the token file, in an hour.",
        "none",
        Query(
            f"round(sum by (instance) (increase({SERVERS.select('longshort_model_load_failures_total')}[1h])))",
            "model, {{instance}}",
        ),
        Query(
            f"round(sum by (instance) (increase({SERVERS.select('longshort_token_file_failures_total')}[1h])))",
            "token file, {{instance}}",
        ),
        alerts=["LongshortVersionsDoNotLoad", "LongshortTokenFileWrong"],
    ),
)

BALANCE = (
    lines(
        "Calls",
        "Completed calls per second; equal on all servers if the load is balanced. A draining server falls to "
        "zero before it ends.",
        "reqps",
        Query(CALLS, SERVER),
    ),
    lines(
        "Streams",
        "Sequences that are being read or generated.",
        "none",
        Query(SERVERS.total("longshort_streams_active", by="instance"), SERVER),
    ),
    lines(
        "Waiting",
        "Queued requests, images and documents.",
        "none",
        Query(SERVERS.total("longshort_queue_length", by="instance"), SERVER),
    ),
    lines(
        "Connections",
        "Open gRPC connections. A draining server asks its clients to leave.",
        "none",
        Query(SERVERS.total("longshort_connections_open", by="instance"), SERVER),
    ),
    lines(
        "Duration of calls, 95 %",
        "19 of 20 calls on this server took no longer.",
        "s",
        Query(SERVERS.quantile(0.95, "longshort_request_duration_seconds", by="instance"), SERVER),
        log=True,
    ),
    lines(
        "Session transfers",
        "Sessions imported from and exported to other servers, per second.",
        "ops",
        Query(
            SERVERS.rate("longshort_requests_total", 'rpc="ImportSession"', 'code="OK"', by="instance"),
            "imported by {{instance}}",
        ),
        Query(
            SERVERS.rate("longshort_requests_total", 'rpc="ExportSession"', 'code="OK"', by="instance"),
            "exported by {{instance}}",
        ),
    ),
)

ROOM = (
    lines(
        "Memory",
        "Share of its memory limit that the process uses. At 100 % the system kills it.",
        "percentunit",
        Query(f"max by (instance) ({MEMORY})", SERVER),
        most=1,
        line_at=0.92,
        alerts=["LongshortMemoryRunsOut"],
    ),
    lines(
        "Memory in bytes",
        "Memory that the process uses, and the part reserved for the caches of language models.",
        "bytes",
        Query(SERVERS.total("process_resident_memory_bytes", by="instance"), SERVER),
        Query(SERVERS.total("longshort_cache_bytes", by="instance"), "caches, {{instance}}"),
    ),
    lines(
        "Processors",
        "CPU cores that each server keeps busy.",
        "none",
        Query(f"sum by (instance) (rate({SERVERS.select('process_cpu_seconds_total')}[{WINDOW}]))", SERVER),
    ),
    lines(
        "Descriptors",
        "Share of its file descriptors that the process has open. The server refuses connections when it "
        "has none left.",
        "percentunit",
        Query(f"max by (instance) ({DESCRIPTORS})", SERVER),
        line_at=0.8,
        alerts=["LongshortDescriptorsRunOut"],
    ),
    lines(
        "Certificates",
        "Time until each file expires. The servers reload changed files. Empty without TLS.",
        "s",
        Query(
            f"min by (instance, file) ({SERVERS.select('longshort_tls_certificate_expiry_seconds')} - time())",
            "{{file}}, {{instance}}",
        ),
        alerts=["LongshortCertificateExpires"],
    ),
    lines(
        "Lost traces",
        "Spans that did not reach the collector, and failed attempts to send them, per second. Zero without traces.",
        "cps",
        Query(
            SERVERS.rate("longshort_spans_dropped_total", 'reason!="call_limit"', by="instance, reason"),
            "{{reason}}, {{instance}}",
        ),
        Query(SERVERS.rate("longshort_span_export_failures_total", by="instance"), "attempts, {{instance}}"),
        alerts=["LongshortTracesAreLost"],
    ),
)


def make() -> Any:
    return board(
        "longshort-fleet",
        "Fleet",
        __doc__,
        [JOB, INSTANCE],
        [("", NOW), ("", TABLE), ("Life cycle", LIFE), ("Balance and drain", BALANCE), ("Resources", ROOM)],
    )
