"""What collectors of traces do to a server: nothing, whatever they do. What is lost is counted."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from integration.certificates import Authority
from integration.collector import PROMPT, Collector, secure
from integration.server_process import Server, run, wait_until

EXPORTED, DROPPED = "longshort_spans_exported_total", "longshort_spans_dropped_total"
FAILURES = "longshort_span_export_failures_total"


def traced(repository: Path, folder: Path, collector: Collector | str, *arguments: str, **environment: str) -> Server:
    address = collector if isinstance(collector, str) else collector.address
    options = ["--log-format=json", f"--otlp-endpoint={address}", *arguments]
    return Server(repository, folder, *options, environment=PROMPT | environment)


def ask(api: SimpleNamespace, server: Server, name: str) -> None:
    """A call with one span."""
    request = api.inference.TokenizeRequest(input={"text": "x"})
    stub = api.inference_grpc.InferenceStub(server.channel)
    stub.Tokenize(request, timeout=60, metadata=[("x-request-id", name)])


def messages(server: Server) -> list[str]:
    lines = [json.loads(line) for line in server.log().splitlines()]
    return [line["message"] for line in lines if "export" in line["message"] or "collector" in line["message"]]


def failures(server: Server) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in server.log().splitlines()]
    return [line for line in lines if line["message"] == "export of traces failed"]


def free_port() -> int:
    with Collector() as gone:
        return gone.port


def test_a_collector_that_comes_back_gets_what_was_kept(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    port = free_port()
    with traced(repository, tmp_path, f"127.0.0.1:{port}") as server:
        ask(api, server, "before")
        wait_until(lambda: server.metric(FAILURES) >= 2)
        ask(api, server, "between")
        with Collector(port) as collector:
            assert collector.call("before")
            assert collector.call("between")
            ask(api, server, "behind")
            assert collector.call("behind")
            wait_until(lambda: server.metric(EXPORTED) == 3)
        assert server.metric(DROPPED) == 0
        wait_until(lambda: len(messages(server)) == 2)
        assert messages(server) == ["export of traces failed", "traces are exported again"]


def test_variables_of_proxies_keep_no_traces_away(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    proxy = f"http://127.0.0.1:{free_port()}"
    with (
        Collector() as collector,
        traced(repository, tmp_path, collector, http_proxy=proxy, no_proxy="", grpc_proxy=proxy) as server,
    ):
        ask(api, server, "x")
        assert collector.call("x")
        assert server.metric(FAILURES) == 0


def test_a_stalled_collector_costs_calls_nothing(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    small = {"OTEL_BSP_MAX_QUEUE_SIZE": "20", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10"}
    with (
        Collector() as collector,
        traced(repository, tmp_path, collector, "--drain-timeout=20s", **small) as server,
    ):
        collector.answers.clear()
        ask(api, server, "first")
        wait_until(lambda: collector.waiting == 1)
        for number in range(50):
            ask(api, server, f"call-{number}")
        # One is on its way, and 20 wait.
        assert server.metric(DROPPED, reason="queue_full") == 30
        assert server.metric(EXPORTED) == 0
        assert collector.waiting == 1, "one at a time is on its way"
        collector.answers.set()
        wait_until(lambda: server.metric(EXPORTED) == 21)
        assert sorted(span.attributes["longshort.request.id"] for span in collector.spans()) == sorted(
            ["first", *(f"call-{number}" for number in range(20))]
        )
        # Nor does it keep a server that stops for longer than 3 s.
        collector.answers.clear()
        ask(api, server, "last")
        wait_until(lambda: collector.waiting == 1)
        begin = time.monotonic()
        server.terminate()
        assert server.wait() == 0
        assert time.monotonic() - begin < 15


def test_a_collector_without_room_is_asked_again_when_it_says(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    with Collector() as collector, traced(repository, tmp_path, collector) as server:
        collector.refusals.append((429, {"Retry-After": "1"}))
        ask(api, server, "patient")
        wait_until(lambda: collector.refused == 1)
        begin = time.monotonic()
        collector.call("patient")
        # More than the half second, give or take a fifth, of the first pause.
        assert time.monotonic() - begin > 0.7
        assert (server.metric(FAILURES), server.metric(DROPPED)) == (1, 0)

        # Others do not want what they got.
        for status in (413, 400):
            collector.refusals.append((status, {}))
            ask(api, server, f"status-{status}")
            wait_until(lambda: collector.refusals == [])
        ask(api, server, "behind")
        collector.call("behind")
        assert [collector.calls(name) for name in ("status-413", "status-400")] == [[], []]
        assert server.metric(DROPPED, reason="export_failed") == 2
        wait_until(lambda: len(failures(server)) == 2)
        assert [(line["error"], line["next"]) for line in failures(server)] == [
            ("HTTP status 429 from /v1/traces: not now", "the spans are sent again"),
            ("HTTP status 413 from /v1/traces: not now", "the spans are dropped"),
        ]

        collector.rejects = 1
        ask(api, server, "rejected")
        wait_until(lambda: server.metric(DROPPED, reason="rejected") == 1)
        assert server.metric(EXPORTED) == 2
        wait_until(lambda: "the collector rejects spans" in messages(server))


def test_queued_spans_are_exported_at_the_end(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    late = {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}
    with Collector() as collector, traced(repository, tmp_path, collector, **late) as server:
        for number in range(5):
            ask(api, server, f"call-{number}")
        server.terminate()
        assert server.wait() == 0
        assert len(collector.spans()) == 5
        assert len(collector.requests) == 1


def test_a_server_ends_without_its_collector(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    with traced(repository, tmp_path, f"127.0.0.1:{free_port()}") as server:
        ask(api, server, "unheard")
        wait_until(lambda: server.metric(FAILURES) >= 1)
        begin = time.monotonic()
        server.terminate()
        assert server.wait() == 0
        assert time.monotonic() - begin < 15


# The resolver of names waits two minutes for its servers.
SLOW_RESOLVER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>
int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints, struct addrinfo** found) {
  typedef int (*Resolve)(const char*, const char*, const struct addrinfo*, struct addrinfo**);
  unsigned left = name != NULL && strcmp(name, "collector.invalid") == 0 ? 120 : 0;
  while (left > 0) left = sleep(left);  // signals end it
  return ((Resolve)dlsym(RTLD_NEXT, "getaddrinfo"))(name, service, hints, found);
}
"""


@pytest.mark.not_sanitized("the sanitizers' library must be the first")
def test_a_server_ends_though_the_collectors_name_is_being_resolved(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    source, library = tmp_path / "resolver.c", tmp_path / "resolver.so"
    source.write_text(SLOW_RESOLVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.invalid:4318",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "LD_PRELOAD": str(library),
    }
    with Server(repository, tmp_path, "--log-format=json", environment=PROMPT | variables) as server:
        ask(api, server, "unheard")
        begin = time.monotonic()
        server.terminate()
        assert server.wait() == 0
        assert time.monotonic() - begin < 10


def test_a_collector_may_speak_tls_and_want_a_certificate(
    api: SimpleNamespace, repository: Path, tmp_path: Path, authority: Authority
) -> None:
    """And have its messages packed."""
    certificate, key = authority.server().write(tmp_path, "collector")
    own_certificate, own_key = authority.client("server").write(tmp_path, "own")
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
    files = {
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(trusted),
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(own_certificate),
        "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(own_key),
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    }
    with (
        Collector(tls=secure(certificate, key, clients=authority.pem)) as collector,
        traced(repository, tmp_path / "server", f"https://{collector.address}", **files) as server,
    ):
        ask(api, server, "encrypted")
        collector.call("encrypted")
        assert collector.fields[0]["content-encoding"] == "gzip"
        assert server.metric(FAILURES) == 0


def test_a_collector_without_a_trusted_certificate_gets_nothing(
    api: SimpleNamespace, repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(clients.pem)
    files = {"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": str(trusted)}
    with (
        Collector(tls=secure(*authority.server().write(tmp_path, "collector"))) as collector,
        traced(repository, tmp_path / "server", f"https://{collector.address}", **files) as server,
    ):
        ask(api, server, "secret")
        wait_until(lambda: server.metric(FAILURES) >= 1)
        assert collector.requests == []


def check_config(repository: Path, monkeypatch: Any, *arguments: str, **environment: str) -> tuple[int, str]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = run(f"--model-repository={repository}", "--check-config", *arguments)
    return done.returncode, done.stdout + done.stderr


def test_check_config_says_where_traces_go(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_SAMPLER": "traceidratio"}
    code, text = check_config(
        repository,
        monkeypatch,
        OTEL_TRACES_SAMPLER_ARG="0.25",
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        **variables,
    )
    assert code == 0
    assert "with traces to collector:4318/v1/traces, 25 % of all\n" in text
    code, text = check_config(repository, monkeypatch, "--otlp-endpoint=other:1", "--trace-sample-ratio=1")
    assert "with traces to other:1/v1/traces, 100 % of those that begin here\n" in text


@pytest.mark.parametrize(
    "variable",
    [
        "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
        "OTEL_TRACES_SAMPLER=parentbased_jaeger_remote",
        "OTEL_PROPAGATORS=b3",
        "OTEL_TRACES_EXPORTER=otlp,console",
        "OTEL_BSP_SCHEDULE_DELAY=x",
        "OTEL_EXPORTER_OTLP_ENDPOINT=collector",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=unix:///run/collector.sock",
        "OTEL_EXPORTER_OTLP_HEADERS=secret",
    ],
)
def test_a_variable_that_others_set_does_not_end_the_start(
    repository: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    name, value = variable.split("=", 1)
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"} | {name: value}
    code, text = check_config(repository, monkeypatch, **environment)
    assert code == 0, text
    (line,) = [line for line in text.splitlines() if "environment variable ignored" in line]
    assert name in line
    assert "secret" not in line


def test_spans_go_where_the_variables_say(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    """With the collector's fields, packed, and again after refusals and closed connections."""
    with Collector() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.address}/base",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_HEADERS": "X-Key=a%20b",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        }
        with Server(repository, tmp_path, "--log-format=json", environment=PROMPT | variables) as server:
            ask(api, server, "first")
            assert collector.call("first").name == "longshort.v1.Inference/Tokenize"
            assert collector.paths == ["/base/v1/traces"]
            assert collector.fields[0]["x-key"] == "a b"
            assert collector.fields[0]["content-encoding"] == "gzip"

            collector.refusals.append((503, {"Retry-After": "1"}))
            ask(api, server, "patient")
            collector.call("patient")
            assert (server.metric(FAILURES), server.metric(DROPPED)) == (1, 0)

            collector.refusals.append((400, {}))
            ask(api, server, "unwanted")
            wait_until(lambda: server.metric(DROPPED, reason="export_failed") == 1)

            collector.closes = True
            for number in range(3):
                ask(api, server, f"closed-{number}")
                collector.call(f"closed-{number}")
            assert server.metric(FAILURES) == 2


def test_new_files_of_tls_are_read(
    api: SimpleNamespace, repository: Path, tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(clients.pem)
    files = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(trusted)}
    with (
        Collector(tls=secure(*authority.server().write(tmp_path, "collector"))) as collector,
        traced(repository, tmp_path / "server", f"https://{collector.address}", **files) as server,
    ):
        ask(api, server, "kept")
        wait_until(lambda: server.metric(FAILURES) >= 1)
        assert collector.requests == []
        trusted.write_text("no certificate")
        wait_until(lambda: "the new TLS files for the collector are invalid" in server.log())
        trusted.write_bytes(authority.pem)
        collector.call("kept")
        assert server.metric(DROPPED) == 0


def test_spans_that_a_stop_loses_are_logged(api: SimpleNamespace, repository: Path, tmp_path: Path) -> None:
    late = {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}
    with traced(repository, tmp_path, f"127.0.0.1:{free_port()}", **late) as server:
        for number in range(5):
            ask(api, server, f"call-{number}")
        server.terminate()
        assert server.wait() == 0
        (line,) = [
            line for line in map(json.loads, server.log().splitlines()) if "before the collector" in line["message"]
        ]
        assert line["spans"] == 5
