"""Time and memory of the long-document encoder LS-base on this machine's CPU by the length of its document: Longshort's
through its C++ API, and beside it the same network with full attention by PyTorch's scaled_dot_product_attention, which
is RoBERTa-base, and at 512 tokens both networks in OpenVINO. All in float32, one document at a time.

A time is that of the fastest run, and the peak the higher one of a measurement before the case and one after it: other
programs on a machine make both worse, never better. Weights follow a formula. Logits are compared with
Longshort's, which runs RoBERTa-base, too, where both are measured. Memory is what the
process needs above its size after loading.

Results are kept in --out by case, so an interrupted run continues where it was; delete lengths.json to measure again.
On a shared machine, run it with real-time priority: chrt -r 1 tests/bench/peers/run lengths
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu.bench import Bench, MeasurementError, logits_differ
from bench.load.bench import processor
from bench.peers.cases import PEAK
from bench.peers.results import Results
from bench.peers.table import counted, line, shown

ROOT = Path(__file__).resolve().parents[3]
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
WINDOW = 512
# The length at which other runners read the same network as Longshort.
COMPARED = 512
# Ids of documents begin at 1, so that none is padding.
BASE = {
    "architecture": "text_classifier", "tokenizer": "none", "layers": 12, "model_width": 768, "heads": 12,
    "feed_forward_width": 3072, "window_size": WINDOW, "projection_rank": 0, "vocabulary_size": 50265,
    "max_sequence_length": LENGTHS[-1], "cls": "first_token", "normalized_cls": False, "value_convolution": 0,
    "tied_layers": False, "documents": 1, "classes": 2, "layer_norm": "after", "layer_norm_epsilon": 1e-5,
    "dual_norm": True, "padding_id": 0, "separator_id": 2, "head": "tanh",
}  # fmt: skip
NETWORKS = {
    "ls-base-r1": BASE | {"projection_rank": 1},
    "ls-base-r64": BASE | {"projection_rank": 64},
    "roberta-base": BASE | {"dual_norm": False, "window_size": LENGTHS[-1]},
}
SERIES = {"longshort": "Longshort, C++", "full": "full attention, PyTorch", "openvino": "OpenVINO"}
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class LengthCase:
    """One row of the table."""

    network: str
    tokens: int
    threads: int

    @property
    def key(self) -> str:
        return f"{self.network}/{self.tokens} tokens/threads {self.threads}"


def measure(bench: Bench, case: LengthCase, seconds: float) -> dict[str, Any]:
    """What each runner found. Of RoBERTa-base, Longshort's time is there only where its logits are compared.

    Errors: MeasurementError.
    """
    model = bench.model(case.network, NETWORKS[case.network])
    options = {"model": model, "items": 1, "tokens": case.tokens, "threads": case.threads, "precision": "fp32",
               "run_seconds": seconds, "runs": 2 if case.tokens <= 4096 else 1, "warm_up_runs": 1}  # fmt: skip
    full = case.network == "roberta-base"
    found: dict[str, Any] = {}
    if not full or case.tokens == COMPARED:
        peaks = [bench.measure("peaks", threads=case.threads, **PEAK)["fp32_flops"]]
        found["longshort"] = bench.measure("classifier", **options)
        peaks.append(bench.measure("peaks", threads=case.threads, **PEAK)["fp32_flops"])
        found["at_peak"] = found["longshort"]["batch_flops"] / max(peaks)
    if full:
        found["full"] = bench.plain("classifier", **options)
    if case.tokens == COMPARED:
        onnx = model.parent / f"{case.network}-{case.tokens}.onnx"
        found["openvino"] = bench.plain("openvino", module="bench.peers.exported", onnx=onnx, **options)
    for runner in ("full", "openvino"):
        if "longshort" in found and logits_differ(found.get(runner, {}), found["longshort"]["logits"], "fp32"):
            raise MeasurementError(f"{case.key}: {SERIES[runner]} has other logits: it is not the same network")
    return found


def rows(results: dict[LengthCase, dict[str, Any]]) -> list[str]:
    names = ["network", "tokens", "threads", "runner", "ms", "ms per 1,000 tokens", "at the peak", "share of the peak",
             "MiB"]  # fmt: skip
    lines = [line(names), "|" + "---|" * len(names)]
    for case, found in results.items():
        for runner, name in SERIES.items():
            if runner not in found or "error" in found[runner]:
                continue
            took = time_of(found[runner])
            share = (
                [shown(found["at_peak"] * 1e3), f"{found['at_peak'] / took:.0%}"] if "at_peak" in found else ["", ""]
            )
            memory = found[runner].get("resident_peak")
            lines.append(
                line([
                    case.network, f"{case.tokens:,}", str(case.threads), name, shown(took * 1e3),
                    shown(took / case.tokens * 1e6), *share, f"{memory / MEBIBYTE:.0f}" if memory else "",
                ])
            )  # fmt: skip
    return lines


def time_of(found: dict[str, Any]) -> float:
    """Seconds of the fastest run: other programs on the machine make a run slower, never faster."""
    return min(found["batch_seconds" if "batch_seconds" in found else "seconds"])


def draw(machine: str, results: dict[LengthCase, dict[str, Any]], path: Path) -> None:
    """Two panels: seconds by tokens and MiB by tokens, a line for each network and number of threads."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    # Text stays text, and equal results give equal files.
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "lengths", "font.size": 8}
    from matplotlib import pyplot  # noqa: PLC0415
    from matplotlib.ticker import NullLocator  # noqa: PLC0415

    lines: dict[tuple[str, int, str], list[tuple[int, float, float]]] = {}
    for case, found in results.items():
        for runner, value in found.items():
            is_full_elsewhere = runner == "longshort" and case.network == "roberta-base"
            if runner in SERIES and "error" not in value and not is_full_elsewhere:
                point = (case.tokens, time_of(value), value.get("resident_peak", 0) / MEBIBYTE)
                lines.setdefault((case.network, case.threads, runner), []).append(point)
    figure, (times, memory) = pyplot.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
    for (network, threads, runner), points in lines.items():
        tokens, seconds, mebibytes = zip(*sorted(points), strict=True)
        style = {"marker": "." if len(points) > 1 else "x", "linestyle": "-" if threads == 1 else "--"}
        times.plot(tokens, seconds, label=f"{network}, {SERIES[runner]}, {counted(threads)}", **style)
        if threads == 1 and runner != "openvino":
            memory.plot(tokens, mebibytes, label=f"{network}, {SERIES[runner]}", **style)
    for axes, what in ((times, "seconds per document"), (memory, "MiB per document, 1 thread")):
        axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel=what)
        axes.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)
    figure.suptitle(machine)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def run(cases: list[LengthCase], seconds: float, slowest: float, programs: Path, out: Path) -> int:
    """Measures what is not there yet; writes lengths.json, lengths.md and lengths.svg."""
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out / "lengths.json")
    with tempfile.TemporaryDirectory(prefix="longshort-bench-") as folder:
        bench = Bench(programs, "cpu", Path(folder), compiles=False, plain_seconds=slowest)
        missing = [case for case in cases if case not in results.of(cases)]
        for number, case in enumerate(missing, 1):
            print(f"[{number}/{len(missing)}] {case.key}", flush=True)
            try:
                found = measure(bench, case, seconds)
            except MeasurementError as error:
                print(f"peers: {error}", file=sys.stderr)
                return 1
            results.add(case, found)
            print(*rows({case: found})[2:], sep="\n", flush=True)
    complete = results.of(cases)
    text = "\n".join([f"{processor()}, fp32, one document.", "", *rows(complete)]) + "\n"
    (out / "lengths.md").write_text(text)
    draw(processor(), complete, out / "lengths.svg")
    print(f"\n{text}\nwritten: {out / 'lengths.md'}, {out / 'lengths.svg'}")
    return 0


def main(arguments: list[str]) -> int:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog="tests/bench/peers/run lengths", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NAME",
                        help=", ".join(NETWORKS))  # fmt: skip
    parser.add_argument("--tokens", nargs="+", type=int, default=LENGTHS, metavar="N",
                        help=" ".join(map(str, LENGTHS)))  # fmt: skip
    parser.add_argument("--threads", nargs="+", type=int, default=sorted({1, cores}), metavar="N",
                        help="of each runner (1 and one for each core)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=3, help="each runner measures this long (%(default)g)")
    parser.add_argument("--slowest", type=float, default=600, metavar="SECONDS",
                        help="a runner that takes longer for a case is not in it (%(default)g)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench-peers", metavar="FOLDER",
                        help="gets lengths.json, lengths.md and lengths.svg (build/bench-peers)")  # fmt: skip
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build/release", help="whose programs to run (build/release)"
    )
    given = parser.parse_args(arguments)
    out_of_range = [tokens for tokens in given.tokens if not 1 <= tokens <= LENGTHS[-1]]
    if out_of_range or min(given.threads) < 1:
        parser.error(f"--tokens must be in 1..{LENGTHS[-1]}, and --threads at least 1")
    cases = [
        LengthCase(network, tokens, threads)
        for threads in given.threads
        for network in given.networks
        for tokens in given.tokens
    ]
    return run(cases, given.seconds, given.slowest, given.build / "bin", given.out)
