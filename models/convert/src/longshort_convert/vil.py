"""ViL-LS of the official ImageNet code: {"net": ..., "arch": "msvit", ...}, without the architecture string."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields, default_preprocessing, rename_official
from longshort_convert.weights import Shapes, StateDict, Weight, affine, norm

ARCHITECTURE = "vil"
FIELDS = (
    "architecture",
    "stages",
    "image_size",
    "channels",
    "classes",
    "embedding_norm",
    "average_pooling",
    "preprocessing",
)
_OFFICIAL_NAMES = {
    "arch": "stages",
    "img_size": "image_size",
    "num_classes": "classes",
    "norm_embed": "embedding_norm",
    "avg_pool": "average_pooling",
}
# Arguments that have no effect for attn_type "ls", or that affect only training.
_OTHER_OFFICIAL_NAMES = (
    "attn_type",
    "drop_rate",
    "drop_path_rate",
    "sharew",
    "share_kv",
    "only_glo",
    "sw_exact",
    "ln_eps",
    "mode",
)
_ATTRIBUTE = re.compile(r"([lhdnsgpfar])([0-9]+)")
_ATTRIBUTE_DEFAULTS = {"l": 1, "h": 3, "d": 192, "n": 1, "s": 1, "g": 1, "p": 2, "f": 7, "a": 1, "r": 0}
_MLP_RATIO = 4
_INDEX_BUFFER = ".attn.relative_position_index"


@dataclass(frozen=True)
class Stage:
    """One stage of the architecture string, and the image that it reads."""

    number: int
    heads: int
    width: int
    pairs: int  # of attention and MLP
    sparse: bool
    global_tokens: int
    patch: int
    window: int
    absolute_position: bool
    rank: int
    side: int  # tokens along an edge
    input_width: int


def from_official(official: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of config.json that follow from the official arguments. Errors: ConvertError."""
    if official.get("attn_type", "ls") != "ls":
        raise ConvertError(f"attn_type is {official['attn_type']!r}, not 'ls'")
    return rename_official(official, _OFFICIAL_NAMES, _OTHER_OFFICIAL_NAMES)


def convert(state: StateDict, fields: Fields) -> dict[str, Weight]:
    """Completes the fields and returns the tensors. Errors: ConvertError."""
    fields.refuse_unknown(FIELDS)
    fields.default({"average_pooling": False})
    fields.require("stages", "image_size")
    fields.settle(
        {
            "architecture": ARCHITECTURE,
            "channels": state.shape("layer1.0.proj.weight", 4)[1],
            "classes": state.shape("head.weight", 2)[0],
            "embedding_norm": "layer1.0.norm_embed.weight" in state,
        }
    )
    fields.switch("average_pooling")
    image_size = fields.positive("image_size")
    fields.default({"preprocessing": default_preprocessing(image_size)})
    stages = parse_stages(fields.text("stages"), image_size, fields.values["channels"])
    _drop_index_buffers(state, stages)
    return state.take(tensor_shapes(fields, stages))


def describe(fields: Fields) -> str:
    return f"ViL-LS {fields.values['stages']} for images of {fields.values['image_size']}"


def parse_stages(architecture: str, image_size: int, channels: int) -> list[Stage]:
    """Parses the architecture string. Errors: ConvertError naming the invalid part."""
    stages: list[Stage] = []
    side, width, sparse = image_size, channels, True
    for number, part in enumerate(architecture.split("_"), start=1):
        attributes = dict(_ATTRIBUTE_DEFAULTS)
        for text in part.split(","):
            match = _ATTRIBUTE.fullmatch(text.strip())
            if match is None:
                raise ConvertError(f"stages: {text!r} in {part!r} is not a letter of lhdnsgpfar and a number")
            attributes[match[1]] = int(match[2])
        _check_attributes(part, number, attributes, side)
        side //= attributes["p"]
        # All stages after the first with full attention have full attention, whatever the string says.
        sparse = sparse and attributes["s"] == 1
        stages.append(_stage(attributes, sparse, side, width))
        width = attributes["d"]
    if len(stages) not in (3, 4):
        raise ConvertError(f"stages: {architecture!r} has {len(stages)} stages, not 3 or 4")
    return stages


def _check_attributes(part: str, number: int, attributes: Mapping[str, int], side: int) -> None:
    if attributes["l"] != number:
        raise ConvertError(f"stages: {part!r} is at position {number}")
    for letter in "hdp":
        if attributes[letter] < 1:
            raise ConvertError(f"stages: {letter} of {part!r} is 0")
    if attributes["d"] % attributes["h"] != 0:
        raise ConvertError(f"stages: d of {part!r} is not a multiple of h")
    if side // attributes["p"] < 1:
        raise ConvertError(f"stages: {part!r} has patches of {attributes['p']} on an image of {side}")


def _stage(attributes: Mapping[str, int], sparse: bool, side: int, input_width: int) -> Stage:
    return Stage(
        number=attributes["l"],
        heads=attributes["h"],
        width=attributes["d"],
        pairs=attributes["n"],
        sparse=sparse,
        global_tokens=attributes["g"],
        patch=attributes["p"],
        window=attributes["f"],
        absolute_position=attributes["a"] == 1,
        rank=attributes["r"],
        side=side,
        input_width=input_width,
    )


def _attentions(stage: Stage) -> list[str]:
    return [f"layer{stage.number}.{2 * pair + 1}" for pair in range(stage.pairs)]


def _drop_index_buffers(state: StateDict, stages: list[Stage]) -> None:
    """Raises ConvertError if the checkpoint's indices into the bias tables are those of another architecture."""
    for stage in stages:
        if stage.absolute_position:
            continue
        computed = window_bias_index(stage.window) if stage.sparse else full_bias_index(stage.side)
        for prefix in _attentions(stage):
            name = f"{prefix}{_INDEX_BUFFER}"
            if name not in state:
                continue
            stored = state.pop(name)
            if stored.shape != computed.shape or not np.array_equal(stored.read(), computed):
                raise ConvertError(
                    f"buffer {name} {list(stored.shape)} is not the index {list(computed.shape)} of this architecture"
                )


def window_bias_index(window: int) -> NDArray[np.int64]:
    """The row of the bias table for a query (row-major in the window) and a key (in the window with its border)."""
    border = window // 2
    query = np.arange(window)
    key = np.arange(-border, window + border)
    offset = query[:, None] - key[None, :] + border + window - 1  # [window, window + 2 border]
    index = offset[:, None, :, None] * (2 * border + window) + offset[None, :, None, :]
    return index.reshape(window * window, (window + 2 * border) ** 2)


def full_bias_index(side: int) -> NDArray[np.int64]:
    """The row of the bias table for a query and a key, both row-major in the image."""
    offset = np.arange(side)[:, None] - np.arange(side)[None, :] + side - 1
    index = offset[:, None, :, None] * (2 * side - 1) + offset[None, :, None, :]
    return index.reshape(side * side, side * side)


def tensor_shapes(fields: Fields, stages: list[Stage]) -> Shapes:
    """The parameters of the official state dict and their shapes."""
    shapes: Shapes = {}
    for stage in stages:
        shapes |= _embedding_shapes(stage, fields.values["embedding_norm"])
        for pair, prefix in enumerate(_attentions(stage)):
            width, inner = stage.width, _MLP_RATIO * stage.width
            shapes |= norm(f"{prefix}.norm", width)
            shapes |= affine(f"{prefix}.attn.qkv", 3 * width, width) | affine(f"{prefix}.attn.proj", width, width)
            shapes |= _sparse_shapes(stage, prefix) if stage.sparse else _full_shapes(stage, prefix)
            following = f"layer{stage.number}.{2 * pair + 2}"
            shapes |= norm(f"{following}.norm", width)
            shapes |= affine(f"{following}.mlp.fc1", inner, width) | affine(f"{following}.mlp.fc2", width, inner)
    width = stages[-1].width
    return shapes | norm("norm", width) | affine("head", fields.values["classes"], width)


def _embedding_shapes(stage: Stage, embedding_norm: bool) -> Shapes:
    prefix, width = f"layer{stage.number}.0", stage.width
    shapes: Shapes = {
        f"{prefix}.proj.weight": (width, stage.input_width, stage.patch, stage.patch),
        f"{prefix}.proj.bias": (width,),
    }
    if embedding_norm:
        shapes |= norm(f"{prefix}.norm_embed", width)
    if stage.global_tokens > 0:
        shapes[f"{prefix}.cls_token"] = (1, stage.global_tokens, width)
    if stage.absolute_position:
        shapes[f"{prefix}.cls_pos_embed"] = (1, stage.global_tokens, width)
        for axis in ("x", "y"):
            shapes[f"{prefix}.{axis}_pos_embed"] = (1, stage.side, width // 2)
    return shapes


def _sparse_shapes(stage: Stage, prefix: str) -> Shapes:
    shapes = norm(f"{prefix}.attn.dual_ln_dp", stage.width) | norm(f"{prefix}.attn.dual_ln_full", stage.width)
    if stage.rank > 0:
        shapes |= affine(f"{prefix}.attn.to_dynamic_projection", stage.heads * stage.rank, stage.width)
    if not stage.absolute_position:
        border = stage.window // 2
        rows = 2 * (stage.window + border - 1) * (2 * border + stage.window + 1) + 1
        shapes[f"{prefix}.attn.local_relative_position_bias_table"] = (rows, stage.heads)
    return shapes


def _full_shapes(stage: Stage, prefix: str) -> Shapes:
    if stage.absolute_position:
        return {}
    shapes: Shapes = {
        f"{prefix}.attn.local_relative_position_bias_table": ((2 * stage.side - 1) ** 2, stage.heads),
    }
    if stage.global_tokens > 0:
        heads, count = stage.heads, stage.global_tokens
        shapes[f"{prefix}.attn.g2l_relative_position_bias"] = (2, heads, count)
        shapes[f"{prefix}.attn.g2g_relative_position_bias"] = (heads, count, count)
    return shapes
