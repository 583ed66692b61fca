"""Requests from what a caller gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from longshort._proto import inference_pb2, types_pb2
from longshort.inputs import Text, selector, text_input
from longshort.metadata import CallOptions


class ScoreOptions(CallOptions, total=False):
    """What scoring takes besides the documents.

    model                    "name" or "name/version"; default: the client's
    token_log_probabilities  return every scored token
    top_alternatives         with it: how many of the likeliest tokens to name at each place, 0 to 20
    """

    model: str
    token_log_probabilities: bool
    top_alternatives: int


class ClassifyOptions(CallOptions, total=False):
    """What classifying takes besides the items.

    model     "name" or "name/version"; default: the client's
    top_k     how many of the likeliest classes to name; default 5
    logits    return the logits of all classes, too
    truncate  of a text that is longer than the model takes, read the beginning instead of refusing it
    """

    model: str
    top_k: int
    logits: bool
    truncate: bool


class Sampling(TypedDict, total=False):
    """How each token is chosen, in this order. Unset: the server's defaults.

    logit_bias          token id to what is added to its logit, in [-100, 100]
    repetition_penalty  divides the positive logits of tokens that were seen, in (0, 100]
    frequency_penalty   subtracted from a logit each time the token was generated, in [-100, 100]
    presence_penalty    subtracted once it was generated at all, in [-100, 100]
    temperature         0 takes the likeliest token every time; otherwise in (0, 100]; default 1
    top_k               keep the k likeliest; 0: all
    top_p               keep the fewest whose probabilities reach this, in (0, 1]
    min_p               keep those with at least this share of the likeliest's probability, in [0, 1]
    seed                the same seed gives the same tokens; unset: the server draws one and tells it
    """

    logit_bias: Mapping[int, float]
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int


class GenerateOptions(CallOptions, Sampling, total=False):
    """What generating takes besides the prompt.

    model                    "name" or "name/version"; default: the client's
    max_tokens               how many tokens to generate at the most; default 256
    stop                     texts that end a completion and are not part of it; at most 16
    completions              how many; default 1
    echo                     begin the text with the prompt
    return_raw               return the bytes behind the text, too
    token_log_probabilities  return every generated token
    top_alternatives         with it: how many of the likeliest tokens to name at each place, 0 to 20
    """

    model: str
    max_tokens: int
    stop: str | Sequence[str]
    completions: int
    echo: bool
    return_raw: bool
    token_log_probabilities: bool
    top_alternatives: int


def check_options(options: Mapping[str, object], kind: type) -> None:
    """Raises TypeError for a keyword that is none of the kind's, as Python does for those of a function."""
    known: frozenset[str] = getattr(kind, "__optional_keys__")  # noqa: B009
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; there are: {', '.join(sorted(known))}")


def model_of(options: ScoreOptions | ClassifyOptions | GenerateOptions, default: str) -> types_pb2.ModelSelector:
    return selector(options.get("model", default))


def score_request(
    documents: Sequence[tuple[types_pb2.Input, types_pb2.Input | None]], options: inference_pb2.ScoreTextsOptions
) -> inference_pb2.ScoreTextRequest:
    """Of one call, what a stream has in its first message and its documents."""
    return inference_pb2.ScoreTextRequest(
        model=options.model,
        inputs=[first for first, _ in documents],
        second_inputs=[second for _, second in documents if second is not None],
        token_log_probabilities=options.token_log_probabilities,
        top_alternatives=options.top_alternatives,
        truncate=options.truncate,
        top_k=options.top_k,
        all_logits=options.all_logits,
    )


def score_options(options: ScoreOptions, model: str) -> inference_pb2.ScoreTextsOptions:
    return inference_pb2.ScoreTextsOptions(
        model=model_of(options, model),
        token_log_probabilities=options.get("token_log_probabilities", False),
        top_alternatives=options.get("top_alternatives", 0),
    )


def classify_text_options(options: ClassifyOptions, model: str) -> inference_pb2.ScoreTextsOptions:
    return inference_pb2.ScoreTextsOptions(
        model=model_of(options, model),
        truncate=options.get("truncate", False),
        top_k=options.get("top_k", 0),
        all_logits=options.get("logits", False),
    )


def classify_request(
    images: Sequence[inference_pb2.Image], options: ClassifyOptions, model: str
) -> inference_pb2.ClassifyImageRequest:
    """Raises ValueError for what is of texts alone."""
    if options.get("truncate"):
        raise ValueError("truncate is for texts; the model takes images")
    return inference_pb2.ClassifyImageRequest(
        model=model_of(options, model),
        images=images,
        top_k=options.get("top_k", 0),
        all_logits=options.get("logits", False),
    )


def generate_request(
    prompt: Text | None, options: GenerateOptions, model: str, session: types_pb2.Session | None = None
) -> inference_pb2.GenerateRequest:
    stop = options.get("stop", ())
    return inference_pb2.GenerateRequest(
        model=model_of(options, model),
        prompt=None if prompt is None else text_input(prompt),
        max_tokens=options.get("max_tokens", 0),
        sampling=inference_pb2.Sampling(
            temperature=options.get("temperature"),
            top_k=options.get("top_k", 0),
            top_p=options.get("top_p"),
            min_p=options.get("min_p", 0.0),
            repetition_penalty=options.get("repetition_penalty"),
            frequency_penalty=options.get("frequency_penalty", 0.0),
            presence_penalty=options.get("presence_penalty", 0.0),
            logit_bias=options.get("logit_bias", {}),
            seed=options.get("seed"),
        ),
        stop=[stop] if isinstance(stop, str) else stop,
        completions=options.get("completions", 0),
        token_log_probabilities=options.get("token_log_probabilities", False),
        top_alternatives=options.get("top_alternatives", 0),
        echo=options.get("echo", False),
        return_raw=options.get("return_raw", False),
        session=session,
    )
