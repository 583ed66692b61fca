"""Documents that are too long for one answer, or one message: scored piece by piece, each going on where the one before
ended. What comes of it is what one call would tell.

A language model's answer names 131,072 tokens at the most, so surprise by region of a longer document needs several.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from longshort import errors, methods
from longshort._async.calls import AsyncCalls
from longshort._proto import inference_pb2, types_pb2
from longshort.batch.regions import Regions
from longshort.inputs import Text, text_input
from longshort.metadata import CallOptions
from longshort.retries import PATIENT, Attempts

# Tokens that one answer names, over all (longshort.v1).
MOST_NAMED_TOKENS = 131_072
# Of a message, beside the text.
_OVERHEAD_BYTES = 512


@dataclass(slots=True)
class LongScore:
    """As TextScore of longshort.v1; `region_bits` if regions were asked for."""

    log_likelihood: float = 0.0
    token_count: int = 0
    scored_token_count: int = 0
    bits_per_byte: float | None = None
    bits_per_character: float | None = None
    region_bits: list[float] | None = None


def pieces(document: Text, message_bytes: int) -> Iterator[Text]:
    """In order, each of so few tokens that an answer names all, and bytes that a message takes. Characters stay whole;
    bytes that are not UTF-8 are cut anywhere."""
    most = min(MOST_NAMED_TOKENS, message_bytes - _OVERHEAD_BYTES)
    if isinstance(document, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            document = document.decode()
    # A character is four bytes at the most, and so are the tokens of a byte vocabulary; an id is three, mostly.
    size = most if isinstance(document, bytes) else most // 4
    for begin in range(0, len(document), size):
        yield document[begin : begin + size]


async def score_long(
    calls: AsyncCalls,
    document: Text,
    model: types_pb2.ModelSelector,
    region_tokens: int,
    message_bytes: int,
    options: CallOptions,
    heard: Callable[[], None],
) -> LongScore:
    """`heard` is called for each piece. A refusal is waited out; any other LongshortError is raised, and the document
    may be begun anew."""
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
            heard()
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
