"""CvT*-LS: weights in safetensors. No official checkpoint exists; the names are PyTorch's for the paper's modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields, default_preprocessing, rename_official
from longshort_convert.weights import Shapes, StateDict, Weight, affine, norm

ARCHITECTURE = "cvt"
FIELDS = (
    "architecture",
    "stage_widths",
    "stage_heads",
    "stage_depths",
    "projection_ranks",
    "window_sizes",
    "feed_forward_ratio",
    "channels",
    "classes",
    "embedding_kernels",
    "embedding_strides",
    "embedding_paddings",
    "projection_kernel",
    "dynamic_projection_kernel",
    "shared_dual_norm",
    "layer_norm_epsilon",
    "batch_norm_epsilon",
    "weight_standardization_epsilon",
    "preprocessing",
)
_DEFAULTS = {
    "embedding_strides": [4, 2, 2],
    "embedding_paddings": [2, 1, 1],
    "layer_norm_epsilon": 1e-5,
    "batch_norm_epsilon": 1e-5,
    "weight_standardization_epsilon": 1e-5,
    "preprocessing": default_preprocessing(224),
}
_SHORT_NAMES = {
    "dims": "stage_widths",
    "heads": "stage_heads",
    "depths": "stage_depths",
    "r": "projection_ranks",
    "w": "window_sizes",
    "mlp_ratio": "feed_forward_ratio",
    "in_chans": "channels",
    "num_classes": "classes",
    "embed_kernel": "embedding_kernels",
    "embed_stride": "embedding_strides",
    "embed_pad": "embedding_paddings",
    "proj_kernel": "projection_kernel",
    "dyn_kernel": "dynamic_projection_kernel",
    "dual_ln_shared_kv": "shared_dual_norm",
    "ln_eps": "layer_norm_epsilon",
    "bn_eps": "batch_norm_epsilon",
    "ws_eps": "weight_standardization_epsilon",
}


def from_official(official: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of config.json from the reference's short names. Errors: ConvertError."""
    return rename_official(official, _SHORT_NAMES, ())


def convert(state: StateDict, fields: Fields) -> dict[str, Weight]:
    """Completes the fields and returns the tensors. Errors: ConvertError."""
    fields.refuse_unknown(FIELDS)
    fields.default(_DEFAULTS)
    fields.require("stage_heads", "window_sizes")
    fields.settle(_derived(state, fields))
    stages = len(fields.values["stage_widths"])
    fields.integers("window_sizes", stages, 1)
    fields.integers("embedding_strides", stages, 1)
    fields.integers("embedding_paddings", stages, 0)
    for name in ("layer_norm_epsilon", "batch_norm_epsilon", "weight_standardization_epsilon"):
        fields.number(name)
    return state.take(tensor_shapes(fields))


def describe(fields: Fields) -> str:
    v = fields.values
    return f"CvT*-LS, widths {v['stage_widths']}, depths {v['stage_depths']}, ranks {v['projection_ranks']}"


def _derived(state: StateDict, fields: Fields) -> dict[str, Any]:
    """The fields that follow from the shapes."""
    embeddings = []
    while f"stages.{len(embeddings)}.embed.weight" in state:
        embeddings.append(state.shape(f"stages.{len(embeddings)}.embed.weight", 4))
    if not embeddings:
        raise ConvertError("tensor stages.0.embed.weight is missing")
    heads = fields.integers("stage_heads", len(embeddings), 1)
    names = set(state.names())
    depths, ranks = [], []
    for stage, (width, *_) in enumerate(embeddings):
        blocks = f"stages.{stage}.blocks"
        depths.append(sum(f"{blocks}.{block}.norm1.weight" in names for block in range(len(names))))
        projected = state.shape(f"{blocks}.0.attn.to_dyn.pointwise.weight", 4)[0]
        if width % heads[stage] != 0 or projected % heads[stage] != 0:
            raise ConvertError(
                f"stage_heads is {heads}: {heads[stage]} does not divide width {width} and projection {projected}"
            )
        ranks.append(projected // heads[stage])
    first = "stages.0.blocks.0"
    inner, width = state.shape(f"{first}.fc1.weight", 2)
    if inner % width != 0:
        raise ConvertError(f"tensor {first}.fc1.weight makes {width} channels {inner}, no multiple")
    return {
        "architecture": ARCHITECTURE,
        "stage_widths": [shape[0] for shape in embeddings],
        "stage_depths": depths,
        "projection_ranks": ranks,
        "feed_forward_ratio": inner // width,
        "channels": embeddings[0][1],
        "classes": state.shape("head.weight", 2)[0],
        "embedding_kernels": [shape[2] for shape in embeddings],
        "projection_kernel": state.shape(f"{first}.attn.to_q.depthwise.weight", 4)[2],
        "dynamic_projection_kernel": state.shape(f"{first}.attn.to_dyn.depthwise.weight", 4)[2],
        "shared_dual_norm": f"{first}.attn.ln_l_v.weight" not in state,
    }


def tensor_shapes(fields: Fields) -> Shapes:
    """Every tensor of the model."""
    v = fields.values
    shapes: Shapes = {}
    input_width = v["channels"]
    for stage, width in enumerate(v["stage_widths"]):
        kernel = v["embedding_kernels"][stage]
        shapes[f"stages.{stage}.embed.weight"] = (width, input_width, kernel, kernel)
        shapes[f"stages.{stage}.embed.bias"] = (width,)
        shapes |= norm(f"stages.{stage}.embed_norm", width)
        projected = v["stage_heads"][stage] * v["projection_ranks"][stage]
        for block in range(v["stage_depths"][stage]):
            shapes |= _block_shapes(f"stages.{stage}.blocks.{block}", width, projected, v)
        input_width = width
    return shapes | norm("norm", input_width) | affine("head", v["classes"], input_width)


def _block_shapes(prefix: str, width: int, projected: int, values: Mapping[str, Any]) -> Shapes:
    inner = values["feed_forward_ratio"] * width
    shapes = norm(f"{prefix}.norm1", width) | norm(f"{prefix}.norm2", width)
    for projection in ("to_q", "to_k", "to_v"):
        name = f"{prefix}.attn.{projection}"
        shapes |= _separable(name, width, width, values["projection_kernel"]) | norm(f"{name}.bn", width)
        shapes |= {f"{name}.bn.running_mean": (width,), f"{name}.bn.running_var": (width,)}
    shapes |= _separable(f"{prefix}.attn.to_dyn", width, projected, values["dynamic_projection_kernel"])
    for name in ("ln_l", "ln_g") if values["shared_dual_norm"] else ("ln_l", "ln_g", "ln_l_v", "ln_g_v"):
        shapes |= norm(f"{prefix}.attn.{name}", width)
    shapes |= affine(f"{prefix}.attn.proj", width, width)
    return shapes | affine(f"{prefix}.fc1", inner, width) | affine(f"{prefix}.fc2", width, inner)


def _separable(name: str, width: int, outputs: int, kernel: int) -> Shapes:
    """A depthwise convolution and a pointwise one."""
    return {
        f"{name}.depthwise.weight": (width, 1, kernel, kernel),
        f"{name}.depthwise.bias": (width,),
        f"{name}.pointwise.weight": (outputs, width, 1, 1),
        f"{name}.pointwise.bias": (outputs,),
    }
