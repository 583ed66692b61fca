"""Brings a RoBERTa of fairseq to the names of Hugging Face: its tensors, and the settings that it was trained with.

The tensors lie below `decoder.sentence_encoder` or, in newer versions, `encoder.sentence_encoder`. A checkpoint may
have several heads, `classification_heads.NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longshort_convert.errors import ConvertError
from longshort_convert.hugging_face import Settings
from longshort_convert.plain_pickle import Namespace
from longshort_convert.weights import StateDict, StoredTensor, is_buffer

FORM = "fairseq_roberta"
SIDES = ("encoder.", "decoder.")
MARK = "sentence_encoder.embed_tokens.weight"

_EMBEDDINGS = {
    "embed_tokens.weight": "word_embeddings.weight",
    "embed_positions.weight": "position_embeddings.weight",
    "emb_layer_norm.weight": "LayerNorm.weight",
    "emb_layer_norm.bias": "LayerNorm.bias",
    "layernorm_embedding.weight": "LayerNorm.weight",
    "layernorm_embedding.bias": "LayerNorm.bias",
}
_LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
_IN_PROJECTIONS = ("query", "key", "value")
_HEAD = re.compile(r"classification_heads\.(.+)\.((?:dense|out_proj)\.(?:weight|bias))")
_LAYER_NAME = re.compile(r"layers\.(\d+)\.(.+)\.(weight|bias)")
_IN_PROJECTION = re.compile(r"layers\.(\d+)\.self_attn\.in_proj_(weight|bias)")


@dataclass(frozen=True)
class _Third:
    """One of the three parts of a tensor with the rows of query, key and value."""

    whole: StoredTensor
    part: int

    @property
    def type_name(self) -> str:
        return self.whole.type_name

    @property
    def shape(self) -> tuple[int, ...]:
        rows, *rest = self.whole.shape
        return (rows // 3, *rest)

    def read(self) -> NDArray[Any]:
        rows = self.shape[0]
        return np.ascontiguousarray(self.whole.read()[self.part * rows : (self.part + 1) * rows])


@dataclass(frozen=True)
class _Zeros:
    """The token types that fairseq's RoBERTa does not have."""

    shape: tuple[int, ...]
    type_name: str = "float32"

    def read(self) -> NDArray[Any]:
        return np.zeros(self.shape, np.float32)


def read(state: StateDict, checkpoint: object, head: str | None) -> tuple[StateDict, Settings]:
    """The tensors by Hugging Face's names, with the named head or the only one. Raises ConvertError."""
    settings = _settings(checkpoint)
    side = next(side for side in SIDES if side + MARK in state)
    chosen = _choose_head(state, head)
    tensors: dict[str, Any] = {}
    for name in state.names():
        if name == f"{side}sentence_encoder.version":
            continue
        match = _HEAD.fullmatch(name)
        if match and match[1] != chosen:
            continue
        renamed = _renamed(name, side) if match is None else f"classifier.{match[2]}"
        tensor = state.pop(name)
        if renamed is None and is_buffer(tensor):
            continue
        if renamed is None:
            raise ConvertError(f"tensor {name!r} is unknown")
        split = _IN_PROJECTION.fullmatch(name.removeprefix(f"{side}sentence_encoder."))
        parts = {renamed: tensor} if split is None else _thirds(name, tensor, split)
        for new, part in parts.items():
            if new in tensors:
                raise ConvertError(f"tensor {name!r} is a second one of the same part of the model")
            tensors[new] = part
    width = tensors["roberta.embeddings.word_embeddings.weight"].shape[-1]
    tensors["roberta.embeddings.token_type_embeddings.weight"] = _Zeros((1, width))
    return StateDict(tensors), settings


def _choose_head(state: StateDict, head: str | None) -> str | None:
    heads = sorted({match[1] for name in state.names() if (match := _HEAD.fullmatch(name))})
    if head is None:
        if len(heads) > 1:
            raise ConvertError(f"the checkpoint has several heads; choose with --head: {', '.join(heads)}")
        return heads[0] if heads else None
    if head not in heads:
        raise ConvertError(f"--head={head}: the checkpoint has {', '.join(heads) or 'no head'}")
    return head


def _renamed(name: str, side: str) -> str | None:
    """Hugging Face's name, None for one that is unknown. That of in_proj is not final."""
    if name.startswith(f"{side}lm_head."):
        return name.removeprefix(side)
    if not name.startswith(f"{side}sentence_encoder."):
        return None
    inner = name.removeprefix(f"{side}sentence_encoder.")
    if inner in _EMBEDDINGS:
        return f"roberta.embeddings.{_EMBEDDINGS[inner]}"
    if _IN_PROJECTION.fullmatch(inner):
        return name
    match = _LAYER_NAME.fullmatch(inner)
    if match is None or match[2] not in _LAYER:
        return None
    return f"roberta.encoder.layer.{match[1]}.{_LAYER[match[2]]}.{match[3]}"


def _thirds(name: str, tensor: StoredTensor, split: re.Match[str]) -> dict[str, _Third]:
    if tensor.shape == () or tensor.shape[0] % 3 != 0:
        raise ConvertError(f"tensor {name} has shape {list(tensor.shape)}, which is not that of query, key and value")
    prefix = f"roberta.encoder.layer.{split[1]}.attention.self."
    return {f"{prefix}{part}.{split[2]}": _Third(tensor, index) for index, part in enumerate(_IN_PROJECTIONS)}


def _settings(checkpoint: object) -> Settings:
    """Of cfg["model"] or args. Raises ConvertError naming a setting that is missing or not supported."""
    where, values = _model_settings(checkpoint)
    for name in ("arch", "_name"):
        if not str(values.get(name) or "roberta").startswith("roberta"):
            raise ConvertError(f"{where}: {name} is {values[name]!r}; of fairseq's encoders, Longshort has 'roberta'")
    heads = values.get("encoder_attention_heads")
    if type(heads) is not int or heads < 1:
        raise ConvertError(f"{where}: encoder_attention_heads is {heads!r}, not a positive integer")
    # Layers with their norms before attention show in the tensors: there is one more norm, behind the last layer.
    for name, wanted in (("activation_fn", "gelu"), ("pooler_activation_fn", "tanh")):
        if name in values and values[name] != wanted:
            raise ConvertError(f"{where}: {name} is {values[name]!r}; Longshort computes only {wanted!r}")
    sizes = {
        "encoder_embed_dim": "model_width",
        "encoder_ffn_embed_dim": "feed_forward_width",
        "encoder_layers": "layers",
    }
    return Settings(
        where=where,
        heads=heads,
        problem_type="regression" if values.get("regression_target") else None,
        sizes={ours: values[theirs] for theirs, ours in sizes.items() if theirs in values},
    )


def _model_settings(checkpoint: object) -> tuple[str, Mapping[str, Any]]:
    top = checkpoint if isinstance(checkpoint, Mapping) else {}
    cfg = top.get("cfg")
    model = cfg.get("model") if isinstance(cfg, Mapping) else None
    for where, found in (('cfg["model"]', model), ("args", top.get("args"))):
        values = found.values if isinstance(found, Namespace) else found
        if isinstance(values, Mapping):
            return where, values
    raise ConvertError(
        "the checkpoint has no settings: neither cfg nor args; use fairseq's file of torch.save, which has them"
    )
