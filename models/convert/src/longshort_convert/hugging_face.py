"""Reads the config.json of Hugging Face's RoBERTa, and refuses models and settings that Longshort does not compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longshort_convert import text_classifier
from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields
from longshort_convert.input_files import read_json_object

CONFIG = "config.json"
# The model_type of a RoBERTa with long-short attention (docs/models/long_document_encoder.md).
LONG_SHORT = "longshort_roberta"
CLASSIFIER, ENCODER, MASKED_LM = "RobertaForSequenceClassification", "RobertaModel", "RobertaForMaskedLM"

_OTHER_MODELS = {
    "albert": "it shares its layers and has a SentencePiece tokenizer",
    "bert": "it has a WordPiece tokenizer and two types of tokens",
    "bart": "it has a decoder",
    "big_bird": "its sparse attention is another one",
    "camembert": "it has a SentencePiece tokenizer",
    "data2vec-text": "only RoBERTa itself is checked against its source",
    "deberta": "its attention has relative positions",
    "deberta-v2": "its attention has relative positions",
    "distilbert": "it has a WordPiece tokenizer and other names of tensors",
    "distilroberta": "save it with model_type roberta",
    "electra": "it has a WordPiece tokenizer and another head",
    "led": "it has a decoder",
    "longformer": "it has own projections for global attention, and its windows slide token by token",
    "modernbert": "its positions are rotations, and its layers have gates",
    "mpnet": "its attention has relative positions",
    "roberta-prelayernorm": "it has its layer norms before attention",
    "xlm-roberta": "it has a SentencePiece tokenizer",
    "xlm-roberta-xl": "it has its layer norms before attention, and a SentencePiece tokenizer",
    "xlnet": "its attention has relative positions",
    "xmod": "it has adapters of languages",
}
# Settings that change what RoBERTa computes, with the values that Longshort computes.
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "adapters": (None, {}),
    "auto_map": (None, {}),
    "hidden_act": ("gelu",),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "position_embedding_type": ("absolute",),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
    "tie_encoder_decoder": (False,),
}
# Settings that are read here or have no effect on results.
_KNOWN = {
    *("architectures", "model_type", "problem_type", "id2label", "label2id", "num_labels", "_num_labels"),
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size"),
    *("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "window_size", "projection_rank"),
    *("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "decoder_start_token_id"),
    *("attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout", "initializer_range"),
    *("transformers_version", "_name_or_path", "dtype", "torch_dtype", "use_cache", "gradient_checkpointing"),
    *("output_past", "output_hidden_states", "output_attentions", "return_dict", "finetuning_task", "torchscript"),
    *("chunk_size_feed_forward", "tie_word_embeddings", "task_specific_params", "prefix", "tokenizer_class"),
    *("use_bfloat16", "language", "attn_implementation", "_attn_implementation_autoset", "cross_attention_hidden_size"),
}


@dataclass(frozen=True)
class Ids:
    """The ids of special tokens: <pad>, </s>, and <s>, which is the first of a document (None: not known)."""

    padding: int = 1
    separator: int = 2
    first: int | None = 0


@dataclass(frozen=True)
class Settings:
    """What the tensors do not say. A size that is 0 is not known."""

    where: str  # the file's name in errors
    heads: int
    layer_norm_epsilon: float = 1e-5
    ids: Ids = Ids()
    has_head: bool | None = None  # None: by the tensors
    problem_type: str | None = None
    labels: tuple[str, ...] | None = None
    window_size: int | None = None
    sizes: Mapping[str, int] | None = None  # fields of our config.json that the tensors must confirm
    notes: tuple[str, ...] = ()


def refuse_other_models(path: Path) -> None:
    """Raises ConvertError for the config.json of a model that the converter knows and does not read."""
    try:
        kind = read_json_object(path).get("model_type")
    except (ConvertError, OSError):  # other models need no config.json
        return
    if str(kind) in _OTHER_MODELS:
        raise ConvertError(f"{path}: {_other_model(kind)}")


def read_settings(path: Path) -> Settings:
    """Raises ConvertError naming the file and a setting that is missing, unknown or not supported; or OSError."""
    content = read_json_object(path)
    try:
        return replace(_settings(Fields(content)), where=str(path))
    except ConvertError as error:
        raise ConvertError(f"{path}: {error}") from error


def _settings(fields: Fields) -> Settings:
    values = fields.values
    _check_model(fields)
    for name, supported in _SETTINGS.items():
        if name in values and values[name] not in supported:
            wanted = " or ".join(repr(value) for value in supported)
            raise ConvertError(f"{name} is {values[name]!r}; Longshort computes only {wanted}")
    epsilon = values.get("layer_norm_eps", 1e-12)  # as in transformers
    if type(epsilon) not in (int, float) or not 0 < epsilon < 1:
        raise ConvertError(f"layer_norm_eps is {epsilon!r}, not a number between 0 and 1")
    labels = _labels(values.get("id2label"))
    heads = fields.positive("num_attention_heads")
    notes = []
    if unknown := sorted(set(values) - set(_SETTINGS) - _KNOWN):
        notes.append(f"settings of {CONFIG} that the converter does not know and ignores: {', '.join(unknown)}")
    names = {
        "hidden_size": "model_width",
        "intermediate_size": "feed_forward_width",
        "num_hidden_layers": "layers",
        "vocab_size": "vocabulary_size",
    }
    sizes = {ours: fields.positive(theirs) for theirs, ours in names.items() if theirs in values}
    if "max_position_embeddings" in values:
        sizes["position_rows"] = fields.positive("max_position_embeddings")
    return Settings(
        where="",
        heads=heads,
        layer_norm_epsilon=float(epsilon),
        ids=Ids(_id(fields, "pad_token_id", 1), _id(fields, "eos_token_id", 2), _id(fields, "bos_token_id", 0)),
        has_head=_has_head(values),
        problem_type=_problem_type(values),
        labels=labels,
        window_size=fields.natural("window_size") if "window_size" in values else None,
        sizes=sizes,
        notes=tuple(notes),
    )


def _check_model(fields: Fields) -> None:
    values = fields.values
    kind = values.get("model_type")
    if kind not in ("roberta", LONG_SHORT):
        raise ConvertError(_other_model(kind))
    architecture = _architecture(values)
    if architecture not in (None, CLASSIFIER, ENCODER, MASKED_LM):
        raise ConvertError(
            f"architectures is [{architecture!r}]; Longshort serves {CLASSIFIER}, {ENCODER}, and {MASKED_LM} as an "
            "encoder; for its encoder alone, save model.roberta by save_pretrained()"
        )
    if kind == "roberta" and "window_size" in values:
        raise ConvertError(f"window_size is in a config of model_type 'roberta'; only {LONG_SHORT!r} has windows")


def _other_model(kind: Any) -> str:
    reason = _OTHER_MODELS.get(str(kind))
    wanted = f"model_type is {kind!r}; of Hugging Face's models, Longshort serves 'roberta'"
    return f"{wanted}: {reason}" if reason else wanted


def _architecture(values: Mapping[str, Any]) -> Any:
    found = values.get("architectures")
    if found is not None and (not isinstance(found, list) or len(found) != 1):
        raise ConvertError(f"architectures is {found!r}, not a list of one name")
    return None if found is None else found[0]


def _has_head(values: Mapping[str, Any]) -> bool | None:
    architecture = _architecture(values)
    return None if architecture is None else architecture == CLASSIFIER


def _problem_type(values: Mapping[str, Any]) -> str | None:
    found = values.get("problem_type")
    if found is not None and found not in text_classifier.PROBLEM_TYPES:
        raise ConvertError(f"problem_type is {found!r}, not one of {', '.join(text_classifier.PROBLEM_TYPES)}")
    return found


def _labels(found: object) -> tuple[str, ...] | None:
    if found is None:
        return None
    if not isinstance(found, Mapping) or {str(key) for key in found} != {str(index) for index in range(len(found))}:
        raise ConvertError(f"id2label is {found!r}, not an object with the names of classes 0, 1, ...")
    labels = tuple(found[key] for key in sorted(found, key=int))
    for label in labels:
        if not isinstance(label, str) or label == "" or "\n" in label or "\r" in label:
            raise ConvertError(f"id2label has {label!r}, which is not the name of a class on one line")
    return labels


def _id(fields: Fields, name: str, default: int) -> int:
    return fields.natural(name) if fields.values.get(name) is not None else default
