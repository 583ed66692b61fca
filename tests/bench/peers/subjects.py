"""What bench.peers.lengths measures: networks, sizes, and runners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.gpu.bench import Bench, MeasurementError, logits_differ, preset
from bench.gpu.cases import BASE
from bench.peers.cases import PEAK

RUNNERS = {"longshort": "Longshort, C++", "full": "full attention, PyTorch", "openvino": "OpenVINO"}
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
# The length at which other runners read the same network as Longshort.
COMPARED = 512
# Ids of documents begin at 1, so that none is padding.
ENCODER = {
    "architecture": "text_classifier", "tokenizer": "none", "layers": 12, "model_width": 768, "heads": 12,
    "feed_forward_width": 3072, "window_size": 512, "projection_rank": 0, "vocabulary_size": 50265,
    "max_sequence_length": LENGTHS[-1], "cls": "first_token", "normalized_cls": False, "value_convolution": 0,
    "tied_layers": False, "documents": 1, "classes": 2, "layer_norm": "after", "layer_norm_epsilon": 1e-5,
    "dual_norm": True, "padding_id": 0, "separator_id": 2, "head": "tanh",
}  # fmt: skip
ENCODERS = {
    "ls-base-r1": ENCODER | {"projection_rank": 1},
    "ls-base-r64": ENCODER | {"projection_rank": 64},
    "roberta-base": ENCODER | {"dual_norm": False, "window_size": LENGTHS[-1]},
}
LANGUAGE_MODEL, IMAGES = "language model, 44M", "cvt-ls-13"
# A token of CvT's first stage has so many pixels a side.
PATCH = 4


@dataclass(frozen=True)
class LengthCase:
    """One row of the table, and of each runner."""

    network: str
    size: int
    threads: int

    @property
    def key(self) -> str:
        return f"{self.network}/{self.size}/threads {self.threads}"


@dataclass(frozen=True)
class Subject:
    """`unit`: of the sizes. `tokens`: of an item of a size. `measure`: what each runner found in a case, and "at_peak",
    the seconds of Longshort's products at the peak; raises MeasurementError."""

    item: str
    unit: str
    sizes: list[int]
    networks: list[str]
    tokens: Callable[[int], int]
    measure: Callable[[Bench, LengthCase, float], dict[str, Any]]


def time_of(found: dict[str, Any]) -> float:
    """Seconds of the fastest run: other programs on the machine make a run slower, never faster."""
    if "step_seconds" in found:
        return sum(found["step_seconds"])
    return min(found["batch_seconds" if "batch_seconds" in found else "seconds"])


def _flops(found: dict[str, Any]) -> float:
    return found["batch_flops"] if "batch_flops" in found else found["step_flops"] * len(found["step_seconds"])


def _with_peak(bench: Bench, case: LengthCase, command: str, **options: Any) -> dict[str, Any]:
    """Longshort's time, and that of its products at the peak."""
    peaks = [bench.measure("peaks", threads=case.threads, precision="fp32", **PEAK)["fp32_flops"]]
    found = bench.measure(command, threads=case.threads, precision="fp32", **options)
    peaks.append(bench.measure("peaks", threads=case.threads, precision="fp32", **PEAK)["fp32_flops"])
    return {"longshort": found, "at_peak": _flops(found) / max(peaks)}


def _measure_document(bench: Bench, case: LengthCase, seconds: float) -> dict[str, Any]:
    """Of RoBERTa-base, Longshort's time is there only where its logits are compared."""
    model = bench.model(case.network, ENCODERS[case.network])
    options = {"model": model, "items": 1, "tokens": case.size, "run_seconds": seconds,
               "runs": 2 if case.size <= 4096 else 1, "warm_up_runs": 1}  # fmt: skip
    plain = options | {"threads": case.threads, "precision": "fp32"}
    full = case.network == "roberta-base"
    found: dict[str, Any] = {}
    if not full or case.size == COMPARED:
        found = _with_peak(bench, case, "classifier", **options)
    if full:
        found["full"] = bench.plain("classifier", **plain)
    if case.size == COMPARED:
        onnx = model.parent / f"{case.network}-{case.size}.onnx"
        found["openvino"] = bench.plain("openvino", module="bench.peers.exported", onnx=onnx, **plain)
    for runner in ("full", "openvino"):
        if "longshort" in found and logits_differ(found.get(runner, {}), found["longshort"]["logits"], "fp32"):
            raise MeasurementError(f"{case.key}: {RUNNERS[runner]} has other logits: it is not the same network")
    return found


def _measure_text(bench: Bench, case: LengthCase, _: float) -> dict[str, Any]:
    """The text before fills the memory, so each of the tokens sees as much as it ever can."""
    model = bench.model(f"language-model-{case.size}", BASE | {"memory_length": case.size})
    segment = BASE["segment_length"]
    steps = {"step_tokens": segment, "steps": case.size // segment, "warm_up_steps": 1, "read_before": case.size}
    found = _with_peak(bench, case, "streams", model=model, **steps)
    found["full"] = bench.plain("full_attention", model=model, tokens=case.size, memory=case.size, threads=case.threads,
                                precision="fp32", runs=1, warm_up_runs=0 if case.size > 4096 else 1)  # fmt: skip
    return found


def _measure_image(bench: Bench, case: LengthCase, seconds: float) -> dict[str, Any]:
    network = preset("cvt-ls-13-224")
    pixels = {"resize_shorter_side": case.size, "crop_height": case.size, "crop_width": case.size}
    model = bench.model(f"{case.network}-{case.size}", network | {"preprocessing": network["preprocessing"] | pixels})
    options = {"model": model, "items": 1, "run_seconds": seconds, "runs": 1, "warm_up_runs": 1}
    found = _with_peak(bench, case, "classifier", **options)
    found["full"] = bench.plain("classifier", **options, threads=case.threads, precision="fp32", full_attention=True)
    return found


SUBJECTS = {
    "documents": Subject("document", "tokens", LENGTHS, list(ENCODERS), lambda n: n, _measure_document),
    "texts": Subject("text", "tokens", [1024, 2048, 4096, 8192, 16384], [LANGUAGE_MODEL], lambda n: n, _measure_text),
    "images": Subject(
        "image",
        "pixels a side",
        [224, 448, 672, 896, 1120],
        [IMAGES],
        lambda side: (side // PATCH) ** 2,
        _measure_image,
    ),
}
