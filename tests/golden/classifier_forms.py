"""Forms `text_classifier`, `vil` and `cvt`: converts the case's checkpoint and runs the served classifier on its items.

The C++ program longshort-golden-classifier runs the items in several kinds of batches and prints what it found; the
judgement is here.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import safetensors_file

from golden import checkpoints, formula, programs, roberta
from golden.outcome import CaseError, Outcome

TOLERANCE = {"text_classifier": 2e-5, "vil": 2e-5, "cvt": 5e-5}
TOLERANCE_BY_FORMULA = 1e-4
COPIES = 3  # of each item in the shuffled mix
_WRITERS = {
    "text_classifier": checkpoints.write_text_classifier,
    "vil": checkpoints.write_vil,
    "cvt": safetensors_file.write,
}
# Hyperparameters of form cvt; they stand at top level, among other entries.
CVT_NAMES = (
    "dims",
    "heads",
    "depths",
    "r",
    "w",
    "mlp_ratio",
    "in_chans",
    "num_classes",
    "embed_kernel",
    "embed_stride",
    "embed_pad",
    "proj_kernel",
    "dyn_kernel",
    "dual_ln_shared_kv",
    "ln_eps",
    "bn_eps",
    "ws_eps",
)


def judge(case: Path, config: dict[str, Any], build: programs.Build) -> Outcome:
    """Errors: CaseError."""
    io = case / "io.safetensors"
    if not io.is_file():
        raise CaseError("io.safetensors is not there")
    tensors = safetensors_file.read(io)
    with tempfile.TemporaryDirectory(prefix="longshort-golden-") as name:
        scratch = Path(name)
        if "input" in (config.get("formula") or {}):
            io = scratch / "io.safetensors"
            safetensors_file.write(io, {"input": _input_by_formula(config, tensors), "logits": tensors["logits"]})
        model = scratch / "model"
        copies = 1 if build.is_emulated else COPIES
        options: list[object] = []
        if "hugging_face" not in config:
            options = ["--config", _write_hyperparameters(scratch, config), *_assignments(config, tensors)]
        programs.convert(_checkpoint(case, config, scratch), model, *options)
        padding = json.loads((model / "config.json").read_text()).get("padding_id", 0)
        lines = programs.json_lines_of(
            build,
            "longshort-golden-classifier",
            f"--model={model}",
            f"--file={io}",
            f"--threads={programs.threads_of(config)}",
            f"--copies={copies}",
            f"--padding={padding}",
            f"--device={build.device}",
        )
    _check_items(tensors, {line["mode"]: line["items"] for line in lines}, copies)
    if build.is_emulated and not any(line["kernels"] for line in lines):
        raise CaseError(f"no kernel has run on {build.device}")
    differences = {line["mode"]: programs.difference_of(line) for line in lines}
    return Outcome(differences, TOLERANCE[config["form"]] if config["weights_file"] else TOLERANCE_BY_FORMULA)


def _input_by_formula(config: Mapping[str, Any], tensors: Mapping[str, NDArray]) -> NDArray[np.float32]:
    entry = config["formula"]["input"]
    made = formula.tensor(entry["name"], entry["shape"], entry["base"], entry["scale"], config["formula"]["seed"])
    if not np.array_equal(made.reshape(-1)[:8], tensors["input_first8"]):
        raise CaseError("the input by formula does not begin as input_first8 says")
    return made


def _write_hyperparameters(scratch: Path, config: Mapping[str, Any]) -> Path:
    """The file that the converter reads, in the official names."""
    if config["form"] == "text_classifier":
        names = config["config"]
    elif config["form"] == "vil":
        names = config["model_args"] | {"arch": config["arch"]}
    else:
        names = {name: config[name] for name in CVT_NAMES}
    path = scratch / "hyperparameters.json"
    path.write_text(json.dumps(names))
    return path


def _assignments(config: Mapping[str, Any], tensors: Mapping[str, NDArray]) -> list[str]:
    """What the official hyperparameters of a text classifier do not say.

    A served model divides means without CLS by one number, pooled_length: a case whose two documents stand in rows of
    different widths cannot be expressed.
    """
    if config["form"] != "text_classifier":
        return []
    assignments = ["--set", f"documents={config['documents']}"]
    if "architecture" in config["config"]:
        return assignments
    for document in range(config["documents"]):
        if not np.array_equal(tensors[f"mask_{document}"] != 0, tensors[f"input_ids_{document}"] != 0):
            raise CaseError(f"mask_{document} does not mark the ids other than 0")
    official = config["config"]
    if official["pooling_mode"] == "MEAN" and not official["cls_token"] and not official["cls_last_layer"]:
        # The mean divides by the width of the rows.
        widths = {tensors[f"input_ids_{document}"].shape[1] for document in range(config["documents"])}
        if len(widths) > 1:
            raise CaseError(
                f"the two documents have rows of {sorted(widths)} ids; a mean without CLS divides by the row's width, "
                "and a served model has one pooled_length for both: pad them to the same width"
            )
        assignments += ["--set", f"pooled_length={widths.pop()}"]
    return assignments


def _checkpoint(case: Path, config: Mapping[str, Any], scratch: Path) -> Path:
    """The case's checkpoint; made by formula where it has none."""
    if "hugging_face" in config:
        return _folder(case, config, scratch / "checkpoint")
    if config["weights_file"] is not None:
        return programs.weights_path(case, config)
    path = scratch / "checkpoint"
    _WRITERS[config["form"]](path, formula.listed_weights(config["formula"]))
    return path


def _folder(case: Path, config: Mapping[str, Any], folder: Path) -> Path:
    """Of a RoBERTa, as Hugging Face's save_pretrained writes it."""
    model = config["hugging_face"]
    if config["weights_file"] is None:
        return roberta.write_folder(folder, model, roberta.weights_by_formula(model, config["formula"]["seed"]))
    return roberta.write_folder(folder, model, safetensors_file.read(programs.weights_path(case, config)))


def _check_items(tensors: Mapping[str, NDArray], found: Mapping[str, int], copies: int) -> None:
    """Every mode must have compared every row of results in the case, as often as it is to stand there."""
    modes = {"whole batch": 1, "one by one": 1, "shuffled mix": copies}
    results = [value for name, value in tensors.items() if name.partition(".")[0] in ("logits", "first", "mean")]
    rows = sum(len(value) for value in results)
    if rows == 0:
        raise CaseError("io.safetensors has no results")
    expected = {mode: rows * times for mode, times in modes.items()}
    if found != expected:
        raise CaseError(f"longshort-golden-classifier compared {dict(found)} items, not {expected}")
