"""The cases, and the measurement of one."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu.bench import Bench, MeasurementError, logits_differ, median, preset

# Presets by what the table calls them.
NETWORKS = {
    "vil-ls-medium-224": "ViL-LS-Medium 224",
    "vil-ls-base-224": "ViL-LS-Base 224",
    "vil-ls-medium-384": "ViL-LS-Medium 384",
    "cvt-ls-13-224": "CvT\\*-LS-13 224",
    "cvt-ls-21-224": "CvT\\*-LS-21 224",
    "lra-listops": "LRA ListOps, 2,000 tokens",
    "lra-text": "LRA Text, 4,000 bytes",
    "lra-retrieval": "LRA Retrieval, 2 x 4,096 bytes",
}
# Who is measured, by what the table calls it.
RUNNERS = {
    "cpp": "Longshort, C++",
    "server": "Longshort, server",
    "pytorch": "PyTorch",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
}
WITHOUT_BF16 = ("onnxruntime",)
# A product long enough for the peak, and few batches however long they take.
PEAK = {"side": 2048, "copied_bytes": 1 << 28, "seconds": 0.5}
RUNS = {"runs": 3, "warm_up_runs": 1}
# On a busy machine, a connection may need a second attempt.
CONNECT_SECONDS = 2


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    network: str
    precision: str
    batch: int
    threads: int

    @property
    def key(self) -> str:
        return f"{self.network}/{self.precision}/batch {self.batch}/threads {self.threads}"


def all_cases(
    networks: Iterable[str], precisions: Iterable[str], batches: Iterable[int], threads: Iterable[int]
) -> Iterator[Case]:
    return (Case(*each) for each in itertools.product(networks, precisions, batches, threads))


def workload(config: dict[str, Any], callers: int) -> str:
    """What longshort-load asks: the items of the network's length or size."""
    if config["architecture"] != "text_classifier":
        return f"classify,concurrency={callers},image_side={config['preprocessing']['crop_height']}"
    asked = f"classify,concurrency={callers},prompt={config['max_document_tokens']},documents={config['documents']}"
    # Only bytes can be sent as text of a known number of tokens.
    ids = f",ids=1:{config['vocabulary_size'] - 1}"
    return asked if config["tokenizer"].startswith("bytes") else asked + ids


def served(
    bench: Bench, case: Case, model: Path, config: dict[str, Any], batch_seconds: float, seconds: float
) -> float:
    """Seconds of a batch. Callers send their next item when they have the answer, so it is the mean time of a call."""
    load = [
        f"--workload={workload(config, case.batch)}",
        f"--warm-up={max(CONNECT_SECONDS, 3 * batch_seconds):.3f}s",
        f"--seconds={max(seconds, 10 * batch_seconds):.3f}s",
        f"--grace={10 + 5 * batch_seconds:.0f}s",
    ]
    report = bench.served(model, [f"--threads={case.threads}", f"--precision={case.precision}"], load)
    if report["failed"] or report["refused"] or not report["answered"]:
        raise MeasurementError(f"{case.key}: of {report['sent']} calls, {report['answered']} were answered")
    return report["total_seconds"]["OK"]["mean"]


def measure(bench: Bench, case: Case, seconds: float, folder: Path) -> dict[str, Any]:
    """Seconds of a batch by runner, or its error, and the time at the peak. Each runner must have Longshort's logits.

    Errors: MeasurementError.
    """
    config = preset(case.network)
    model = bench.model(case.network, config)
    peaks = bench.measure("peaks", threads=case.threads, precision=case.precision, **PEAK)
    options = {"model": model, "items": case.batch, "threads": case.threads, "precision": case.precision,
               "run_seconds": seconds, **RUNS}  # fmt: skip
    ours = bench.measure("classifier", **options)
    found: dict[str, Any] = {"cpp": median(ours["batch_seconds"])}
    found["server"] = served(bench, case, model, config, found["cpp"], seconds)
    onnx = folder / f"{case.network}-{case.batch}.onnx"
    for runner in ("pytorch", "onnxruntime", "openvino"):
        if case.precision == "bf16" and runner in WITHOUT_BF16:
            continue
        if runner == "pytorch":
            theirs = bench.plain("classifier", **options)
        else:
            theirs = bench.plain(runner, module="bench.peers.exported", onnx=onnx, **options)
        if "error" in theirs:
            found[runner] = theirs["error"]
            continue
        if logits_differ(theirs, ours["logits"], case.precision):
            raise MeasurementError(
                f"{case.key}: {RUNNERS[runner]}'s logits begin with {theirs['logits'][:4]}, Longshort's with "
                f"{ours['logits'][:4]}: it is not the same network"
            )
        found[runner] = statistics.median(theirs["seconds"])
    return {"seconds": found, "at_peak": ours["batch_flops"] / peaks[f"{case.precision}_flops"], "peaks": peaks}


def failures(found: dict[str, Any]) -> dict[str, str]:
    """Errors by runner."""
    return {runner: value for runner, value in found["seconds"].items() if isinstance(value, str)}
