"""Generate and GenerateStream of the real server."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from integration import expect
from integration.server_process import Server, wait_until

PROMPT = "Once upon a time there was"
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def request(api: SimpleNamespace, **fields: Any) -> Any:
    return api.inference.GenerateRequest(**({"prompt": {"text": PROMPT}, "max_tokens": 40} | fields))


def generate(api: SimpleNamespace, inference: Any, **fields: Any) -> Any:
    return inference.Generate(request(api, **fields), timeout=120)


def stream(api: SimpleNamespace, inference: Any, **fields: Any) -> list[Any]:
    return list(inference.GenerateStream(request(api, **fields), timeout=120))


def test_a_stream_has_start_text_end_and_summary(api: SimpleNamespace, inference: Any) -> None:
    events = stream(api, inference, return_raw=True, token_log_probabilities=True)
    # A busy machine may keep it silent for so long that it says that it is alive.
    events = [event for event in events if not event.HasField("keep_alive")]
    kinds = [event.WhichOneof("event") for event in events]
    assert kinds[0] == "start" and kinds[-2:] == ["end", "summary"] and set(kinds[1:-2]) == {"delta"}
    deltas = [event.delta for event in events[1:-2]]
    raw = b"".join(delta.raw for delta in deltas)
    tokens = [token for delta in deltas for token in delta.tokens]
    assert sum(delta.token_count for delta in deltas) == len(tokens) == 40
    assert b"".join(token.raw for token in tokens) == raw
    # Each message was valid UTF-8, or the client would have refused it; together they are the bytes.
    assert "".join(delta.text for delta in deltas) == raw.decode("utf-8", "replace")
    assert events[-2].end.finish_reason == api.inference.FINISH_REASON_LENGTH
    assert events[-1].summary.usage.prompt_tokens == len(PROMPT)
    assert events[-1].summary.usage.generated_tokens == 40


def test_unary_and_stream_agree(api: SimpleNamespace, inference: Any) -> None:
    (whole,) = generate(api, inference, sampling={"seed": 5}, return_raw=True).completions
    events = stream(api, inference, sampling={"seed": 5}, return_raw=True)
    assert b"".join(event.delta.raw for event in events) == whole.raw
    assert "".join(event.delta.text for event in events) == whole.text


def test_a_seed_gives_the_same_tokens_again(api: SimpleNamespace, inference: Any) -> None:
    drawn = generate(api, inference, return_raw=True)
    again = generate(api, inference, return_raw=True, sampling={"seed": drawn.seed})
    other = generate(api, inference, return_raw=True, sampling={"seed": drawn.seed ^ 1})
    assert again.seed == drawn.seed
    assert again.completions[0].raw == drawn.completions[0].raw
    assert other.completions[0].raw != drawn.completions[0].raw


def test_greedy_takes_the_likeliest_token(api: SimpleNamespace, inference: Any) -> None:
    fields = {"sampling": {"temperature": 0}, "token_log_probabilities": True, "top_alternatives": 3}
    (completion,) = generate(api, inference, **fields).completions
    for token in completion.tokens:
        # Ids that stand for no text may be likelier, but are never taken.
        producible = [a for a in token.alternatives if a.raw]
        if producible:
            assert token.log_probability == pytest.approx(producible[0].log_probability, abs=1e-5)


def test_completions_differ_and_come_by_index(api: SimpleNamespace, inference: Any) -> None:
    answer = generate(api, inference, completions=3, sampling={"seed": 3}, return_raw=True)
    assert [completion.index for completion in answer.completions] == [0, 1, 2]
    assert len({completion.raw for completion in answer.completions}) == 3
    assert answer.usage.generated_tokens == 120 and answer.usage.prompt_tokens == 3 * len(PROMPT)
    parts = {0: b"", 1: b"", 2: b""}
    for event in stream(api, inference, completions=3, sampling={"seed": 3}, return_raw=True):
        if event.HasField("delta"):
            parts[event.delta.index] += event.delta.raw
    assert parts == {completion.index: completion.raw for completion in answer.completions}


def test_echo_repeats_the_prompt_and_scores_it_as_score_text_does(api: SimpleNamespace, inference: Any) -> None:
    fields = {"echo": True, "token_log_probabilities": True, "max_tokens": 3, "return_raw": True}
    (completion,) = generate(api, inference, **fields).completions
    assert completion.text.startswith(PROMPT)
    whole = api.inference.ScoreTextRequest(inputs=[{"raw": completion.raw}], token_log_probabilities=True)
    (document,) = inference.ScoreText(whole, timeout=120).scores
    assert [token.id for token in completion.tokens] == [token.id for token in document.tokens]
    for echoed, scored in zip(completion.tokens, document.tokens, strict=True):
        assert echoed.log_probability == pytest.approx(scored.log_probability, abs=1e-4)
    events = stream(api, inference, **(fields | {"sampling": {"seed": 1}}))
    assert b"".join(event.delta.raw for event in events).startswith(PROMPT.encode())
    assert sum(len(event.delta.tokens) for event in events) == len(PROMPT) - 1 + 3


def test_a_stop_string_ends_the_text_before_it(api: SimpleNamespace, inference: Any) -> None:
    ascii_only = {"seed": 11, "logit_bias": {id: 60.0 for id in range(64, 128)}}
    (free,) = generate(api, inference, sampling=ascii_only).completions
    stop = free.text[10:13]
    cut = free.text.index(stop)
    fields = {"sampling": ascii_only, "stop": ["never seen", stop]}
    (stopped,) = generate(api, inference, **fields).completions
    assert stopped.text == free.text[:cut]
    assert stopped.finish_reason == api.inference.FINISH_REASON_STOP and stopped.stop == stop
    events = stream(api, inference, **fields)
    assert "".join(event.delta.text for event in events) == free.text[:cut]
    assert events[-2].end.stop == stop


@pytest.mark.cpu_only(reason="the emulator reads 300,000 tokens in an hour")
def test_a_quiet_stream_says_that_it_is_alive(api: SimpleNamespace, inference: Any) -> None:
    # One of the prompts takes the tiny model longer to read than the keepalive interval (300 ms).
    for tokens in (30_000, 300_000):
        answer = stream(api, inference, prompt={"text": "x" * tokens}, max_tokens=1)
        events = [event.WhichOneof("event") for event in answer]
        assert events[-1] == "summary"
        if "keep_alive" in events:
            return
    pytest.fail("no message said that the stream is alive")


@pytest.mark.parametrize("field", ["temperature", "top_p", "min_p", "repetition_penalty", "frequency_penalty"])
@pytest.mark.parametrize("value", [-101.0, 101.0, math.nan, math.inf])
def test_sampling_out_of_range_names_field_and_limit(
    api: SimpleNamespace, inference: Any, field: str, value: float
) -> None:
    with expect.error(INVALID, f"sampling.{field} is ", "it must be in "):
        generate(api, inference, sampling={field: value})


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"prompt": {}}, ("prompt is unset",)),
        ({"prompt": {"text": ""}}, ("prompt is empty",)),
        ({"max_tokens": -1}, ("max_tokens is -1", "[0, 65536]")),
        ({"max_tokens": 65537}, ("max_tokens is 65537",)),
        ({"completions": 17}, ("completions is 17", "[1, 16]")),
        ({"completions": -1}, ("completions is -1",)),
        ({"top_alternatives": -1}, ("top_alternatives is -1",)),
        ({"stop": [""]}, ("stop[0] is 0",)),
        ({"stop": ["x"] * 17}, ("stop is 17", "[0, 16]")),
        ({"stop": ["x" * 257]}, ("stop[0] is 257", "[1, 256]")),
        ({"sampling": {"top_k": -1}}, ("sampling.top_k is -1",)),
        ({"sampling": {"logit_bias": {260: 1.0}}}, ("sampling.logit_bias is 260", "[0, 259]")),
        ({"sampling": {"logit_bias": {5: math.nan}}}, ("sampling.logit_bias[5] is nan",)),
    ],
)
def test_wrong_requests_name_the_field(
    api: SimpleNamespace, inference: Any, fields: dict[str, Any], parts: tuple[str, ...]
) -> None:
    with expect.error(INVALID, *parts):
        generate(api, inference, **fields)
    with expect.error(INVALID, *parts):
        stream(api, inference, **fields)


def test_metrics_show_what_the_cache_saved(api: SimpleNamespace, inference: Any, server: Server) -> None:
    hits, saved = server.metric("longshort_cache_hits_total"), server.metric("longshort_reused_tokens_total")
    cached = 0
    for _ in range(2):
        prompt = {"raw": b"What was read once need not be read again. " * 10}
        cached += generate(api, inference, prompt=prompt, max_tokens=2).usage.cached_tokens
    assert cached >= 64
    wait_until(lambda: server.metric("longshort_reused_tokens_total") == saved + cached)
    assert server.metric("longshort_cache_hits_total") > hits


def test_cancelling_a_stream_stops_its_work(api: SimpleNamespace, inference: Any, server: Server) -> None:
    call = inference.GenerateStream(request(api, max_tokens=65536, completions=2))
    for event in call:
        if event.HasField("delta"):
            break
    wait_until(lambda: server.metric("longshort_streams_active") >= 2)
    before = server.metric("longshort_requests_total", rpc="GenerateStream", code="CANCELLED")
    call.cancel()
    wait_until(lambda: server.metric("longshort_streams_active") == 0)
    wait_until(lambda: server.metric("longshort_requests_total", rpc="GenerateStream", code="CANCELLED") == before + 1)


@pytest.mark.parametrize("rpc", ["Generate", "GenerateStream"])
def test_a_deadline_stops_the_work(api: SimpleNamespace, inference: Any, server: Server, rpc: str) -> None:
    before = server.metric("longshort_requests_total", rpc=rpc, code="DEADLINE_EXCEEDED")
    generated = server.metric("longshort_generated_tokens_total")
    with expect.error(grpc.StatusCode.DEADLINE_EXCEEDED):
        answer = getattr(inference, rpc)(request(api, max_tokens=65536), timeout=0.4)
        list(answer if rpc == "GenerateStream" else [])
    wait_until(lambda: server.metric("longshort_requests_total", rpc=rpc, code="DEADLINE_EXCEEDED") == before + 1)
    wait_until(lambda: server.metric("longshort_streams_active") == 0)
    assert server.metric("longshort_generated_tokens_total") < generated + 65536, "it did not run to its end"


def test_a_slow_reader_gets_everything_in_fewer_messages(api: SimpleNamespace, server: Server) -> None:
    # The messages of 300 tokens, each with 20 alternatives, do not fit into the window of 16 KiB; the unsent ones stay
    # below 256 KiB, at which the server would stop generating.
    tokens = 300
    fields = {"max_tokens": tokens, "sampling": {"seed": 9}, "return_raw": True}
    fields |= {"token_log_probabilities": True, "top_alternatives": 20}
    before = server.metric("longshort_generated_tokens_total")
    with server.slow_channel() as channel:
        call = api.inference_grpc.InferenceStub(channel).GenerateStream(request(api, **fields), timeout=400)
        first = [next(call) for _ in range(3)]
        wait_until(lambda: server.metric("longshort_generated_tokens_total") >= before + tokens, 100)
        events = first + list(call)
    assert sum(event.delta.token_count for event in events) == tokens
    assert max(event.delta.token_count for event in events) > 1
    assert len(b"".join(event.delta.raw for event in events)) >= tokens - 1
