"""Which spans calls leave with a collector: parents, times, attributes, sampling; and trace ids in the log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import longshort
import pytest
from opentelemetry import trace

from integration import open_inference
from integration.collector import PROMPT, Collector, Span
from integration.images import png, some_pixels
from integration.server_process import Server, wait_until

SERVER, INTERNAL = 2, 1
UNSET, ERROR = 0, 2
SAMPLED, RANDOM, HAS_IS_REMOTE, IS_REMOTE = 1, 2, 0x100, 0x200
TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def traced(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model of each family that exports each trace."""
    folder = tmp_path_factory.mktemp("traced")
    open_inference.write_models(folder / "models")
    environment = PROMPT | {
        "OTEL_SERVICE_NAME": "scores",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=te%2Cst,service.name=other",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=a%20b",
    }
    arguments = ["--log-format=json", "--keepalive-interval=300ms", f"--otlp-endpoint={collector.address}"]
    with Server(folder / "models", folder, *arguments, environment=environment) as server:
        yield server


def metadata(request_id: str, traceparent: str = "", tracestate: str = "") -> list[tuple[str, str]]:
    pairs = [("x-request-id", request_id), ("traceparent", traceparent), ("tracestate", tracestate)]
    return [pair for pair in pairs if pair[1]]


def log_line(server: Server, request_id: str) -> dict[str, Any]:
    lines: list[dict[str, Any]] = []

    def there() -> bool:
        lines[:] = [line for line in map(json.loads, server.log().splitlines()) if line.get("id") == request_id]
        return bool(lines)

    wait_until(there)
    return lines[-1]


def check_nesting(call: Span) -> None:
    """Every stage lies within its call, belongs to its trace, and has no parent elsewhere."""
    assert call.start < call.end
    for stage in call.children:
        assert call.start <= stage.start <= stage.end <= call.end, stage.name
        assert (stage.trace_id, stage.kind, stage.status) == (call.trace_id, INTERNAL, UNSET)
        assert stage.flags == call.flags & ~IS_REMOTE | HAS_IS_REMOTE
        check_nesting(stage) if stage.children else None


def names(call: Span) -> list[str]:
    return [stage.name for stage in call.children]


def stub_of(api: SimpleNamespace, server: Server) -> Any:
    return api.inference_grpc.InferenceStub(server.channel)


def test_a_streams_spans_are_its_clients_children(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.GenerateRequest(
        model={"name": "tiny"},
        prompt={"text": "x" * 20},
        max_tokens=30,
        sampling={"temperature": 0.5, "top_k": 7, "seed": 3},
    )
    call = stub_of(api, traced).GenerateStream(request, timeout=60, metadata=metadata("stream", TRACEPARENT, "a=1,b=2"))
    messages = len(list(call))
    span = collector.call("stream")
    assert (span.name, span.kind, span.status) == ("longshort.v1.Inference/GenerateStream", SERVER, UNSET)
    assert (span.trace_id, span.parent, span.state) == (TRACE_ID, PARENT_ID, "a=1,b=2")
    assert span.flags == SAMPLED | HAS_IS_REMOTE | IS_REMOTE
    check_nesting(span)
    assert set(names(span)) == {"decode", "delivery", "prefill", "preparation", "queue"}
    preparation, queue, decode = (span.child(one) for one in ("preparation", "queue", "decode"))
    pieces = [one for one in span.children if one.name == "prefill"]
    assert preparation.start == span.start
    assert preparation.end == queue.start
    assert queue.end <= pieces[0].start
    assert pieces[-1].end == decode.start
    assert decode.start < decode.end
    assert sum(one.attributes["longshort.prompt_tokens"] for one in pieces) == 20
    assert all(one.attributes.keys() == {"longshort.prompt_tokens", "longshort.steps"} for one in pieces)
    assert decode.attributes == {"longshort.generated_tokens": 30}
    assert span.child("delivery").end == span.end
    assert span.child("delivery").attributes == {"longshort.messages": messages}
    assert span.attributes == {
        "rpc.system.name": "grpc",
        "rpc.method": "longshort.v1.Inference/GenerateStream",
        "rpc.status_code": "OK",
        "server.address": "127.0.0.1",
        "server.port": traced.grpc_port,
        "gen_ai.operation.name": "text_completion",
        "gen_ai.provider.name": "longshort",
        "gen_ai.request.model": "tiny",
        "gen_ai.request.max_tokens": 30,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.request.top_k": 7.0,
        "gen_ai.request.seed": 3,
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.response.finish_reasons": ["length"],
        "longshort.model.version": 1,
        "longshort.request.id": "stream",
    }


def test_each_completion_has_stages_of_its_own(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.GenerateRequest(
        model={"name": "tiny"}, prompt={"text": "several"}, max_tokens=12, completions=3, stop=["e"]
    )
    answer = stub_of(api, traced).Generate(request, timeout=60, metadata=metadata("several"))
    reasons = {1: "length", 2: "stop"}
    span = collector.call("several")
    check_nesting(span)
    assert span.attributes["gen_ai.request.choice.count"] == span.attributes["longshort.parts"] == 3
    assert "gen_ai.request.stream" not in span.attributes
    assert span.attributes["gen_ai.response.finish_reasons"] == [
        reasons[one.finish_reason] for one in answer.completions
    ]
    assert span.attributes["gen_ai.usage.input_tokens"] == answer.usage.prompt_tokens
    assert span.attributes["gen_ai.usage.output_tokens"] == answer.usage.generated_tokens
    for name in ("queue", "decode"):
        assert sorted(one.attributes["longshort.part"] for one in span.children if one.name == name) == [0, 1, 2]
    assert {one.attributes["longshort.part"] for one in span.children if one.name == "prefill"} == {0, 1, 2}
    assert [one.attributes for one in span.children if one.name == "delivery"] == [{}]


def test_tokens_that_were_in_the_cache_are_reported(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "y" * 200}, max_tokens=1)
    for name in ("first", "second"):
        answer = stub_of(api, traced).Generate(request, timeout=60, metadata=metadata(name))
    assert answer.usage.cached_tokens > 0
    assert collector.call("second").attributes["gen_ai.usage.cache_read.input_tokens"] == answer.usage.cached_tokens
    assert "gen_ai.usage.cache_read.input_tokens" not in collector.call("first").attributes


def test_a_long_prompt_is_read_in_pieces(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.ScoreTextRequest(model={"name": "tiny"}, inputs=[{"text": "z" * 60_000}])
    stub_of(api, traced).ScoreText(request, timeout=60, metadata=metadata("long"))
    span = collector.call("long")
    check_nesting(span)
    pieces = [one for one in span.children if one.name == "prefill"]
    # All of it, however many steps it took.
    assert 1 < len(pieces) <= 32
    assert sum(one.attributes["longshort.prompt_tokens"] for one in pieces) == 59_999  # nothing follows the last one
    assert sum(one.attributes["longshort.steps"] for one in pieces) >= len(pieces)
    assert pieces[0].start >= span.child("queue").end
    assert all(one.end <= after.start for one, after in zip(pieces, pieces[1:], strict=False))
    assert span.attributes["gen_ai.operation.name"] == "score"


def test_documents_of_a_classifier_have_batches(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.ScoreTextRequest(model={"name": "texts"}, inputs=[{"text": "one"}, {"text": "three"}])
    stub_of(api, traced).ScoreText(request, timeout=60, metadata=metadata("texts"))
    span = collector.call("texts")
    check_nesting(span)
    assert span.name == "longshort.v1.Inference/ScoreText"
    assert sorted(names(span)) == ["batch", "batch", "delivery", "preparation", "queue", "queue"]
    batches = [one.attributes for one in span.children if one.name == "batch"]
    assert sorted((one["longshort.part"], one["longshort.prompt_tokens"]) for one in batches) == [(0, 3), (1, 5)]
    assert span.attributes["gen_ai.operation.name"] == "classify"
    assert span.attributes["gen_ai.usage.input_tokens"] == 8


def test_images_are_prepared_by_themselves(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    images = [{"encoded": png(some_pixels(seed))} for seed in (1, 2)] + [{"encoded": b"broken"}]
    request = api.inference.ClassifyImageRequest(model={"name": "images"}, images=images)
    stub_of(api, traced).ClassifyImage(request, timeout=60, metadata=metadata("images"))
    span = collector.call("images")
    check_nesting(span)
    preparations = [one for one in span.children if one.name == "preparation"]
    assert [one.attributes.get("longshort.part") for one in preparations] == [None, 0, 1]
    for part in (0, 1):
        of_part = [one for one in span.children if one.attributes.get("longshort.part") == part]
        assert [one.name for one in of_part] == ["preparation", "queue", "batch"]
        assert of_part[0].end == of_part[1].start
        assert of_part[1].end == of_part[2].start
    assert "gen_ai.usage.input_tokens" not in span.attributes


def test_a_stream_of_documents_has_the_stages_of_each(
    api: SimpleNamespace, collector: Collector, traced: Server
) -> None:
    documents = [{"id": number, "input": {"text": "x" * (number + 1)}} for number in range(4)]
    documents[0]["options"] = {"model": {"name": "texts"}}
    requests = iter([api.inference.ScoreTextsRequest(**document) for document in documents])
    answers = list(stub_of(api, traced).ScoreTexts(requests, timeout=60, metadata=metadata("documents")))
    assert len(answers) == 4
    span = collector.call("documents")
    check_nesting(span)
    for part in range(4):
        of_part = [one for one in span.children if one.attributes.get("longshort.part") == part]
        assert [one.name for one in of_part] == ["preparation", "queue", "batch"]
        assert of_part[0].end == of_part[1].start
    assert span.child("delivery").attributes == {"longshort.messages": 4}


def test_a_stream_without_end_has_a_bounded_number_of_stages(
    api: SimpleNamespace, collector: Collector, traced: Server
) -> None:
    before = traced.metric("longshort_spans_dropped_total", reason="call_limit")
    requests = (api.inference.ScoreTextsRequest(id=i, input={"text": "x"}) for i in range(1, 100))
    first = api.inference.ScoreTextsRequest(id=0, input={"text": "x"}, options={"model": {"name": "texts"}})
    stream = stub_of(api, traced).ScoreTexts(
        (one for part in ([first], requests) for one in part), timeout=60, metadata=metadata("endless")
    )
    assert len(list(stream)) == 100
    span = collector.call("endless")
    assert span.attributes["longshort.parts"] == 100
    # 256, and the delivery of all.
    assert len(span.children) == 257
    assert traced.metric("longshort_spans_dropped_total", reason="call_limit") - before == 300 - 256


def test_a_call_without_work_has_no_stages(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.TokenizeRequest(model={"name": "tiny"}, input={"text": "x"})
    stub_of(api, traced).Tokenize(request, timeout=60, metadata=metadata("tokenize"))
    span = collector.call("tokenize")
    assert (span.name, span.children) == ("longshort.v1.Inference/Tokenize", [])
    assert "gen_ai.operation.name" not in span.attributes


def test_calls_of_the_open_inference_protocol_are_traced_alike(collector: Collector, traced: Server) -> None:
    headers = {"x-request-id": "infer", "traceparent": TRACEPARENT}
    with open_inference.client_of(traced) as client:
        client.infer("texts", [open_inference.strings("document", b"good", b"bad!")], headers=headers)
    span = collector.call("infer")
    check_nesting(span)
    assert (span.name, span.parent) == ("inference.GRPCInferenceService/ModelInfer", PARENT_ID)
    assert sorted(names(span)) == ["batch", "batch", "delivery", "preparation", "queue", "queue"]
    assert span.attributes["gen_ai.operation.name"] == "classify"


def test_a_streams_requests_are_spans_below_it(collector: Collector, traced: Server) -> None:
    with open_inference.client_of(traced) as client:
        stream = open_inference.Stream(client, headers={"x-request-id": "requests", "traceparent": TRACEPARENT})
        stream.send("tiny", [open_inference.prompt(b"hello")], "one", parameters={"max_tokens": 5})
        stream.until_final()
        client.stop_stream()
    span = collector.call("requests")
    check_nesting(span)
    request = span.child("inference.GRPCInferenceService/ModelStreamInfer.request")
    assert (request.kind, request.trace_id) == (INTERNAL, TRACE_ID)
    assert request.attributes["longshort.request.id"] == "requests-1"
    assert request.attributes["gen_ai.usage.output_tokens"] == 5
    assert set(names(request)) == {"decode", "delivery", "prefill", "preparation", "queue"}
    assert log_line(traced, "requests-1")["span_id"] == request.span_id


def test_what_the_client_did_wrong_is_no_error_of_the_server(
    api: SimpleNamespace, collector: Collector, traced: Server
) -> None:
    for name, request in {
        "INVALID_ARGUMENT": api.inference.GenerateRequest(model={"name": "tiny"}),
        "NOT_FOUND": api.inference.GenerateRequest(model={"name": "stranger"}, prompt={"text": "x"}),
    }.items():
        with pytest.raises(grpc.RpcError):
            stub_of(api, traced).Generate(request, timeout=60, metadata=metadata(name))
        span = collector.call(name)
        assert (span.attributes["rpc.status_code"], span.status, span.message) == (name, UNSET, "")
        assert "error.type" not in span.attributes
        assert span.children == []


def test_a_cancelled_call_has_what_it_came_to(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "x"}, max_tokens=60_000)
    call = stub_of(api, traced).GenerateStream(request, metadata=metadata("cancelled"))
    for _ in range(3):
        next(call)
    call.cancel()
    span = collector.call("cancelled")
    check_nesting(span)
    assert (span.attributes["rpc.status_code"], span.status) == ("CANCELLED", UNSET)
    assert 0 < span.child("decode").attributes["longshort.generated_tokens"] < 60_000
    assert "gen_ai.response.finish_reasons" not in span.attributes


def test_a_deadline_that_passes_is_an_error(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "x"}, max_tokens=60_000)
    with pytest.raises(grpc.RpcError):
        list(stub_of(api, traced).GenerateStream(request, timeout=0.3, metadata=metadata("late")))
    span = collector.call("late")
    assert span.attributes["rpc.status_code"] == span.attributes["error.type"] == "DEADLINE_EXCEEDED"
    assert span.status == ERROR
    assert span.message == log_line(traced, "late")["error"]


def test_who_is_not_recorded_leaves_no_span(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    unsampled = f"00-{TRACE_ID}-{PARENT_ID}-00"
    request = api.inference.TokenizeRequest(model={"name": "tiny"}, input={"text": "x"})
    stub_of(api, traced).Tokenize(request, timeout=60, metadata=metadata("unsampled", unsampled))
    stub_of(api, traced).Tokenize(request, timeout=60, metadata=metadata("behind"))
    collector.call("behind")
    assert collector.calls("unsampled") == []
    line = log_line(traced, "unsampled")
    assert line["trace_id"] == TRACE_ID
    assert line["span_id"] != PARENT_ID


@pytest.mark.parametrize("traceparent", ["nonsense", f"00-{'0' * 32}-{PARENT_ID}-01", f"{TRACEPARENT}-more", "00"])
def test_a_malformed_traceparent_begins_a_new_trace(
    api: SimpleNamespace, collector: Collector, traced: Server, traceparent: str
) -> None:
    name = f"malformed-{len(traceparent)}"
    request = api.inference.TokenizeRequest(model={"name": "tiny"}, input={"text": "x"})
    stub_of(api, traced).Tokenize(request, timeout=60, metadata=metadata(name, traceparent, "a=1"))
    span = collector.call(name)
    assert span.trace_id not in ("0" * 32, TRACE_ID)
    assert (span.parent, span.state, span.flags) == ("", "", SAMPLED | RANDOM | HAS_IS_REMOTE)


def test_the_log_line_names_the_span(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.TokenizeRequest(model={"name": "tiny"}, input={"text": "x"})
    stub_of(api, traced).Tokenize(request, timeout=60, metadata=metadata("logged", TRACEPARENT))
    line = log_line(traced, "logged")
    assert (line["trace_id"], line["span_id"]) == (TRACE_ID, collector.call("logged").span_id)


def test_without_a_collector_the_log_names_the_clients_span(api: SimpleNamespace, server: Server) -> None:
    request = api.inference.TokenizeRequest(input={"text": "x"})
    stub_of(api, server).Tokenize(request, timeout=60, metadata=metadata("untraced", TRACEPARENT))
    stub_of(api, server).Tokenize(request, timeout=60, metadata=metadata("bare"))
    wait_until(lambda: "id=bare" in server.log())
    lines = {found[1]: found[0] for found in re.finditer(r"id=(\S+) .*", server.log())}
    assert f"trace_id={TRACE_ID} span_id={PARENT_ID}" in lines["untraced"]
    assert "trace_id" not in lines["bare"]


def test_probes_are_not_traced(collector: Collector, traced: Server) -> None:
    with open_inference.client_of(traced) as client:
        assert client.is_server_ready(headers={"x-request-id": "probe", "traceparent": TRACEPARENT})
        assert client.get_server_metadata(headers={"x-request-id": "behind-probe"})
    collector.call("behind-probe")
    assert collector.calls("probe") == []


def test_the_resource_says_which_server_it_is(collector: Collector, traced: Server) -> None:
    wait_until(lambda: collector.requests != [])
    resource = collector.resource()
    assert resource.pop("service.instance.id").count("-") == 4
    version = re.search(r'longshort_build_info\{.*version="([^"]+)"', traced.http("/metrics")[1])[1]
    assert resource == {
        "service.name": "scores",
        "service.version": version,
        "deployment.environment.name": "te,st",
        "telemetry.sdk.name": "longshort",
        "telemetry.sdk.language": "cpp",
        "telemetry.sdk.version": version,
    }
    assert collector.fields[0]["x-tenant"] == "a b"
    (of_resource,) = collector.requests[0].resource_spans
    assert of_resource.scope_spans[0].schema_url == "https://opentelemetry.io/schemas/1.45.0"
    assert (of_resource.scope_spans[0].scope.name, of_resource.scope_spans[0].scope.version) == ("longshort", version)


def test_nothing_of_a_text_is_in_a_span(api: SimpleNamespace, collector: Collector, traced: Server) -> None:
    request = api.inference.GenerateRequest(
        model={"name": "tiny"}, prompt={"text": "confidential"}, stop=["private"], session={"id": "discreet"}
    )
    request.max_tokens = 3
    stub_of(api, traced).Generate(request, timeout=60, metadata=metadata("secrets"))
    collector.call("secrets")
    sent = "".join(str(one) for one in collector.requests)
    assert [word for word in ("confidential", "private", "discreet") if word in sent] == []


def test_the_python_clients_current_span_is_the_parent(collector: Collector, traced: Server) -> None:
    current = trace.SpanContext(
        trace_id=0x0AF7651916CD43DD8448EB211C80319C,
        span_id=0x00F067AA0BA902B7,
        is_remote=False,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
        trace_state=trace.TraceState([("vendor", "x")]),
    )
    with (
        longshort.Client(f"127.0.0.1:{traced.grpc_port}") as client,
        trace.use_span(trace.NonRecordingSpan(current)),
    ):
        client.tokenize("hello", model="tiny", request_id="python")
    span = collector.call("python")
    assert (span.trace_id, span.parent) == (f"{current.trace_id:032x}", f"{current.span_id:016x}")
    assert span.state == "vendor=x"


def test_a_ratio_records_a_part_of_the_traces_that_begin_here(
    api: SimpleNamespace, repository: Path, tmp_path: Path
) -> None:
    """Which part, the ids say: servers of one ratio agree."""
    with (
        Collector() as collector,
        Server(
            repository,
            tmp_path,
            f"--otlp-endpoint=http://{collector.address}",
            "--trace-sample-ratio=0.5",
            "--log-format=json",
            environment=PROMPT,
        ) as server,
    ):
        stub = stub_of(api, server)
        request = api.inference.TokenizeRequest(input={"text": "x"})
        for number in range(60):
            stub.Tokenize(request, timeout=60, metadata=metadata(f"call-{number}"))
        stub.Tokenize(request, timeout=60, metadata=metadata("sampled", TRACEPARENT))
        collector.call("sampled")
        found = {span.attributes["longshort.request.id"] for span in collector.spans()}
        for number in range(60):
            trace_id = log_line(server, f"call-{number}")["trace_id"]
            assert (f"call-{number}" in found) == (int(trace_id[-14:], 16) >= 1 << 55)
        assert 0 < len(found) < 61
