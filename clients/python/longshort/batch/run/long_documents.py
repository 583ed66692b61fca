"""Scores documents that are too long for one message, or for one answer, in pieces: each piece continues the session of
the one before. The result is that of one call.

An answer names at most 131,072 tokens, so the region bits of a longer document need several calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from longshort import errors, methods
from longshort._async.calls import AsyncCalls
from longshort._proto import inference_pb2, types_pb2
from longshort.inputs import Text, text_input
from longshort.metadata import CallOptions
from longshort.retries import PATIENT, Attempts

# Maximum number of tokens that one answer names (longshort.v1).
MAX_NAMED_TOKENS = 131_072
# Upper bound of a message's bytes beside the text.
_OVERHEAD_BYTES = 512


@dataclass(slots=True)
class LongScore:
    """As TextScore of longshort.v1; `region_bits` if regions were requested."""

    log_likelihood: float = 0.0
    token_count: int = 0
    scored_token_count: int = 0
    bits_per_byte: float | None = None
    bits_per_character: float | None = None
    region_bits: list[float] | None = None


def pieces(document: Text, message_bytes: int) -> Iterator[Text]:
    """Cuts a document into pieces in order. A message has room for each piece, and an answer names all of its tokens.
    Characters stay whole; bytes that are not UTF-8 are cut anywhere."""
    max_tokens = min(MAX_NAMED_TOKENS, message_bytes - _OVERHEAD_BYTES)
    if isinstance(document, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            document = document.decode()
    # A character has at most four bytes, so at most four tokens of a byte vocabulary. An id mostly has three bytes.
    size = max_tokens if isinstance(document, bytes) else max_tokens // 4
    for begin in range(0, len(document), size):
        yield document[begin : begin + size]


async def score_long(
    calls: AsyncCalls,
    document: Text,
    model: types_pb2.ModelSelector,
    region_tokens: int,
    message_bytes: int,
    options: CallOptions,
    on_answer: Callable[[], None],
) -> LongScore:
    """Calls `on_answer` for each piece. Retries a refusal after its time; raises any other LongshortError, after which
    the caller may score the document again."""
    session = uuid.uuid4().hex
    found = LongScore()
    regions = Regions(region_tokens) if region_tokens else None
    try:
        for piece in pieces(document, message_bytes):
            question = inference_pb2.ScoreTextRequest(
                model=model,
                inputs=[text_input(piece)],
                token_log_probabilities=regions is not None,
                session=types_pb2.Session(id=session, expected_tokens=found.token_count),
            )
            answer = await _ask(calls, question, session, options)
            _add(found, answer.scores[0], regions)
            on_answer()
    finally:
        with contextlib.suppress(errors.LongshortError):
            end = methods.end_session(model, session)
            await calls.unary(methods.CLOSE_SESSION, end, CallOptions(timeout=20.0), session_id=session)
    if regions is not None:
        found.region_bits = regions.bits()
    return found


async def _ask(
    calls: AsyncCalls, question: inference_pb2.ScoreTextRequest, session: str, options: CallOptions
) -> inference_pb2.ScoreTextResponse:
    attempts = Attempts(PATIENT, float("inf"))
    while True:
        try:
            return await calls.unary(methods.SCORE_TEXT, question, options, session_id=session)
        except errors.ResourceExhausted as error:
            await asyncio.sleep(max(0.01, attempts.wait_after(error)))


def _add(found: LongScore, score: inference_pb2.TextScore, regions: Regions | None) -> None:
    found.log_likelihood += score.log_likelihood
    found.token_count += score.token_count
    found.scored_token_count += score.scored_token_count
    bits = -found.log_likelihood / 0.6931471805599453 / max(1, found.scored_token_count)
    if score.HasField("bits_per_byte"):
        found.bits_per_byte = bits
    if score.HasField("bits_per_character"):
        found.bits_per_character = bits
    if regions is not None:
        regions.add([token.log_probability for token in score.tokens])


class Regions:
    """Bits by region: sums -log2 of the tokens' probabilities over each region of the document."""

    def __init__(self, window: int) -> None:
        """`window`: tokens in each region. The last region may have fewer."""
        if window < 1:
            raise ValueError(f"window is {window}; it must be at least 1 token")
        self._window = window
        # The first token is in the first region, and needs no bits.
        self._tokens = 1
        self._nats = [0.0]

    def add(self, log_probabilities: Sequence[float]) -> None:
        """Adds the log-probabilities of the next tokens, in nats. The document's second token is the first."""
        begin = 0
        while begin < len(log_probabilities):
            if self._tokens % self._window == 0:
                self._nats.append(0.0)
            end = min(len(log_probabilities), begin + self._window - self._tokens % self._window)
            self._nats[-1] -= math.fsum(log_probabilities[begin:end])
            self._tokens += end - begin
            begin = end

    def bits(self) -> list[float]:
        """[ceil(tokens / window)]"""
        return [nats / math.log(2) for nats in self._nats]


def region_bits(log_probabilities: Sequence[float], window: int) -> list[float]:
    """The bits of each region of a whole document.

    log_probabilities  [tokens - 1]
    """
    regions = Regions(window)
    regions.add(log_probabilities)
    return regions.bits()
