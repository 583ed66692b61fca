"""Builds requests from the arguments of the client's methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from longshort._proto import inference_pb2, types_pb2
from longshort.inputs import Text, selector, text_input
from longshort.metadata import CallOptions


class ScoreOptions(CallOptions, total=False):
    """Keyword arguments of scoring.

    model                    "name" or "name/version"; default: the client's
    token_log_probabilities  return every scored token
    top_alternatives         with token_log_probabilities: number of most probable tokens to return at each position,
                             0 to 20
    """

    model: str
    token_log_probabilities: bool
    top_alternatives: int


class ClassifyOptions(CallOptions, total=False):
    """Keyword arguments of classifying.

    model     "name" or "name/version"; default: the client's
    top_k     number of classes to return, most probable first; default 5
    logits    also return the logits of all classes
    truncate  truncate texts to the model's maximum length instead of refusing longer ones
    """

    model: str
    top_k: int
    logits: bool
    truncate: bool


class EmbedOptions(CallOptions, total=False):
    """Keyword arguments of embedding.

    model      "name" or "name/version"; default: the client's
    pooling    "cls": the CLS token's row; "mean": the mean of all tokens' rows; default: what the model's head reads
    normalize  divide each vector by its length, so that dot products are cosines
    truncate   truncate texts to the model's maximum length instead of refusing longer ones
    """

    model: str
    pooling: Literal["cls", "mean"]
    normalize: bool
    truncate: bool


class Sampling(TypedDict, total=False):
    """Sampling options, applied in this order. The server has defaults for those that are not given.

    logit_bias          token id to the value that is added to its logit, in [-100, 100]
    repetition_penalty  divides the positive logits of tokens in prompt and completion, in (0, 100]
    frequency_penalty   subtracted from a token's logit for each time it was generated, in [-100, 100]
    presence_penalty    subtracted from a token's logit if it was generated, in [-100, 100]
    temperature         0 always takes the most probable token; otherwise in (0, 100]; default 1
    top_k               keep the k most probable tokens; 0 keeps all
    top_p               keep the smallest set of tokens whose probabilities add up to this, in (0, 1]
    min_p               keep tokens with at least this fraction of the highest probability, in [0, 1]
    seed                the same seed gives the same tokens; if not given, the server chooses one and returns it
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
    """Keyword arguments of generating.

    model                    "name" or "name/version"; default: the client's
    max_tokens               maximum number of tokens to generate; default 256
    stop                     texts that end a completion and are not part of it; at most 16
    completions              number of completions; default 1
    echo                     start the text with the prompt
    return_raw               also return the text's bytes
    token_log_probabilities  return every generated token
    top_alternatives         with token_log_probabilities: number of most probable tokens to return at each position,
                             0 to 20
    keep_partial             in a session: if the stream is left or fails, the session keeps the prompt and the text
                             that was read; default True. False: the session stays as it was before the call
    """

    model: str
    max_tokens: int
    keep_partial: bool
    stop: str | Sequence[str]
    completions: int
    echo: bool
    return_raw: bool
    token_log_probabilities: bool
    top_alternatives: int


POOLINGS: Mapping[str | None, types_pb2.Pooling.ValueType] = {
    None: types_pb2.POOLING_UNSPECIFIED,
    "cls": types_pb2.POOLING_CLS,
    "mean": types_pb2.POOLING_MEAN,
}


def check_options(options: Mapping[str, object], kind: type) -> None:
    """Raises TypeError for a keyword that `kind` does not have, like a call of a Python function."""
    known: frozenset[str] = getattr(kind, "__optional_keys__")  # noqa: B009
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; valid are: {', '.join(sorted(known))}")


def model_of(
    options: ScoreOptions | ClassifyOptions | EmbedOptions | GenerateOptions, default: str
) -> types_pb2.ModelSelector:
    return selector(options.get("model", default))


def score_request(
    documents: Sequence[tuple[types_pb2.Input, types_pb2.Input | None]], options: inference_pb2.ScoreTextsOptions
) -> inference_pb2.ScoreTextRequest:
    """Combines the options and documents into a unary request."""
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
    """Raises ValueError for options that apply only to texts."""
    if options.get("truncate"):
        raise ValueError("truncate is for texts; the model takes images")
    return inference_pb2.ClassifyImageRequest(
        model=model_of(options, model),
        images=images,
        top_k=options.get("top_k", 0),
        all_logits=options.get("logits", False),
    )


def embed_request(options: EmbedOptions, model: str) -> inference_pb2.EmbedRequest:
    """Returns a request without items. Raises ValueError for an unknown pooling."""
    pooling = options.get("pooling")
    if pooling not in POOLINGS:
        raise ValueError(f'pooling is {pooling!r}; it must be "cls" or "mean"')
    return inference_pb2.EmbedRequest(
        model=model_of(options, model),
        pooling=POOLINGS[pooling],
        normalize=options.get("normalize", False),
        truncate=options.get("truncate", False),
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
        keep_partial=options.get("keep_partial", session is not None),
    )
