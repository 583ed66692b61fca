"""Reads hyperparameters and weights of an official fairseq checkpoint of the Transformer-LS language model.

In one format, cfg["model"] is a dict of the model's fields, and `args` is None. In the other, `args` is a namespace
with all fields. The field vocab_size is a meaningless default;
the number of embedding rows is used instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longshort_convert.errors import ConvertError
from longshort_convert.plain_pickle import Namespace
from longshort_convert.weights import Shapes, StateDict, Weight

MODEL_NAME = "transformer-ls"

POSITIVE_FIELDS = (
    "n_layer",
    "d_model",
    "n_head",
    "d_inner",
    "chunk_size",
    "chunk_rank",
    "window_len",
    "mem_len",
)
CLAMP_FIELDS = ("clamp_len", "cpos_clamp_len")
SWITCH_FIELDS = ("pre_ln", "use_gelu", "use_bias")
# Fields that affect only training, and vocab_size (see above).
FIELDS_WITHOUT_EFFECT = ("_name", "vocab_size", "dropout", "emb_dropout", "grad_chk", "probing")


def has_hyperparameters(checkpoint: object) -> bool:
    return isinstance(checkpoint, Mapping) and (
        isinstance(checkpoint.get("cfg"), Mapping) or isinstance(checkpoint.get("args"), Namespace)
    )


def read_hyperparameters(checkpoint: object) -> dict[str, Any]:
    """By their official names. Raises ConvertError naming a field that is missing, unknown or invalid."""
    fields, where = _model_fields(checkpoint)
    values: dict[str, Any] = {}
    for name in (*POSITIVE_FIELDS, *CLAMP_FIELDS, *SWITCH_FIELDS):
        if name not in fields:
            raise ConvertError(f"{where}: field {name} is missing")
        values[name] = fields[name]
    for name in SWITCH_FIELDS:
        if type(values[name]) is not bool:
            raise ConvertError(f"{where}: {name} is {values[name]!r}, not True or False")
    for name in (*POSITIVE_FIELDS, *CLAMP_FIELDS):
        if type(values[name]) is not int:
            raise ConvertError(f"{where}: {name} is {values[name]!r}, not an integer")
    for name in POSITIVE_FIELDS:
        if values[name] < 1:
            raise ConvertError(f"{where}: {name} is {values[name]}, less than 1")
    if values["d_model"] % values["n_head"] != 0:
        raise ConvertError(f"{where}: d_model {values['d_model']} is not a multiple of n_head {values['n_head']}")
    return values


def read_weights(state: StateDict, config: Mapping[str, Any]) -> dict[str, Weight]:
    """All tensors of the model except the tied output embedding, in the forms that are stored.

    Raises ConvertError naming a tensor that is missing or unknown, has a wrong shape or type, or is not tied.
    """
    vocabulary_size, _ = state.shape("in_emb.weight", 2)
    if vocabulary_size < 1:
        raise ConvertError("tensor in_emb.weight has no rows")
    if config["layers"] > len(state):
        raise ConvertError(f"n_layer is {config['layers']}, but there are only {len(state)} tensors")
    shapes = _official_shapes(config, vocabulary_size)
    if "out_emb.weight" not in state:  # safetensors keeps one name of tied tensors
        del shapes["out_emb.weight"]
    weights = {
        name: Weight(weight.type_name, _stored_form(name, weight.values)) for name, weight in state.take(shapes).items()
    }
    _drop_tied_embedding(weights)
    return weights


def _model_fields(checkpoint: object) -> tuple[Mapping[str, Any], str]:
    """The model's fields, and their name in errors."""
    top = _mapping(checkpoint, "the checkpoint")
    if top.get("cfg") is not None:
        where = 'cfg["model"]'
        fields = _mapping(_mapping(top["cfg"], "cfg").get("model"), where)
        _check_name(fields.get("_name"), f"{where}: _name")
        known = (*POSITIVE_FIELDS, *CLAMP_FIELDS, *SWITCH_FIELDS, *FIELDS_WITHOUT_EFFECT)
        for name in fields:
            if name not in known:
                raise ConvertError(f"{where}: field {name!r} is unknown")
        return fields, where
    if isinstance(top.get("args"), Namespace):
        fields = top["args"].values
        _check_name(fields.get("arch"), "args: arch")
        _check_name(fields.get("_name"), "args: _name")
        return fields, "args"
    raise ConvertError("the checkpoint has no hyperparameters: neither cfg is a dict nor args a namespace")


def _check_name(name: object, where: str) -> None:
    if name is not None and name != MODEL_NAME:
        raise ConvertError(f"{where} is {name!r}, not {MODEL_NAME!r}")


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConvertError(f"{where} is of type {type(value).__name__}, not a dict")
    return value


def _official_shapes(config: Mapping[str, Any], vocabulary_size: int) -> Shapes:
    """The keys of the official state dict, without prefix, and their shapes."""
    d, heads, inner = config["model_width"], config["heads"], config["feed_forward_width"]
    shapes: Shapes = {
        "in_emb.weight": (vocabulary_size, d),
        "out_emb.weight": (vocabulary_size, d),
        "out_emb.bias": (vocabulary_size,),
        "pos_emb.inv_freq": (d // 2,),
    }
    layer: Shapes = {
        "attn.r_r_bias": (1, heads, 1, d // heads),
        "attn.r_w_bias": (1, heads, 1, 1, d // heads),
        "attn.dconv_1.weight": (heads * config["chunk_rank"], d),
        "attn.dconv_1.bias": (heads * config["chunk_rank"],),
        "attn.r_net.weight": (d, d),
        "attn.r_net_chunk.weight": (d, d),
        "attn.r_net_chunk.bias": (d,),
        "ff.fc1.weight": (inner, d),
        "ff.fc1.bias": (inner,),
        "ff.fc2.weight": (d, inner),
        "ff.fc2.bias": (d,),
    }
    for norm in ("attn.dual_ln_dproj", "attn.dual_ln_win", "norm1", "norm2"):
        layer |= {f"{norm}.weight": (d,), f"{norm}.bias": (d,)}
    for projection in ("query", "key", "val", "out"):
        layer[f"attn.proj_{projection}.weight"] = (d, d)
        if config["projection_bias"]:
            layer[f"attn.proj_{projection}.bias"] = (d,)
    for index in range(config["layers"]):
        shapes |= {f"layers.{index}.{name}": shape for name, shape in layer.items()}
    return shapes


def _stored_form(key: str, values: NDArray[Any]) -> NDArray[Any]:
    """Position biases are stored as [heads, head width]; their other dimensions are 1."""
    if key.endswith((".r_r_bias", ".r_w_bias")):
        return values.reshape(values.shape[1], values.shape[-1])
    return values


def _drop_tied_embedding(weights: dict[str, Weight]) -> None:
    tied, embedding = weights.pop("out_emb.weight", None), weights["in_emb.weight"]
    if tied is None:
        return
    if tied.type_name != embedding.type_name or not np.array_equal(_bits(tied), _bits(embedding)):
        raise ConvertError("tensor decoder.model.out_emb.weight differs from in_emb.weight, but they are tied")


def _bits(weight: Weight) -> NDArray[Any]:
    return weight.values.view(f"<u{weight.values.itemsize}")
