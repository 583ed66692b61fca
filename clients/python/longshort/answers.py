"""The answers of calls: frozen dataclasses with the field names and units of longshort.v1.

`to_dict()` converts them for `pandas.DataFrame` and (except for bytes) `json.dumps`.
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
    """Base class of all answers."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as dicts, tuples and plain values."""
        found: dict[str, Any] = dataclasses.asdict(self, dict_factory=_plain)  # type: ignore[call-overload]
        return found


def _plain(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value.name if isinstance(value, grpc.StatusCode) else value for name, value in fields}


@dataclass(frozen=True, slots=True)
class ItemError(Record):
    """The error of one item of a call. It does not affect the other items."""

    # A status code of gRPC. `to_dict` returns its name.
    code: grpc.StatusCode
    # Human-readable.
    message: str
    # Seconds to wait before sending the item again, if the server was full.
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Timings(Record):
    """The times of a text, in seconds: waiting, reading, generating."""

    queue_seconds: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ClassificationTimings(Record):
    """The times of a classified item, in seconds: decoding and resizing, waiting, running its batch."""

    preparation_seconds: float = 0.0
    queue_seconds: float = 0.0
    run_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Token(Record):
    """A token and its probability under the model."""

    id: int
    # The token's bytes; may be empty.
    raw: bytes
    # Natural logarithm of its probability under the model, before sampling options; at most 0.
    log_probability: float
    # The most probable tokens at this position, most probable first, if requested.
    alternatives: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Usage(Record):
    """The number of tokens of a call."""

    prompt_tokens: int = 0
    generated_tokens: int = 0
    # Tokens of the prompt and its session that were found in the cache, and so not processed again.
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Item(Record):
    """The answer to one of several items, each of which may fail."""

    # The item's index in the input, from 0.
    id: int = 0
    # Set if the item failed. Then numbers are NaN or 0, and tuples are empty.
    error: ItemError | None = None
    # Name and version of the model that answered.
    model: str = ""
    version: int = 0

    def raise_for_error(self) -> None:
        """Raises a LongshortError if the item failed."""
        if self.error is not None:
            raise errors.of_code(
                self.error.code,
                f"item {self.id}: {self.error.message}",
                retry_after=self.error.retry_after_seconds,
            )


@dataclass(frozen=True, slots=True)
class TextScore(Item):
    """The likelihood of a document under a language model."""

    # Sum of the natural logarithms of the scored tokens' probabilities; nats, at most 0.
    log_likelihood: float = NAN
    # Tokens in the document.
    token_count: int = 0
    # Number of scored tokens: all except the first, which has no context.
    scored_token_count: int = 0
    # -log2 likelihood per scored byte, for byte vocabularies; per character, for character vocabularies.
    bits_per_byte: float | None = None
    bits_per_character: float | None = None
    # The scored tokens, starting with the document's second one, if requested.
    tokens: tuple[Token, ...] = ()
    timings: Timings = Timings()
    # With a session: the number of tokens that it holds now.
    session_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ClassProbability(Record):
    """One class: its index, its name (empty for a model without labels), and its probability in [0, 1]."""

    index: int
    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class DocumentReading(Record):
    """The part of a document that a classifier read."""

    token_count: int
    # Whether the document was longer.
    truncated: bool


@dataclass(frozen=True, slots=True)
class Classification(Item):
    """The classification of an image or a document."""

    # The most probable classes, most probable first.
    classes: tuple[ClassProbability, ...] = ()
    # The logits of all classes, by index, if requested.
    logits: tuple[float, ...] = ()
    # For texts: the reading of the document, and of the second one for models that compare two.
    documents: tuple[DocumentReading, ...] = ()
    timings: ClassificationTimings = ClassificationTimings()

    @property
    def top(self) -> ClassProbability:
        """The most probable class. Raises a LongshortError if the item failed."""
        self.raise_for_error()
        return self.classes[0]


@dataclass(frozen=True, slots=True)
class Embedding(Item):
    """The embedding of an image or a document. numpy.array of one is [width], of a list of them [items, width]."""

    values: tuple[float, ...] = ()
    # For texts: the reading of the document, and of the second one of a pair.
    documents: tuple[DocumentReading, ...] = ()
    timings: ClassificationTimings = ClassificationTimings()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For NumPy: the values, by default as float32. Raises a LongshortError if the item failed."""
        import numpy

        self.raise_for_error()
        return numpy.array(self.values, dtype or numpy.float32)


@dataclass(frozen=True, slots=True)
class Delta(Record):
    """The next piece of a completion."""

    # The completion's index, from 0.
    index: int
    text: str
    # The text's bytes, if requested.
    raw: bytes
    # The text's tokens, if requested.
    tokens: tuple[Token, ...]
    # Number of generated tokens in this piece.
    token_count: int


@dataclass(frozen=True, slots=True)
class Completion(Record):
    """One continuation of a prompt."""

    index: int
    text: str
    raw: bytes
    tokens: tuple[Token, ...]
    # "length": max_tokens were generated; "stop": the stop string `stop` was found.
    finish_reason: str
    stop: str
    timings: Timings


@dataclass(frozen=True, slots=True)
class Generation(Record):
    """The result of a call of generate."""

    completions: tuple[Completion, ...]
    model: str
    version: int
    # The same seed gives the same tokens.
    seed: int
    # The sum over all completions.
    usage: Usage
    # With a session: the number of tokens that it holds now.
    session_tokens: int | None

    @property
    def text(self) -> str:
        """The first completion's text."""
        return self.completions[0].text


@dataclass(frozen=True, slots=True)
class Tokens(Record):
    """The token ids of a text."""

    ids: tuple[int, ...]
    # The bytes of each id; empty for models without a vocabulary.
    pieces: tuple[bytes, ...]
    # Where each token begins and ends in the text, in bytes of its UTF-8, and in characters; empty if the text was ids.
    byte_begins: tuple[int, ...]
    byte_ends: tuple[int, ...]
    character_begins: tuple[int, ...]
    character_ends: tuple[int, ...]
    model: str
    version: int


@dataclass(frozen=True, slots=True)
class LanguageModelHyperparameters(Record):
    """Hyperparameters in the paper's terms. Lengths are in tokens."""

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
    """The inputs and classes of a classifier."""

    # "text", "pixel_sequence" or "image".
    input: str
    classes: int
    # Class names by index; empty if the model has none, and in `models()`.
    labels: tuple[str, ...]
    # Texts: number of documents that an item needs.
    documents: int
    max_document_tokens: int
    # Images: 1 (grey) or 3.
    channels: int
    # Numbers in an embedding; 0 if the server is older than embeddings.
    embedding_width: int
    # Texts: number of documents that an item may have.
    max_documents: int
    # "single_label_classification", "multi_label_classification" or "regression".
    problem_type: str


@dataclass(frozen=True, slots=True)
class Limits(Record):
    """The server's limits for a model; 0 where a limit does not apply."""

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
    """A session on a server."""

    # The owner: the client's id, or with authentication "/IDENTITY/CLIENT".
    owner: str
    session_id: str
    # 0 while its first call is running.
    session_tokens: int
    # Time since a call used it; 0 while in use.
    idle_seconds: float
    in_use: bool


@dataclass(frozen=True, slots=True)
class ExportedSession(Record):
    """A description of an exported session. Servers do not rely on it, but check the data."""

    data_bytes: int
    # The fingerprint of the session's model.
    fingerprint: str
    session_tokens: int


R = TypeVar("R", bound=Record)


def read(kind: type[R], message: Message, **more: Any) -> R:
    """Converts the message to an answer of this kind. `more` overrides or adds fields."""
    values = {name: value(message) for name, value in _readers(kind, type(message)) if name not in more}
    return kind(**values, **more)


_plans: dict[tuple[type[Record], type[Message]], list[tuple[str, Callable[[Message], Any]]]] = {}


def _readers(kind: type[Record], message: type[Message]) -> list[tuple[str, Callable[[Message], Any]]]:
    """Returns the common fields of both types, each with the function that reads it."""
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
