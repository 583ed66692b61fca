"""Random small cases of form `language_model` over every switch, expected by the float64 reference."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import safetensors_file
from reference.language_model import Hyperparameters, LanguageModel

from golden import checkpoints, formula

# Standard deviation of a matrix times the root of its inputs (1 for the others), and of a vector. About as
# spread as in the case by formula: activations stay near 1, and no softmax is flat or a single peak.
_MATRIX_GAINS = {"in_emb.weight": 1.5, "dconv_1.weight": 1.5, "proj_query.weight": 1.5, "proj_out.weight": 1.5}
_VECTOR_DEVIATION = 0.2


def draw_config(random: np.random.Generator) -> dict[str, Any]:
    """Hyperparameters and storage; `io` is still empty."""

    def one_of(*values: Any) -> Any:
        return values[random.integers(len(values))]

    chunk = one_of(1, 2, 3, 4, 5, 8, 16)
    window = int(random.integers(1, 80))
    heads, head_width = one_of(
        (1, 10), (1, 24), (2, 6), (2, 16), (2, 20), (3, 8), (3, 10), (4, 4), (4, 24), (5, 12), (6, 3)
    )
    least_memory_chunks = -(-window // chunk)
    return {
        "form": "language_model",
        "n_layer": one_of(1, 2, 3),
        "d_model": heads * head_width,
        "n_head": heads,
        "d_inner": int(random.integers(5, 120)),
        "chunk_size": chunk,
        "chunk_rank": one_of(1, 2, 3),
        "window_len": window,
        "mem_len": chunk * int(least_memory_chunks + one_of(0, 0, random.integers(1, 8), random.integers(8, 40))),
        "pre_ln": one_of(True, False),
        "use_gelu": one_of(True, False),
        "use_bias": one_of(True, False),
        "clamp_len": one_of(-1, -1, int(random.integers(1, window + 1))),
        "cpos_clamp_len": one_of(-1, -1, int(random.integers(1, 12))),
        "vocab_size": int(random.integers(5, 90)),
        "config_in_checkpoint": one_of(checkpoints.CFG_DICT, checkpoints.ARGS_NAMESPACE),
        "weights_dtype": one_of("float32", "float16"),
        "weights_file": "weights.pt",
        "io": {},
    }


def write_case(case: Path, random: np.random.Generator) -> dict[str, Any]:
    """Draws a case and writes it; returns its config.json."""
    config = draw_config(random)
    weights = _draw_weights(config, random)
    case.mkdir(parents=True)
    checkpoints.write_language_model(case / config["weights_file"], config, weights)
    for stem, segments in _draw_segments(config, random).items():
        batch = int(random.integers(1, 4))
        config["io"][stem] = {"segments": segments, "batch": batch}
        tensors = _expected(config, weights, segments, batch, random)
        safetensors_file.write(case / f"{stem}.safetensors", tensors)
    (case / "config.json").write_text(json.dumps(config, indent=1))
    return config


def _draw_weights(config: dict[str, Any], random: np.random.Generator) -> dict[str, NDArray]:
    """Weights as the checkpoint stores them."""
    weights: dict[str, NDArray] = {}
    for name, shape in formula.language_model_shapes(config).items():
        noise = random.standard_normal(shape)
        if len(shape) == 2:
            gain = next((gain for suffix, gain in _MATRIX_GAINS.items() if name.endswith(suffix)), 1.0)
            weights[name] = noise * gain / np.sqrt(shape[1])
        else:
            is_norm_gain = name.endswith(".weight")
            weights[name] = _VECTOR_DEVIATION * noise + (1.0 if is_norm_gain else 0.0)
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    formula.complete_language_model_weights(weights)
    return {name: value.astype(config["weights_dtype"]) for name, value in weights.items()}


def _draw_segments(config: dict[str, Any], random: np.random.Generator) -> dict[str, list[int]]:
    """Segment lengths of each file, long enough together to run past the memory."""
    chunk = config["chunk_size"]
    total = config["mem_len"] + 2 * config["window_len"] + 4 * chunk
    longest = max(2, min(total, 160) // chunk)

    mixed: list[int] = []
    while sum(mixed) < total:
        mixed.append(chunk * int(random.integers(1, longest + 1)))
    even_length = chunk * int(random.integers(1, longest + 1))
    even = [even_length] * max(2, -(-total // even_length))
    last = int(random.integers(1, even_length + 1))
    segments = {"io": [*mixed, int(random.integers(1, 2 * chunk + 1))], "io_even": [*even, last]}
    # Padding to a large multiple makes a case slow and shows nothing more.
    if chunk > 1 and math.lcm(chunk, config["window_len"]) <= 256:
        part = chunk * int(random.integers(0, 4)) + int(random.integers(1, chunk))
        segments["io_padmid"] = [chunk * 2, part, chunk, part, chunk + 1]
    return segments


def _expected(
    config: dict[str, Any], weights: dict[str, NDArray], segments: list[int], batch: int, random: np.random.Generator
) -> dict[str, NDArray]:
    official = {name.removeprefix("decoder.model."): value for name, value in weights.items()}
    model = LanguageModel(Hyperparameters.from_json(config), official, batch)
    tensors: dict[str, NDArray] = {}
    for index, length in enumerate(segments):
        tokens = random.integers(0, config["vocab_size"], (batch, length), dtype=np.int64)
        tensors[f"seg{index:02}.tokens"] = tokens
        tensors[f"seg{index:02}.logprobs"] = model.segment(tokens).astype(np.float32)
    return tensors
