"""Made-up checkpoints: an official state dict of a tiny model, to be spoiled by a test."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import checkpoint_file

VOCABULARY_SIZE = 9
FIELDS: dict[str, Any] = {
    "vocab_size": 50,
    "d_model": 8,
    "n_head": 2,
    "d_inner": 12,
    "n_layer": 2,
    "dropout": 0.1,
    "emb_dropout": 0.0,
    "chunk_rank": 3,
    "chunk_size": 4,
    "mem_len": 16,
    "window_len": 6,
    "grad_chk": False,
    "pre_ln": False,
    "use_gelu": False,
    "use_bias": True,
    "clamp_len": -1,
    "cpos_clamp_len": 5,
    "probing": False,
}
_LAYER_SHAPES = {
    "attn.r_r_bias": (1, 2, 1, 4),
    "attn.r_w_bias": (1, 2, 1, 1, 4),
    "attn.dconv_1.weight": (6, 8),
    "attn.dconv_1.bias": (6,),
    "attn.r_net.weight": (8, 8),
    "attn.r_net_chunk.weight": (8, 8),
    "attn.r_net_chunk.bias": (8,),
    "attn.proj_query.weight": (8, 8),
    "attn.proj_query.bias": (8,),
    "attn.proj_key.weight": (8, 8),
    "attn.proj_key.bias": (8,),
    "attn.proj_val.weight": (8, 8),
    "attn.proj_val.bias": (8,),
    "attn.proj_out.weight": (8, 8),
    "attn.proj_out.bias": (8,),
    "attn.dual_ln_dproj.weight": (8,),
    "attn.dual_ln_dproj.bias": (8,),
    "attn.dual_ln_win.weight": (8,),
    "attn.dual_ln_win.bias": (8,),
    "norm1.weight": (8,),
    "norm1.bias": (8,),
    "norm2.weight": (8,),
    "norm2.bias": (8,),
    "ff.fc1.weight": (12, 8),
    "ff.fc1.bias": (12,),
    "ff.fc2.weight": (8, 12),
    "ff.fc2.bias": (8,),
}


def state_dict(dtype: str = "float32") -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(7)
    shapes = {"in_emb.weight": (VOCABULARY_SIZE, 8), "out_emb.bias": (VOCABULARY_SIZE,), "pos_emb.inv_freq": (4,)}
    for layer in range(2):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in _LAYER_SHAPES.items()}
    state = {f"decoder.model.{name}": random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    state["decoder.model.out_emb.weight"] = state["decoder.model.in_emb.weight"].view()
    return state


def cfg_style(fields: dict[str, Any] | None = None, state: dict[str, Any] | None = None) -> dict[str, Any]:
    model = {"_name": "transformer-ls", **(FIELDS if fields is None else fields)}
    cfg = {"_name": None, "model": model, "task": {"_name": "truncated_bptt_lm"}, "common": {"fp16": False}}
    return {"args": None, "cfg": cfg, "model": state_dict() if state is None else state}


def args_style(fields: dict[str, Any] | None = None, state: dict[str, Any] | None = None) -> dict[str, Any]:
    args = argparse.Namespace(arch="transformer-ls", lr=[1e-4], data="bin", **(FIELDS if fields is None else fields))
    history = [{"criterion_name": "CrossEntropyCriterion", "num_updates": 3}]
    optimizer = {"state": {0: {"step": 3, "exp_avg": np.zeros(5, np.float32)}}, "param_groups": []}
    state = state_dict() if state is None else state
    return {"args": args, "model": state, "optimizer_history": history, "last_optimizer_state": optimizer}


def save(directory: Path, checkpoint: object) -> Path:
    path = directory / "checkpoint.pt"
    checkpoint_file.write(path, checkpoint)
    return path
