"""The text classifiers of the official Long Range Arena code: {"model_state_dict": ...}, without hyperparameters.

Sizes follow from the tensors. The user must give heads, window, the kind of CLS and the number of tied layers. An
encoder with the names of this family (docs/models/long_document_encoder.md) is one of them, too.
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
    "layer_norm",
    "layer_norm_epsilon",
    "dual_norm",
    "padding_id",
    "separator_id",
    "head",
    "problem_type",
    "pooled_length",
    "max_document_tokens",
    "preprocessing",
)
LISTOPS_TOKENIZERS = ("listops_2020", "listops_2021")
BYTE_LEVEL_BPE = "byte_level_bpe"
TOKENIZERS = ("none", "bytes_plus_one", *LISTOPS_TOKENIZERS, "pixels", BYTE_LEVEL_BPE)
PROBLEM_TYPES = ("single_label_classification", "multi_label_classification", "regression")

_DEFAULTS = {"tokenizer": "none", "normalized_cls": False}
# What config.json may leave out, and what that means.
_OPTIONAL = {
    "layer_norm": "before",
    "layer_norm_epsilon": 1e-5,
    "dual_norm": True,
    "padding_id": 0,
    "separator_id": 2,
    "head": "relu",
    "problem_type": "single_label_classification",
}
_POOLED = ("none", "vocabulary", "first_token")  # kinds of CLS without a parameter
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
    if (fields.values["cls"] not in _POOLED) != (_CLS_PARAMETER in state):
        has = "has" if _CLS_PARAMETER in state else "has no"
        raise ConvertError(f"cls is {fields.values['cls']!r}, but the checkpoint {has} tensor {_CLS_PARAMETER}")
    check(fields)
    drop_defaults(fields)
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
    projection = f"{first}.mha.dconv_fc.weight"
    projected, _ = state.shape(projection, 2) if projection in state else (0, width)
    if width % heads != 0 or projected % heads != 0:
        raise ConvertError(f"heads is {heads}, which does not divide width {width} and projection {projected}")
    convolution = f"{first}.mha.conv.weight"
    hidden, _ = state.shape(f"{first}.mlpblock.0.weight", 2)
    derived: dict[str, Any] = {
        "architecture": ARCHITECTURE,
        "model_width": width,
        "feed_forward_width": hidden,
        "projection_rank": projected // heads,
        "vocabulary_size": vocabulary_size,
        "max_sequence_length": positions,
        "value_convolution": state.shape(convolution, 4)[2] if convolution in state else 0,
        "tied_layers": tied,
        "layer_norm": "after" if "model.embeddings.norm.weight" in state else "before",
        "dual_norm": f"{first}.mha.dual_ln_l.weight" in state,
    }
    if any(name.startswith("seq_classifer.") for name in state.names()):
        _, head_inputs = state.shape("seq_classifer.mlpblock.0.weight", 2)
        derived["classes"], _ = state.shape("seq_classifer.mlpblock.2.weight", 2)
        derived["documents"] = 2 if head_inputs == 4 * width else 1
    else:
        derived |= {"classes": 0, "head": "tanh"}
    if fields.values["cls"] == "first_token" or derived["classes"] == 0:
        derived["documents"] = fields.values.get("documents", 1)
    if not tied:
        names = set(state.names())
        derived["layers"] = sum(f"{_layer_prefix(False, layer)}.norm1.weight" in names for layer in range(len(names)))
    return derived


def drop_defaults(fields: Fields) -> None:
    """Leaves out the optional fields that have their defaults, so that the files of other forms do not change."""
    for name, value in _OPTIONAL.items():
        if fields.values.get(name, value) == value:
            fields.values.pop(name, None)


def check(fields: Fields) -> None:
    """The fields' ranges and the rules between them, as the server has them. Raises ConvertError."""
    fields.choice("tokenizer", TOKENIZERS)
    fields.positive("layers")
    fields.natural("window_size")
    fields.switch("normalized_cls")
    cls = fields.choice("cls", ("none", "vocabulary", "all_layers", "last_layer", "first_token"))
    _check_encoder(fields, cls)
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


def _check_encoder(fields: Fields, cls: str) -> None:
    optional = Fields({**_OPTIONAL, **fields.values})
    optional.choice("head", ("relu", "tanh"))
    optional.choice("problem_type", PROBLEM_TYPES)
    optional.number("layer_norm_epsilon")
    ids = fields.values["vocabulary_size"]
    for name in ("padding_id", "separator_id") if cls == "first_token" else ("padding_id",):
        if optional.natural(name) >= ids:
            raise ConvertError(f"{name} is {optional.values[name]}, but there are {ids} ids")
    if optional.choice("layer_norm", ("before", "after")) == "after" and cls != "first_token":
        raise ConvertError(f"layer_norm is 'after', which requires cls 'first_token', not {cls!r}")
    if not optional.switch("dual_norm") and fields.values["projection_rank"] > 0:
        raise ConvertError(f"dual_norm is false, but projection_rank is {fields.values['projection_rank']}")
    if cls == "first_token":
        fields.choice("tokenizer", ("none", BYTE_LEVEL_BPE))
    if cls != "first_token" and "separator_id" in fields.values:
        raise ConvertError(f"separator_id requires cls 'first_token', not {cls!r}")


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
    after = v.get("layer_norm", "before") == "after"
    if after:
        shapes |= norm("model.embeddings.norm", width)
    if v["cls"] not in _POOLED:
        shapes[_CLS_PARAMETER] = (1, 1, width)
    for layer in range(1 if v["tied_layers"] else v["layers"]):
        prefix = _layer_prefix(v["tied_layers"], layer)
        for projection in ("W_q", "W_k", "W_v", "W_o"):
            shapes |= affine(f"{prefix}.mha.{projection}", width, width)
        if v["projection_rank"] > 0 or v["cls"] != "first_token":  # Long Range Arena's checkpoints have it, empty
            shapes |= affine(f"{prefix}.mha.dconv_fc", heads * v["projection_rank"], width)
        if kernel > 0:
            shapes[f"{prefix}.mha.conv.weight"] = (heads, 1, kernel, 1)
        for name in ("norm1", *(("mha.dual_ln_s", "mha.dual_ln_l") if v.get("dual_norm", True) else ()), "norm2"):
            shapes |= norm(f"{prefix}.{name}", width)
        shapes |= affine(f"{prefix}.mlpblock.0", hidden, width) | affine(f"{prefix}.mlpblock.3", width, hidden)
    if not after:
        shapes |= norm("model.norm", width)
    if v["classes"] > 0:
        head_inputs = 4 * width if v["documents"] == 2 and v["cls"] != "first_token" else width
        head_width = width if v.get("head") == "tanh" else hidden
        shapes |= affine("seq_classifer.mlpblock.0", head_width, head_inputs)
        shapes |= affine("seq_classifer.mlpblock.2", v["classes"], head_width)
    return shapes
