"""What calls answer: small frozen dataclasses with the field names and units of longshort.v1.

Every one has `to_dict()`, so that `pandas.DataFrame(answers)` and `json.dumps` (but for bytes) take them.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import grpc
from google.protobuf.message import Message

from longshort import errors

NAN = float("nan")


class Record:
    """What all answers can do."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as dicts, tuples and plain values."""
        found: dict[str, Any] = dataclasses.asdict(self, dict_factory=_plain)  # type: ignore[call-overload]
        return found


def _plain(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value.name if isinstance(value, grpc.StatusCode) else value for name, value in fields}


@dataclass(frozen=True, slots=True)
class ItemError(Record):
    """Why one item of a call failed; the others are not concerned."""

    # As a call's. `to_dict` has its name.
    code: grpc.StatusCode
    # What is wrong, for people.
    message: str
    # Seconds after which it is worth sending the item again, if it was refused for want of room.
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Timings(Record):
    """Where a text's time went, in seconds: waiting, reading, generating."""

    queue_seconds: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ClassificationTimings(Record):
    """Where a classified item's time went, in seconds: decoding and resizing, waiting, the run of its batch."""

    preparation_seconds: float = 0.0
    queue_seconds: float = 0.0
    run_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Token(Record):
    """A token with the model's opinion of it."""

    id: int
    # The bytes that it stands for; empty if none.
    raw: bytes
    # Natural logarithm of the probability that the raw model gave it; at most 0.
    log_probability: float
    # The likeliest tokens at this place, likeliest first, if they were asked for.
    alternatives: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Usage(Record):
    """How many tokens a call took."""

    prompt_tokens: int = 0
    generated_tokens: int = 0
    # Of the prompt and its session: found in the cache, and so not read again.
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Item(Record):
    """An answer to one of several items, which may have failed by itself."""

    # The item's place among those that were given, from 0.
    id: int = 0
    # Why there is no answer; then numbers are NaN or 0, and tuples empty.
    error: ItemError | None = None
    # Name and version of the model that answered.
    model: str = ""
    version: int = 0

    def raise_for_error(self) -> None:
        """Raises the LongshortError of an item that failed."""
        if self.error is not None:
            raise errors.of_code(
                self.error.code,
                f"item {self.id}: {self.error.message}",
                retry_after=self.error.retry_after_seconds,
            )


@dataclass(frozen=True, slots=True)
class TextScore(Item):
    """How likely a language model finds a document."""

    # Sum of the natural logarithms of the scored tokens' probabilities; nats, at most 0.
    log_likelihood: float = NAN
    # Tokens in the document.
    token_count: int = 0
    # How many of them were scored: all but the first, which has nothing before it.
    scored_token_count: int = 0
    # -log2 likelihood per scored byte, of byte vocabularies; per character, of character vocabularies.
    bits_per_byte: float | None = None
    bits_per_character: float | None = None
    # If asked for: the scored tokens, from the document's second one on.
    tokens: tuple[Token, ...] = ()
    timings: Timings = Timings()
    # With a session: the tokens that it holds now.
    session_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ClassProbability(Record):
    """One class: its index, its name (empty for a model without labels), and its probability in [0, 1]."""

    index: int
    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class DocumentReading(Record):
    """How much of a document a classifier read."""

    token_count: int
    # The document went on behind these tokens.
    truncated: bool


@dataclass(frozen=True, slots=True)
class Classification(Item):
    """Which classes a classifier gives to an image or a document."""

    # The likeliest classes, likeliest first.
    classes: tuple[ClassProbability, ...] = ()
    # If asked for: the logit of every class, by index.
    logits: tuple[float, ...] = ()
    # Of text: the document as it was read, and the second one of models that take two.
    documents: tuple[DocumentReading, ...] = ()
    timings: ClassificationTimings = ClassificationTimings()

    @property
    def top(self) -> ClassProbability:
        """The likeliest class. Raises the error of an item that failed."""
        self.raise_for_error()
        return self.classes[0]


@dataclass(frozen=True, slots=True)
class Delta(Record):
    """More of one completion."""

    # Which completion, from 0.
    index: int
    text: str
    # If asked for: the bytes behind the text.
    raw: bytes
    # If asked for: the tokens behind the text.
    tokens: tuple[Token, ...]
    # How many generated tokens this stands for.
    token_count: int


@dataclass(frozen=True, slots=True)
class Completion(Record):
    """A prompt's continuation."""

    index: int
    text: str
    raw: bytes
    tokens: tuple[Token, ...]
    # "length": max_tokens were generated; "stop": the stop string `stop` was met.
    finish_reason: str
    stop: str
    timings: Timings


@dataclass(frozen=True, slots=True)
class Generation(Record):
    """What a call of generate came to."""

    completions: tuple[Completion, ...]
    model: str
    version: int
    # The same seed gives the same tokens.
    seed: int
    # Of all completions together.
    usage: Usage
    # With a session: the tokens that it holds now.
    session_tokens: int | None

    @property
    def text(self) -> str:
        """The first completion's text."""
        return self.completions[0].text


@dataclass(frozen=True, slots=True)
class Tokens(Record):
    """A text as token ids."""

    ids: tuple[int, ...]
    # The bytes that each id stands for; empty for a model without vocabulary and for classifiers.
    pieces: tuple[bytes, ...]
    model: str
    version: int


@dataclass(frozen=True, slots=True)
class LanguageModelHyperparameters(Record):
    """The paper's terms; lengths are in tokens."""

    layers: int
    model_width: int
    heads: int
    feed_forward_width: int
    chunk_size: int
    chunk_rank: int
    window_length: int
    memory_length: int
    segment_length: int


@dataclass(frozen=True, slots=True)
class ClassifierProperties(Record):
    """What a classifier takes and gives."""

    # "text", "pixel_sequence" or "image".
    input: str
    classes: int
    # By index; empty for a model without names, and in `models()`, which leaves them out.
    labels: tuple[str, ...]
    # Text: how many documents make one item.
    documents: int
    max_document_tokens: int
    # Images: 1 (grey) or 3.
    channels: int


@dataclass(frozen=True, slots=True)
class Limits(Record):
    """What the server takes for a model; 0 where the model takes nothing of the kind."""

    prompt_tokens: int
    max_tokens: int
    completions: int
    inputs: int
    images: int
    image_bytes: int
    image_pixels: int
    window: int
    message_bytes: int


@dataclass(frozen=True, slots=True)
class Model(Record):
    """A model that the server has loaded."""

    name: str
    version: int
    # "language_model", "text_classifier", "vil" or "cvt".
    architecture: str
    # SHA-256 of the model's files, in hex: equal fingerprints give equal results (with equal precision).
    fingerprint: str
    precision: str
    parameters: int
    vocabulary_size: int
    tokenizer: str
    limits: Limits
    language_model: LanguageModelHyperparameters | None
    classifier: ClassifierProperties | None


@dataclass(frozen=True, slots=True)
class ListedSession(Record):
    """A conversation that a server remembers."""

    # Whose it is: the client's id; with authentication "/IDENTITY/CLIENT".
    owner: str
    session_id: str
    # 0 while the call that begins it goes on.
    session_tokens: int
    # Since a call used it; 0 while one does.
    idle_seconds: float
    in_use: bool


@dataclass(frozen=True, slots=True)
class ExportedSession(Record):
    """What was exported. Servers trust the data only."""

    data_bytes: int
    # Of the model that the session belongs to.
    fingerprint: str
    session_tokens: int


R = TypeVar("R", bound=Record)


def read(kind: type[R], message: Message, **more: Any) -> R:
    """The message as an answer of this kind; `more` are the fields that are not as the message has them."""
    values = {name: value(message) for name, value in _readers(kind, type(message)) if name not in more}
    return kind(**values, **more)


_plans: dict[tuple[type[Record], type[Message]], list[tuple[str, Callable[[Message], Any]]]] = {}


def _readers(kind: type[Record], message: type[Message]) -> list[tuple[str, Callable[[Message], Any]]]:
    """For each field that both have, what reads it."""
    plan = _plans.get((kind, message))
    if plan is None:
        fields: Any = message.DESCRIPTOR.fields_by_name
        hints = get_type_hints(kind)
        plan = [(name, _reader(name, hint, fields[name])) for name, hint in hints.items() if name in fields]
        _plans[(kind, message)] = plan
    return plan


def _reader(name: str, hint: Any, field: Any) -> Callable[[Message], Any]:
    if isinstance(hint, types.UnionType):
        inner = _reader(name, get_args(hint)[0], field)
        return lambda message: inner(message) if message.HasField(name) else None
    if get_origin(hint) is tuple:
        element = get_args(hint)[0]
        if isinstance(element, type) and issubclass(element, Record):
            return lambda message: tuple(read(element, one) for one in getattr(message, name))
        return lambda message: tuple(getattr(message, name))
    if issubclass(hint, Record):
        return lambda message: read(hint, getattr(message, name))
    if field.enum_type is not None:
        prefix = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        names = {value.number: value.name.removeprefix(prefix).lower() for value in field.enum_type.values}
        return lambda message: names.get(getattr(message, name), "unknown")
    return lambda message: getattr(message, name)
