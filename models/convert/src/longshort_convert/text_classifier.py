"""The text classifiers of the official Long Range Arena code: {"model_state_dict": ...}, without hyperparameters.

Sizes follow from the tensors. The user must give heads, window, the kind of CLS and the number of tied layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields, rename_official
from longshort_convert.weights import Shapes, StateDict, Weight, affine, norm

ARCHITECTURE = "text_classifier"
FIELDS = (
    "architecture",
    "tokenizer",
    "layers",
    "model_width",
    "heads",
    "feed_forward_width",
    "window_size",
    "projection_rank",
    "vocabulary_size",
    "max_sequence_length",
    "cls",
    "normalized_cls",
    "value_convolution",
    "tied_layers",
    "documents",
    "classes",
    "pooled_length",
    "max_document_tokens",
    "preprocessing",
)
LISTOPS_TOKENIZERS = ("listops_2020", "listops_2021")
TOKENIZERS = ("none", "bytes_plus_one", *LISTOPS_TOKENIZERS, "pixels")

_DEFAULTS = {"tokenizer": "none", "normalized_cls": False}
_POOLED = ("none", "vocabulary")  # kinds of CLS without a parameter
_CLS_PARAMETER = "model.cls_embed"

_OFFICIAL_NAMES = {
    "num_landmarks": "projection_rank",
    "window_size": "window_size",
    "conv_kernel_size": "value_convolution",
    "tied_weights": "tied_layers",
    "embedding_dim": "model_width",
    "transformer_hidden_dim": "feed_forward_width",
    "num_head": "heads",
    "num_layers": "layers",
    "vocab_size": "vocabulary_size",
    "max_seq_len": "max_sequence_length",
    "debug": "normalized_cls",
    "num_classes": "classes",
}
# Hyperparameters that are read below, or that affect only training.
_OTHER_OFFICIAL_NAMES = (
    "attn_type",
    "transformer_dim",
    "head_dim",
    "pooling_mode",
    "cls_token",
    "cls_last_layer",
    "dropout_prob",
    "attention_dropout",
    "attention_grad_checkpointing",
    "learn_pos_emb",
    "conv_zero_init",
    "fp32_attn",
    "mixed_precision",
)


def from_official(official: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of config.json that follow from the official model config. Errors: ConvertError."""
    fields = rename_official(official, _OFFICIAL_NAMES, _OTHER_OFFICIAL_NAMES)
    if official.get("attn_type", "lsta") != "lsta":
        raise ConvertError(f"attn_type is {official['attn_type']!r}, not 'lsta'")
    width = official.get("embedding_dim")
    if official.get("transformer_dim", width) != width:
        raise ConvertError(f"transformer_dim is {official['transformer_dim']!r}, embedding_dim {width!r}")
    heads, head_width = official.get("num_head"), official.get("head_dim")
    if type(heads) is int and type(head_width) is int and heads * head_width != width:
        raise ConvertError(f"num_head {heads} * head_dim {head_width} is not embedding_dim {width!r}")
    if type(fields.get("value_convolution")) is int:
        fields["value_convolution"] = max(fields["value_convolution"], 0)
    if "pooling_mode" in official:
        fields["cls"] = _cls(official)
    return fields


def convert(state: StateDict, fields: Fields) -> dict[str, Weight]:
    """Completes the fields and returns the tensors. Errors: ConvertError."""
    fields.refuse_unknown(FIELDS)
    fields.default(_DEFAULTS)
    fields.require("heads", "window_size", "cls")
    fields.settle(_derived(state, fields))
    _check(state, fields)
    return state.take(tensor_shapes(fields))


def describe(fields: Fields) -> str:
    v = fields.values
    return (
        f"text classifier, {v['layers']} layers, width {v['model_width']}, {v['heads']} heads, window "
        f"{v['window_size']}, rank {v['projection_rank']}, CLS {v['cls']}, tokenizer {v['tokenizer']}"
    )


def _cls(official: Mapping[str, Any]) -> str:
    pooling = official["pooling_mode"]
    if pooling not in ("MEAN", "CLS"):
        raise ConvertError(f"pooling_mode is {pooling!r}, not MEAN or CLS")
    parameter = official.get("cls_token", False), official.get("cls_last_layer", False)
    if pooling == "CLS":
        if any(parameter):
            raise ConvertError("pooling_mode CLS excludes both cls_token and cls_last_layer")
        return "vocabulary"
    if parameter[1]:
        return "last_layer"
    return "all_layers" if parameter[0] else "none"


def _derived(state: StateDict, fields: Fields) -> dict[str, Any]:
    """The fields that follow from the shapes."""
    vocabulary_size, width = state.shape("model.embeddings.word_embeddings.weight", 2)
    positions, _ = state.shape("model.embeddings.position_embeddings.weight", 2)
    tied = "model.transformer.norm1.weight" in state
    first = _layer_prefix(tied, 0)
    heads = fields.positive("heads")
    projected, _ = state.shape(f"{first}.mha.dconv_fc.weight", 2)
    if width % heads != 0 or projected % heads != 0:
        raise ConvertError(f"heads is {heads}, which does not divide width {width} and projection {projected}")
    convolution = f"{first}.mha.conv.weight"
    hidden, _ = state.shape(f"{first}.mlpblock.0.weight", 2)
    _, head_inputs = state.shape("seq_classifer.mlpblock.0.weight", 2)
    classes, _ = state.shape("seq_classifer.mlpblock.2.weight", 2)
    derived = {
        "architecture": ARCHITECTURE,
        "model_width": width,
        "feed_forward_width": hidden,
        "projection_rank": projected // heads,
        "vocabulary_size": vocabulary_size,
        "max_sequence_length": positions,
        "value_convolution": state.shape(convolution, 4)[2] if convolution in state else 0,
        "tied_layers": tied,
        "documents": 2 if head_inputs == 4 * width else 1,
        "classes": classes,
    }
    if not tied:
        names = set(state.names())
        derived["layers"] = sum(f"{_layer_prefix(False, layer)}.norm1.weight" in names for layer in range(len(names)))
    return derived


def _check(state: StateDict, fields: Fields) -> None:
    fields.choice("tokenizer", TOKENIZERS)
    fields.positive("layers")
    fields.natural("window_size")
    fields.switch("normalized_cls")
    cls = fields.choice("cls", ("none", "vocabulary", "all_layers", "last_layer"))
    if (cls not in _POOLED) != (_CLS_PARAMETER in state):
        has = "has" if _CLS_PARAMETER in state else "has no"
        raise ConvertError(f"cls is {cls!r}, but the checkpoint {has} tensor {_CLS_PARAMETER}")
    if (kernel := fields.values["value_convolution"]) != 0 and kernel % 2 == 0:
        raise ConvertError(f"value_convolution is {kernel}, not an odd number")
    if "pooled_length" in fields.values:
        if cls != "none":
            raise ConvertError(f"pooled_length requires cls 'none', not {cls!r}")
        fields.positive("pooled_length")
    if "max_document_tokens" in fields.values:
        fields.positive("max_document_tokens")
    if ("preprocessing" in fields.values) != (fields.values["tokenizer"] == "pixels"):
        raise ConvertError(
            "tokenizer 'pixels' requires preprocessing (height and width), and no other tokenizer allows it: "
            '--set tokenizer=pixels --set \'preprocessing={"height": 32, "width": 32}\''
        )
    if fields.values["tokenizer"] == "pixels" and fields.values["documents"] != 1:
        raise ConvertError(f"documents is {fields.values['documents']}, but tokenizer 'pixels' requires 1")


def _layer_prefix(tied: bool, layer: int) -> str:
    return "model.transformer" if tied else f"model.transformer_{layer}"


def tensor_shapes(fields: Fields) -> Shapes:
    """The tensors of the official state dict and their shapes."""
    v = fields.values
    width, heads, hidden, kernel = v["model_width"], v["heads"], v["feed_forward_width"], v["value_convolution"]
    shapes: Shapes = {
        "model.embeddings.word_embeddings.weight": (v["vocabulary_size"], width),
        "model.embeddings.position_embeddings.weight": (v["max_sequence_length"], width),
    }
    if v["cls"] not in _POOLED:
        shapes[_CLS_PARAMETER] = (1, 1, width)
    for layer in range(1 if v["tied_layers"] else v["layers"]):
        prefix = _layer_prefix(v["tied_layers"], layer)
        for projection in ("W_q", "W_k", "W_v", "W_o"):
            shapes |= affine(f"{prefix}.mha.{projection}", width, width)
        shapes |= affine(f"{prefix}.mha.dconv_fc", heads * v["projection_rank"], width)
        if kernel > 0:
            shapes[f"{prefix}.mha.conv.weight"] = (heads, 1, kernel, 1)
        for name in ("norm1", "mha.dual_ln_s", "mha.dual_ln_l", "norm2"):
            shapes |= norm(f"{prefix}.{name}", width)
        shapes |= affine(f"{prefix}.mlpblock.0", hidden, width) | affine(f"{prefix}.mlpblock.3", width, hidden)
    head_inputs = 4 * width if v["documents"] == 2 else width
    shapes |= norm("model.norm", width)
    shapes |= affine("seq_classifer.mlpblock.0", hidden, head_inputs)
    shapes |= affine("seq_classifer.mlpblock.2", v["classes"], hidden)
    return shapes
