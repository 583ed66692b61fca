"""A client that does what clients do, one thing after the other, as chance has it."""

from __future__ import annotations

import random
import time
from collections import Counter
from functools import cache
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
from reference.text_classifier import TextClassifier
from reference.vil import Vil

from integration import classifier_directory
from integration.classifier_directory import MAX_TOKENS
from integration.images import png, some_pixels
from integration.server_process import Server

HOUR = 60 * 60
FULL = grpc.StatusCode.RESOURCE_EXHAUSTED
PATIENCE = 3.0  # of the servers with clients that take nothing, in seconds
PROMPT_BYTES = [1, 5, 30, 100, 400, 1500]
STREAM_TOKENS = 600
# Of a stream that is cancelled: it must not end before the server sees that.
CANCELLED_TOKENS = 50_000
TINY = {"name": "tiny"}


def some_bytes(source: random.Random, count: int) -> bytes:
    """None of them a newline, which the model's alphabet lacks."""
    return bytes(source.choices([byte for byte in range(256) if byte != ord("\n")], k=count))


_BEGINNING = some_bytes(random.Random(0), 700)
PROMPTS = [some_bytes(random.Random(seed), PROMPT_BYTES[seed % len(PROMPT_BYTES)]) for seed in range(1, 25)]
PROMPTS += [_BEGINNING + bytes([number]) for number in range(32, 40)]


def question(api: SimpleNamespace, prompt: bytes, tokens: int, **fields: Any) -> Any:
    """For the likeliest tokens: a draw may fall so near the border of two that rounding decides."""
    return api.inference.GenerateRequest(
        model=TINY,
        prompt={"raw": prompt},
        max_tokens=tokens,
        sampling={"temperature": 0},
        return_raw=True,
        **fields,
    )


def scoring(api: SimpleNamespace, model: str, documents: list[bytes], **fields: Any) -> Any:
    inputs = [{"raw": document} for document in documents]
    return api.inference.ScoreTextRequest(model={"name": model}, inputs=inputs, **fields)


class Oracle:
    """What a server without other clients answers, and the reference of its classifiers."""

    def __init__(self, api: SimpleNamespace, server: Server, texts: TextClassifier, images: Vil) -> None:
        stub = api.inference_grpc.InferenceStub(server.channel)

        @cache
        def answer(prompt: bytes, tokens: int) -> bytes:
            return stub.Generate(question(api, prompt, tokens), timeout=HOUR).completions[0].raw

        @cache
        def log_likelihood(document: bytes) -> float:
            return stub.ScoreText(scoring(api, "tiny", [document]), timeout=HOUR).scores[0].log_likelihood

        @cache
        def text_logits(document: bytes) -> list[float]:
            return texts.logits([np.frombuffer(document, np.uint8).astype(np.int64) + 1]).tolist()

        @cache
        def image_logits(seed: int) -> list[float]:
            return images.logits(classifier_directory.normalised(some_pixels(seed))).tolist()

        self.answer = answer
        self.log_likelihood = log_likelihood
        self.text_logits = text_logits
        self.image_logits = image_logits


class Member:
    """One client of several servers, which share a session key."""

    def __init__(self, api: SimpleNamespace, servers: list[Server], oracle: Oracle, number: int) -> None:
        self.api = api
        self.servers = servers
        self.oracle = oracle
        self.random = random.Random(number)
        self.metadata = [("x-client-id", f"member-{number}"), ("x-priority", ("low", "normal", "high")[number % 3])]
        self.channels = [server.new_channel() for server in servers]
        self.done: Counter[str] = Counter()

    def act(self) -> None:
        act = self.random.choice(ACTS)
        try:
            act(self)
            self.done[act.__name__] += 1
        except grpc.RpcError as error:
            assert error.code() == FULL, f"{act.__name__}: {error}"
            self.done["refused"] += 1

    def ask(self) -> None:
        prompt, tokens = self.random.choice(PROMPTS), self.random.choice([1, 20, 60])
        answer = self._stub().Generate(question(self.api, prompt, tokens), timeout=HOUR, metadata=self.metadata)
        assert answer.completions[0].raw == self.oracle.answer(prompt, tokens)

    def read(self, timeout: float = HOUR) -> None:
        prompt = self.random.choice(PROMPTS)
        stream = self._stub().GenerateStream(question(self.api, prompt, 60), timeout=timeout, metadata=self.metadata)
        assert b"".join(event.delta.raw for event in stream) == self.oracle.answer(prompt, 60)

    def hurry(self) -> None:
        """With a deadline of 1 ms to 1 s."""
        try:
            self.read(timeout=10 ** self.random.uniform(-3, 0))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                raise

    def cancel(self) -> None:
        stream = self._stream(self.random.choice(PROMPTS), self._channel(), CANCELLED_TOKENS)
        for _ in range(self.random.randrange(20)):
            next(stream)
        stream.cancel()

    def stall(self) -> None:
        """For less than the server's patience, or for more; of tokens whose alternatives make some 500 bytes each."""
        prompt, rest = self.random.choice(PROMPTS), self.random.choice([0, 0.1, 1.5]) * PATIENCE
        with self.random.choice(self.servers).slow_channel() as channel:
            stream = self._stream(prompt, channel, token_log_probabilities=True, top_alternatives=20)
            try:
                answer = next(stream).delta.raw
                time.sleep(rest)
                answer += b"".join(event.delta.raw for event in stream)
                assert answer == self.oracle.answer(prompt, STREAM_TOKENS)
            except grpc.RpcError as error:
                if rest < PATIENCE or error.code() != grpc.StatusCode.CANCELLED:
                    raise

    def go_away(self) -> None:
        with self.random.choice(self.servers).new_channel() as channel:
            next(self._stream(self.random.choice(PROMPTS), channel))

    def score(self) -> None:
        documents = self.random.choices(PROMPTS, k=3)
        request = scoring(self.api, "tiny", documents)
        scores = self._stub().ScoreText(request, timeout=HOUR, metadata=self.metadata).scores
        for document, score in zip(documents, scores, strict=True):
            assert abs(score.log_likelihood - self.oracle.log_likelihood(document)) <= 1e-5 * len(document)

    def sort_texts(self) -> None:
        documents = self.random.choices([prompt for prompt in PROMPTS if len(prompt) <= MAX_TOKENS], k=3)
        request = scoring(self.api, "texts", documents, all_logits=True)
        answers = self._stub().ScoreText(request, timeout=HOUR, metadata=self.metadata).classifications
        for document, answer in zip(documents, answers, strict=True):
            assert list(answer.classification.logits) == pytest.approx(self.oracle.text_logits(document), abs=2e-5)

    def sort_images(self) -> None:
        seeds = self.random.choices(range(10), k=3)
        images = [{"encoded": png(some_pixels(seed))} for seed in seeds]
        request = self.api.inference.ClassifyImageRequest(model={"name": "images"}, images=images, all_logits=True)
        answers = self._stub().ClassifyImage(request, timeout=HOUR, metadata=self.metadata).results
        for seed, answer in zip(seeds, answers, strict=True):
            assert list(answer.classification.logits) == pytest.approx(self.oracle.image_logits(seed), abs=2e-5)

    def talk(self) -> None:
        """In turns, some after a call that is cancelled in the middle, some after moving to another server."""
        place, session, said = self.random.randrange(len(self.channels)), self._new_name(), b""
        for _ in range(self.random.randrange(1, 5)):
            words = some_bytes(self.random, self.random.choice([1, 10, 200]))
            answer = self._say(place, session, words, must_exist=said != b"")
            assert answer == self.oracle.answer(said + words, 20)
            said += words + answer
            if self.random.random() < 0.3:
                stream = self._stream(b"never mind", self.channels[place], CANCELLED_TOKENS, session={"id": session})
                next(stream)
                stream.cancel()
            if self.random.random() < 0.3:
                place, session = self._move(place, session)
        self._close(place, session)

    def _channel(self) -> grpc.Channel:
        return self.random.choice(self.channels)

    def _stub(self, channel: grpc.Channel | None = None) -> Any:
        return self.api.inference_grpc.InferenceStub(channel or self._channel())

    def _stream(self, prompt: bytes, channel: grpc.Channel, tokens: int = STREAM_TOKENS, **fields: Any) -> Any:
        request = question(self.api, prompt, tokens, **fields)
        return self._stub(channel).GenerateStream(request, timeout=HOUR, metadata=self.metadata)

    def _new_name(self) -> str:
        return f"talk-{self.random.getrandbits(64)}"

    def _say(self, place: int, session: str, words: bytes, must_exist: bool) -> bytes:
        request = question(self.api, words, 20, session={"id": session, "must_exist": must_exist})
        stub = self._stub(self.channels[place])
        return self._once_free(lambda: stub.Generate(request, timeout=HOUR, metadata=self.metadata)).completions[0].raw

    def _move(self, place: int, session: str) -> tuple[int, str]:
        there, name = (place + 1) % len(self.channels), self._new_name()
        stub = self.api.sessions_grpc.SessionsStub(self.channels[place])
        request = self.api.sessions.ExportSessionRequest(model=TINY, session_id=session)
        parts = self._once_free(lambda: list(stub.ExportSession(request, timeout=HOUR, metadata=self.metadata)))
        messages = [self.api.sessions.ImportSessionRequest(beginning={"model": TINY, "session_id": name})]
        messages += [self.api.sessions.ImportSessionRequest(part=part) for part in parts]
        stub = self.api.sessions_grpc.SessionsStub(self.channels[there])
        stub.ImportSession(iter(messages), timeout=HOUR, metadata=self.metadata)
        self._close(place, session)
        return there, name

    def _close(self, place: int, session: str) -> None:
        stub = self.api.sessions_grpc.SessionsStub(self.channels[place])
        request = self.api.sessions.CloseSessionRequest(model=TINY, session_id=session)
        self._once_free(lambda: stub.CloseSession(request, timeout=HOUR, metadata=self.metadata))

    def _once_free(self, call: Any) -> Any:
        """The session may be in use until the server has seen that its last call was cancelled."""
        while True:
            try:
                return call()
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.ABORTED:
                    raise
            time.sleep(0.01)


ACTS = [
    Member.ask,
    Member.read,
    Member.hurry,
    Member.cancel,
    Member.stall,
    Member.go_away,
    Member.score,
    Member.sort_texts,
    Member.sort_images,
    Member.talk,
]
