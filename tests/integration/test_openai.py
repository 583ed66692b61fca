"""OpenAI's completions on the HTTP port, by the package `openai` as it is and by plain HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from integration import tokens
from integration.http_calls import get, post
from integration.server_process import Server, wait_until

PROMPT = "The first line.\nThe second: \u00e9\u20ac."


def client(server: Server, key: str = "none", **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.http_port}/v1", api_key=key, max_retries=0, **options)


@pytest.fixture
def completions(server: Server) -> Iterator[Any]:
    with client(server) as opened:
        yield opened.completions


def grpc_generate(api: SimpleNamespace, inference: Any, **fields: Any) -> Any:
    request = api.inference.GenerateRequest(**({"prompt": {"text": PROMPT}, "max_tokens": 12} | fields))
    return inference.Generate(request, timeout=60)


def test_the_models_are_listed(server: Server) -> None:
    with client(server) as one:
        assert [model.id for model in one.models.list()] == ["tiny"]
        assert one.models.retrieve("tiny").object == "model"
        with pytest.raises(openai.NotFoundError) as error:
            one.models.retrieve("none/such")
    assert error.value.code == "model_not_found"


def test_a_seed_gives_the_text_that_it_gives_by_grpc(api: SimpleNamespace, inference: Any, completions: Any) -> None:
    want = grpc_generate(api, inference, completions=2, sampling={"seed": 7, "temperature": 0.8, "top_p": 0.9})
    got = completions.create(
        model="tiny", prompt=PROMPT, max_tokens=12, n=2, seed=7, temperature=0.8, top_p=0.9, user="someone"
    )
    assert [choice.text for choice in got.choices] == [one.text for one in want.completions]
    assert {choice.finish_reason for choice in got.choices} == {"length"}
    assert got.id.startswith("cmpl-") and got.object == "text_completion" and got.model == "tiny"
    size = len(PROMPT.encode())
    usage = (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens)
    assert usage == (size, 24, size + 24)


def test_the_engines_other_sampling_options(api: SimpleNamespace, inference: Any, completions: Any) -> None:
    sampling = {"seed": 7, "temperature": 1.5, "top_k": 3, "min_p": 0.05, "repetition_penalty": 1.3}
    (want,) = grpc_generate(api, inference, sampling=sampling).completions
    extra = {"top_k": 3, "min_p": 0.05, "repetition_penalty": 1.3, "ignore_eos": True, "metadata": {}}
    got = completions.create(model="tiny/1", prompt=PROMPT, max_tokens=12, seed=7, temperature=1.5, extra_body=extra)
    assert got.choices[0].text == want.text


def test_a_prompt_is_cut_to_its_last_tokens(completions: Any) -> None:
    def ask(prompt: Any, **extra: Any) -> Any:
        return completions.create(model="tiny", prompt=prompt, max_tokens=4, temperature=0, extra_body=extra)

    text = "a long beginning " * 1000
    cut = ask(text + PROMPT, truncate_prompt_tokens=len(PROMPT.encode()))
    assert cut.choices[0].text == ask(PROMPT).choices[0].text
    assert cut.usage.prompt_tokens == len(PROMPT.encode())
    assert ask([5, 6, 7, 8], truncate_prompt_tokens=2).usage.prompt_tokens == 2
    assert ask(PROMPT, truncate_prompt_tokens=-1).usage.prompt_tokens == len(PROMPT.encode())
    assert ask(PROMPT, truncate_prompt_tokens=1000).usage.prompt_tokens == len(PROMPT.encode())


def test_sixteen_tokens_are_the_default(completions: Any) -> None:
    assert completions.create(model="tiny", prompt=PROMPT).usage.completion_tokens == 16


def test_log_probabilities_are_those_of_grpc(api: SimpleNamespace, inference: Any, completions: Any) -> None:
    want = grpc_generate(
        api, inference, echo=True, token_log_probabilities=True, top_alternatives=3, sampling={"seed": 7}
    ).completions[0]
    got = completions.create(model="tiny", prompt=PROMPT, max_tokens=12, seed=7, echo=True, logprobs=3).choices[0]
    assert got.text == want.text and got.text.startswith(PROMPT)
    assert got.logprobs.token_logprobs[0] is None and got.logprobs.top_logprobs[0] is None
    assert got.logprobs.tokens[0] == PROMPT[0]
    # The second call finds the first one's prompt in the cache: steps of other sizes round differently.
    expected = [token.log_probability for token in want.tokens]
    assert got.logprobs.token_logprobs[1:] == pytest.approx(expected, abs=1e-5)
    for top, token in zip(got.logprobs.top_logprobs[1:], want.tokens, strict=True):
        alternatives = [one.log_probability for one in token.alternatives]
        assert list(top.values())[:3] == pytest.approx(alternatives, abs=1e-5)
        assert min(abs(one - token.log_probability) for one in top.values()) < 1e-5 and len(top) <= 4
    # Offsets are of characters; bytes within a character stand at its place.
    place = got.text.index("\u00e9")
    at = got.logprobs.text_offset.index(place)
    assert got.logprobs.tokens[at : at + 2] == ["bytes:\\xc3", "bytes:\\xa9"]
    assert got.logprobs.text_offset[at : at + 3] == [place, place, place + 1]


def test_no_tokens_means_the_scores_of_the_prompts(api: SimpleNamespace, inference: Any, completions: Any) -> None:
    prompts = [PROMPT, "another"]
    request = api.inference.ScoreTextRequest(
        inputs=[{"text": text} for text in prompts], token_log_probabilities=True, top_alternatives=1
    )
    want = inference.ScoreText(request, timeout=60).scores
    got = completions.create(model="tiny", prompt=prompts, max_tokens=0, echo=True, logprobs=1)
    for choice, text, score in zip(got.choices, prompts, want, strict=True):
        assert choice.text == text
        assert choice.logprobs.token_logprobs[0] is None
        # One step may have read both prompts, or each step one: batches of other sizes round differently.
        expected = [token.log_probability for token in score.tokens]
        assert choice.logprobs.token_logprobs[1:] == pytest.approx(expected, abs=1e-5)
    assert got.usage.completion_tokens == 0
    ids = [list(text.encode()) for text in ("abc", "de")]
    tokens_of = [[byte + 4 - (byte > 10) for byte in one] for one in ids]
    by_ids = completions.create(model="tiny", prompt=tokens_of, max_tokens=0, echo=True)
    assert [choice.text for choice in by_ids.choices] == ["abc", "de"] and by_ids.choices[0].logprobs is None


def test_each_of_several_prompts_has_the_text_that_it_has_alone(completions: Any) -> None:
    fields = {"model": "tiny", "max_tokens": 10, "seed": 3, "n": 2}
    together = completions.create(prompt=["abc", "defg"], **fields)
    alone = [completions.create(prompt=text, **fields) for text in ("abc", "defg")]
    assert [one.index for one in together.choices] == [0, 1, 2, 3]
    assert [one.text for one in together.choices] == [choice.text for one in alone for choice in one.choices]
    assert together.usage.prompt_tokens == 7


def test_a_call_may_have_more_prompts_than_the_queue(repository: Path, tmp_path: Path) -> None:
    prompts = [f"{number}: {PROMPT}" for number in range(25)]
    fields: dict[str, Any] = {"model": "tiny", "max_tokens": 4, "seed": 3, "n": 2, "echo": True}
    with Server(repository, tmp_path, "--max-queued-requests=4", "--max-streams=2") as server, client(server) as one:
        together = one.completions.create(prompt=prompts, **fields)
        assert [choice.index for choice in together.choices] == list(range(50))
        alone = [one.completions.create(prompt=prompt, **fields) for prompt in prompts]
        assert [choice.text for choice in together.choices] == [choice.text for got in alone for choice in got.choices]
        parts = list(one.completions.create(prompt=prompts, stream=True, **fields))
        texts = ["".join(c.text for part in parts for c in part.choices if c.index == i) for i in range(50)]
        assert texts == [choice.text for choice in together.choices]
        with pytest.raises(openai.BadRequestError, match=r"number of prompts is 1025; it must be in \[1, 1024\]"):
            one.completions.create(prompt=1025 * ["a"], **fields)
        wait_until(lambda: server.metric("longshort_queued_requests") == 0)


def test_a_stream_has_the_text_of_the_whole_answer(completions: Any) -> None:
    fields: dict[str, Any] = {
        "model": "tiny",
        "prompt": ["abc", "d"],
        "max_tokens": 30,
        "seed": 3,
        "n": 2,
        "echo": True,
        "logprobs": 1,
    }
    whole = completions.create(**fields)
    parts = list(completions.create(stream=True, stream_options={"include_usage": True}, **fields))
    assert {part.id for part in parts} == {parts[0].id}
    assert parts[-1].choices == [] and parts[-1].usage == whole.usage
    for choice in whole.choices:
        of_choice = [one for part in parts for one in part.choices if one.index == choice.index]
        assert "".join(one.text for one in of_choice) == choice.text
        described = [one.logprobs for one in of_choice if one.logprobs]
        for field in ("tokens", "text_offset"):
            assert [value for one in described for value in getattr(one, field)] == getattr(choice.logprobs, field)
        streamed = [value for one in described for value in one.token_logprobs]
        assert streamed[0] is None and choice.logprobs.token_logprobs[0] is None
        # Batches of other sizes round differently.
        assert streamed[1:] == pytest.approx(choice.logprobs.token_logprobs[1:], abs=1e-5)
        assert [one.finish_reason for one in of_choice if one.finish_reason] == ["length"]


def test_a_stream_of_scores_has_them_in_one_part(server: Server) -> None:
    body = {"model": "tiny", "prompt": "abc", "max_tokens": 0, "echo": True, "stream": True}
    with client(server) as one:
        raw = one.completions.with_raw_response.create(**body).http_response.read().decode()
    events = raw.split("\n\n")
    assert json.loads(events[0].removeprefix("data: "))["choices"][0]["text"] == "abc"
    assert events[1:] == ["data: [DONE]", ""]


def test_a_stop_string_and_a_bias_are_obeyed(completions: Any) -> None:
    free = completions.create(model="tiny", prompt="abc", max_tokens=40, seed=3).choices[0]
    stop = next(text for text in free.text[5:] if text.isascii())
    stopped = completions.create(model="tiny", prompt="abc", max_tokens=40, seed=3, stop=stop).choices[0]
    assert stopped.finish_reason == "stop" and free.text.startswith(stopped.text) and stop not in stopped.text
    biased = completions.create(model="tiny", prompt="abc", max_tokens=5, logit_bias={"100": 100}, temperature=0)
    assert len(set(biased.choices[0].text)) == 1


def test_the_asynchronous_client_works(server: Server) -> None:
    async def run() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{server.http_port}/v1", api_key="none") as one:
            fields: dict[str, Any] = {"model": "tiny", "prompt": "abc", "max_tokens": 9, "seed": 1}
            whole = await one.completions.create(**fields)
            stream = await one.completions.create(stream=True, **fields)
            return whole.choices[0].text, "".join([part.choices[0].text async for part in stream])

    whole, streamed = asyncio.run(run())
    assert whole == streamed


@pytest.mark.parametrize(
    ("fields", "param", "says"),
    [
        ({"prompt": None}, "prompt", "missing"),
        ({"prompt": []}, "prompt", "empty"),
        ({"prompt": ""}, "prompt", "at least one token"),
        ({"prompt": ["a", 1]}, "prompt", "prompt[1] is 1"),
        ({"prompt": [[1], "a"]}, "prompt", "prompt[1]"),
        ({"prompt": [5, 9999]}, "prompt", "prompt[1] is 9999"),
        ({"prompt": ["a", ""]}, "prompt", "prompt[1]"),
        ({"prompt": [1.5]}, "prompt", "a token id"),
        ({"max_tokens": "16"}, "max_tokens", "an integer"),
        ({"max_tokens": 0}, "max_tokens", "without echo"),
        ({"max_tokens": -1}, "max_tokens", "-1"),
        ({"temperature": -0.5}, "temperature", "[0, 100]"),
        ({"top_p": 0}, "top_p", "(0, 1]"),
        ({"n": 0}, "n", "at least 1"),
        ({"n": 17}, "n", "16"),
        ({"n": 10**18}, "n", "16"),
        ({"n": 2**62, "prompt": ["a", "b"]}, "n", "16"),
        ({"best_of": 2}, "best_of", "every completion is returned"),
        ({"stop": 5}, "stop", "a string"),
        ({"stop": ["x"] * 17}, "stop", "16"),
        ({"stop": [""]}, "stop", "stop[0]"),
        ({"seed": 1.5}, "seed", "an integer"),
        ({"echo": 1}, "echo", "true or false"),
        ({"logprobs": 21}, "logprobs", "20"),
        ({"logprobs": True}, "logprobs", "an integer"),
        ({"logit_bias": {"x": 1}}, "logit_bias", "a token id"),
        ({"logit_bias": {"5": 101}}, "logit_bias", "[-100, 100]"),
        ({"logit_bias": {"999999": 1}}, "logit_bias", "999999"),
        ({"frequency_penalty": "much"}, "frequency_penalty", "a number"),
        ({"presence_penalty": 1000}, "presence_penalty", "100"),
        ({"stream": "yes"}, "stream", "true or false"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "without `stream`"),
        ({"suffix": "end"}, "suffix", "not supported"),
        ({"messages": []}, "messages", "chats"),
        ({"tools": [{"type": "function"}]}, "tools", "no tools"),
        ({"do_sample": False}, "do_sample", "`temperature` of 0"),
        ({"n_predict": 5}, "n_predict", "`max_tokens`"),
        ({"repeat_penalty": 1.1}, "repeat_penalty", "`repetition_penalty`"),
        ({"grammar": "root ::= [0-9]"}, "grammar", "not supported"),
        ({"response_format": {"type": "json_object"}}, "response_format", "no answer format"),
        ({"top_k": -3}, "top_k", "at least 0"),
        ({"min_p": 2}, "min_p", "1"),
        ({"guided_json": {}}, "guided_json", "not supported"),
        ({"truncate_prompt_tokens": 10**9}, "truncate_prompt_tokens", "in [1,"),
        ({"model": 5}, "model", "a string"),
    ],
)
def test_a_wrong_field_is_named(server: Server, fields: dict[str, object], param: str, says: str) -> None:
    answer = post(server, "/v1/completions", {"model": "tiny", "prompt": "abc"} | fields)
    error = answer.body["error"]
    assert (answer.status, error["param"], error["type"]) == (400, param, "invalid_request_error"), error
    assert says in error["message"]


def test_clients_may_send_the_defaults_of_fields_that_are_refused(completions: Any) -> None:
    neutral: dict[str, Any] = {"suffix": "", "tools": [], "tool_choice": "none", "function_call": "auto"}
    neutral |= {"response_format": {"type": "text"}, "grammar": "", "do_sample": True, "use_beam_search": False}
    neutral |= {"length_penalty": 1.0, "repeat_penalty": 1, "typical_p": 1.0, "mirostat": 0, "tfs_z": 1, "top_a": 0.0}
    neutral |= {"min_tokens": 0, "stop_token_ids": [], "bad_words": [], "return_token_ids": False, "guided_json": None}
    fields = {"model": "tiny", "prompt": PROMPT, "max_tokens": 3, "seed": 1}
    got = completions.create(**fields, extra_body=neutral)
    assert got.choices[0].text == completions.create(**fields).choices[0].text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "JSON"),
        (b"[]", "array"),
        (b'{"model": "tiny", "model": "tiny", "prompt": "a"}', "duplicate key"),
        (b'{"model": "tiny", "prompt": "\xff"}', "JSON"),
        (b'{"prompt": ' + b"[" * 100_000 + b"}", "deep"),
        (b'{"model": "tiny", "prompt": "a", "temperature": 1e999}', "JSON"),
    ],
)
def test_what_is_no_json_is_refused(server: Server, body: bytes, says: str) -> None:
    answer = post(server, "/v1/completions", body)
    assert answer.status == 400 and says in answer.body["error"]["message"]


def test_paths_methods_and_content_types_are_checked(server: Server) -> None:
    chat = post(server, "/v1/chat/completions", {})
    assert chat.status == 404 and chat.body["error"]["code"] == "unknown_url"
    without_version = post(server, "/completions", {"prompt": "a"})  # as with a base_url that does not end with /v1
    assert without_version.status == 404
    assert "there is no POST /completions; of OpenAI's API the server has" in without_version.body["error"]["message"]
    method = get(server, "/v1/completions")
    assert method.status == 405 and method.headers["Allow"] == "POST, OPTIONS"
    assert post(server, "/v1/completions", {}, "text/plain").status == 415
    assert post(server, "/v1/completions", {}, "application/jsonl").status == 415
    missing = post(server, "/v1/completions", {"model": "other", "prompt": "a"})
    assert missing.status == 404 and missing.body["error"]["code"] == "model_not_found"


def test_a_closed_stream_ends_the_generation(server: Server) -> None:
    with client(server) as one:
        stream = one.completions.create(model="tiny", prompt="abc", max_tokens=4000, stream=True)
        next(iter(stream))
        stream.close()
    wait_until(lambda: server.metric("longshort_requests_total", rpc="Completions", code="CANCELLED") >= 1)


def test_a_deadline_ends_the_generation(server: Server) -> None:
    body = {"model": "tiny", "prompt": "abc", "max_tokens": 4000}
    late = post(server, "/v1/completions", body, **{"connect-timeout-ms": "1"})
    assert late.status == 504 and late.body["error"]["code"] == "timeout"


def test_tokens_scopes_and_limits_are_those_of_grpc(repository: Path, tmp_path: Path) -> None:
    lines = (
        tokens.line("alice", "alice-secret"),
        tokens.line("watcher", "watch-secret", "scopes=observe"),
        tokens.line("slow", "slow-secret", "scopes=infer calls-per-second=0.001"),
    )
    with Server(repository, tmp_path, f"--token-file={tokens.write(tmp_path / 'tokens', *lines)}") as guarded:
        fields: dict[str, Any] = {"model": "tiny", "prompt": "abc", "max_tokens": 2}
        assert client(guarded, "alice-secret").completions.create(**fields).choices
        with pytest.raises(openai.AuthenticationError) as unknown:
            client(guarded, "guessed").completions.create(**fields)
        assert unknown.value.code == "invalid_api_key"
        with pytest.raises(openai.PermissionDeniedError):
            client(guarded, "watch-secret").completions.create(**fields)
        client(guarded, "slow-secret").completions.create(**fields)
        with pytest.raises(openai.RateLimitError) as often:
            client(guarded, "slow-secret").completions.create(**fields)
        assert int(often.value.response.headers["retry-after"]) >= 1 and often.value.code == "rate_limit_exceeded"


def test_the_tokenizer_of_the_only_language_model_is_there(server: Server) -> None:
    info = get(server, "/tokenizer_info").body
    assert info["eos_token"] == "\n" and info["vocab_size"] == 260
    encoded = post(server, "/tokenize", {"prompt": "a\u00e9\n", "add_special_tokens": False}).body
    assert encoded["count"] == 4 and encoded["tokens"][-1] == 2
    assert post(server, "/detokenize", {"tokens": encoded["tokens"]}).body == {"prompt": "a\u00e9\n"}
    assert post(server, "/tokenize", {"prompt": ""}).body["tokens"] == []
    wrong = post(server, "/detokenize", {"tokens": [99999]})
    assert wrong.status == 400 and "tokens[0] is 99999" in wrong.body["error"]["message"]
