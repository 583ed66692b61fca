"""Writes weights as official checkpoints."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import checkpoint_file

# Fields of the official model config with their defaults; the size of the vocabulary is not among those that count.
_MODEL_FIELDS = {
    "vocab_size": 50,
    "d_model": 256,
    "n_head": 4,
    "d_inner": 1024,
    "n_layer": 8,
    "dropout": 0.0,
    "emb_dropout": 0.0,
    "chunk_rank": 1,
    "chunk_size": 32,
    "mem_len": 4096,
    "window_len": 256,
    "grad_chk": False,
    "pre_ln": False,
    "use_gelu": False,
    "use_bias": False,
    "clamp_len": -1,
    "cpos_clamp_len": -1,
    "probing": False,
}
CFG_DICT = "cfg dict"
ARGS_NAMESPACE = "args Namespace"


def write_language_model(path: Path, config: Mapping[str, Any], weights: Mapping[str, NDArray]) -> None:
    """Saves the weights (official names) in the style and type that config_in_checkpoint and weights_dtype say.

    Both fields may be absent: a cfg dict and float32 then.
    """
    weights_type = np.dtype(config.get("weights_dtype", "float32"))
    state = {name: value.astype(weights_type) for name, value in weights.items()}
    state["decoder.model.out_emb.weight"] = state["decoder.model.in_emb.weight"].view()
    fields = {name: config[name] if name != "vocab_size" else 50 for name in _MODEL_FIELDS if name in config}
    model_fields = _MODEL_FIELDS | fields
    half = weights_type == np.float16
    checkpoint: dict[str, Any] = {"args": None, "cfg": None, "model": state}
    if config.get("config_in_checkpoint", CFG_DICT) == ARGS_NAMESPACE:
        checkpoint["args"] = argparse.Namespace(
            arch="transformer-ls", task="truncated_bptt_lm", tokens_per_sample=256, fp16=half, **model_fields
        )
        del checkpoint["cfg"]
    else:
        checkpoint["cfg"] = {
            "_name": None,
            "model": {"_name": "transformer-ls", **model_fields},
            "task": {"_name": "truncated_bptt_lm", "data": "data-bin", "tokens_per_sample": 256, "batch_size": 1},
            "common": {"fp16": half},
        }
    checkpoint |= {"optimizer_history": [], "extra_state": {"epoch": 1}, "last_optimizer_state": None}
    checkpoint_file.write(path, checkpoint)


def write_text_classifier(path: Path, weights: Mapping[str, NDArray]) -> None:
    """Saves the weights (official names) as the Long Range Arena code does, which saves no hyperparameters."""
    checkpoint_file.write(path, {"model_state_dict": dict(weights)})


def write_vil(path: Path, weights: Mapping[str, NDArray]) -> None:
    """Saves the weights (official names) as the ImageNet code does, without its buffers."""
    checkpoint_file.write(path, {"net": dict(weights), "arch": "msvit", "epoch": 300, "best_acc": 0.0})
