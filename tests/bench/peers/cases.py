"""The cases, and the measurement of one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu.bench import Bench, MeasurementError, logits_differ, preset
from bench.peers.turns import TurnError, Turns, in_turns, quiet_rounds

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
# A product long enough for the peak.
PEAK = {"side": 2048, "copied_bytes": 1 << 28, "seconds": 0.5}
# A product of some milliseconds at the beginning of each round shows the state of the machine.
PROBE = "probe"
PROBE_SIDE = {"fp32": 512, "bf16": 1024}
# What one runner may take in one case.
RUNNER_SECONDS = 3600
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


def measure(bench: Bench, case: Case, rounds: int, seconds: float, folder: Path) -> dict[str, Any]:
    """What each runner found, or its error. Each runner must have Longshort's logits.

      rounds   seconds of a batch in each round, by runner, and of a small product ("probe")
      server   seconds of a batch, measured alone; `seconds` long
      at_peak  seconds of the batch's products at the peak

    Errors: MeasurementError.
    """
    config = preset(case.network)
    model = bench.model(case.network, config)
    common = {"threads": case.threads, "precision": case.precision}
    peaks = bench.measure("peaks", **PEAK, **common)
    options = {
        "model": model,
        "items": case.batch,
        "warm_up_runs": 1,
        "run_seconds": seconds,
        "in_turns": True,
        **common,
    }
    onnx = {"module": "bench.peers.exported", "onnx": folder / f"{case.network}-{case.batch}.onnx"}
    commands = {
        PROBE: bench.command("peaks", side=PROBE_SIDE[case.precision], in_turns=True, **common),
        "cpp": bench.command("classifier", **options),
        "pytorch": bench.plain_command("classifier", **options),
        "onnxruntime": bench.plain_command("onnxruntime", **onnx, **options),
        "openvino": bench.plain_command("openvino", **onnx, **options),
    }
    if case.precision == "bf16":
        for runner in WITHOUT_BF16:
            del commands[runner]
    found: dict[str, Any] = {"peaks": peaks, "errors": {}}
    turns: dict[str, Turns] = {}
    try:
        for runner, command in commands.items():
            try:
                turns[runner] = Turns(command, folder / f"{runner}.log", RUNNER_SECONDS)
            except TurnError as error:
                found["errors"][runner] = str(error)
        if not {PROBE, "cpp"} <= set(turns):
            raise MeasurementError(f"{case.key}: {found['errors']}")
        found["rounds"] = in_turns(turns, rounds)
        ends = {runner: one.end() for runner, one in turns.items()}
    except TurnError as error:
        raise MeasurementError(f"{case.key}: {error}") from error
    finally:
        for one in turns.values():
            one.stop()
    ours = ends["cpp"]
    for runner, other in ends.items():
        if logits_differ(other, ours["logits"], case.precision):
            raise MeasurementError(
                f"{case.key}: {RUNNERS[runner]}'s logits begin with {other['logits'][:4]}, Longshort's with "
                f"{ours['logits'][:4]}: it is not the same network"
            )
    found["server"] = served(bench, case, model, config, min(found["rounds"]["cpp"]), seconds)
    return found | {"at_peak": ours["batch_flops"] / peaks[f"{case.precision}_flops"]}


def kept_apart(found: dict[str, Any]) -> dict[str, dict[str, list[float]]]:
    """The seconds of each runner in the quiet rounds and in the busy ones, if there are some."""
    rounds = found["rounds"]
    quiet = quiet_rounds(rounds[PROBE])
    parts = {
        name: {
            runner: [one for one, is_quiet in zip(seconds, quiet, strict=True) if is_quiet == wanted]
            for runner, seconds in rounds.items()
            if runner != PROBE
        }
        for name, wanted in (("quiet", True), ("busy", False))
    }
    return {name: part for name, part in parts.items() if part["cpp"]}
