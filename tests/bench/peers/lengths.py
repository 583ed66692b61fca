"""Time and memory on this machine's CPU by the length of a text or the side of an image: Longshort's through its C++
API, and beside it the same network with full attention by PyTorch's scaled_dot_product_attention. All in float32.

  documents  the long-document encoder LS-base, one document; with full attention it is RoBERTa-base. At 512 tokens,
             both networks also run in OpenVINO, and logits are compared
  texts      a language model of 44M parameters reads n tokens by segments of 256, behind a memory of n tokens (the
             paper's Figure 3); with full attention it caches keys and values, as Transformer-XL does
  images     CvT*-LS-13, one image (the paper's Figure 7); with full attention, all tokens of a grid see each other

A time is that of the fastest run, and the peak the higher one of a measurement before the case and one after it: other
programs on a machine make both worse, never better. Weights follow a formula. Memory is what the process needs above
its size after loading.

Results are kept in --out by case, so an interrupted run continues where it was; delete SUBJECT.json to measure again.
On a shared machine, run it with real-time priority: chrt -r 1 tests/bench/peers/run lengths
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.gpu.bench import Bench, MeasurementError
from bench.load.bench import processor
from bench.peers.results import Results
from bench.peers.subjects import RUNNERS, SUBJECTS, LengthCase, Subject, time_of
from bench.peers.table import counted, line, shown

ROOT = Path(__file__).resolve().parents[3]
MEBIBYTE = 1 << 20


def rows(subject: Subject, results: dict[LengthCase, dict[str, Any]]) -> list[str]:
    names = ["network", subject.unit, "threads", "runner", "ms", "ms per 1,000 tokens", "at the peak",
             "share of the peak", "MiB"]  # fmt: skip
    lines = [line(names), "|" + "---|" * len(names)]
    for case, found in results.items():
        for runner, name in RUNNERS.items():
            if runner not in found or "error" in found[runner]:
                continue
            took = time_of(found[runner])
            share = (
                [shown(found["at_peak"] * 1e3), f"{found['at_peak'] / took:.0%}"] if "at_peak" in found else ["", ""]
            )
            memory = found[runner].get("resident_peak")
            lines.append(
                line([
                    case.network, f"{case.size:,}", str(case.threads), name, shown(took * 1e3),
                    shown(took / subject.tokens(case.size) * 1e6), *share, f"{memory / MEBIBYTE:.0f}" if memory else "",
                ])
            )  # fmt: skip
    return lines


def draw(machine: str, subject: Subject, results: dict[LengthCase, dict[str, Any]], path: Path) -> None:
    """Two panels: seconds by size and MiB by size, a line for each network and number of threads."""
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
            if runner in RUNNERS and "error" not in value and not is_full_elsewhere:
                point = (case.size, time_of(value), value.get("resident_peak", 0) / MEBIBYTE)
                lines.setdefault((case.network, case.threads, runner), []).append(point)
    figure, (times, memory) = pyplot.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
    for (network, threads, runner), points in lines.items():
        sizes, seconds, mebibytes = zip(*sorted(points), strict=True)
        style = {"marker": "." if len(points) > 1 else "x", "linestyle": "-" if threads == 1 else "--"}
        times.plot(sizes, seconds, label=f"{network}, {RUNNERS[runner]}, {counted(threads)}", **style)
        if threads == 1 and runner != "openvino":
            memory.plot(sizes, mebibytes, label=f"{network}, {RUNNERS[runner]}", **style)
    for axes, what in ((times, f"seconds per {subject.item}"), (memory, f"MiB per {subject.item}, 1 thread")):
        axes.set(xscale="log", yscale="log", xlabel=subject.unit, ylabel=what)
        axes.set_xticks(subject.sizes, [f"{size:,}" for size in subject.sizes])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)
    figure.suptitle(machine)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def run(name: str, cases: list[LengthCase], seconds: float, slowest: float, programs: Path, out: Path) -> int:
    """Measures what is not there yet; writes NAME.json, NAME.md and NAME.svg."""
    subject = SUBJECTS[name]
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out / f"{name}.json")
    with tempfile.TemporaryDirectory(prefix="longshort-bench-") as folder:
        bench = Bench(programs, "cpu", Path(folder), compiles=False, plain_seconds=slowest)
        missing = [case for case in cases if case not in results.of(cases)]
        for number, case in enumerate(missing, 1):
            print(f"[{number}/{len(missing)}] {case.key}", flush=True)
            try:
                found = subject.measure(bench, case, seconds)
            except MeasurementError as error:
                print(f"peers: {error}", file=sys.stderr)
                return 1
            for runner in RUNNERS:
                found.get(runner, {}).pop("logits", None)  # a thousand numbers that were compared
            results.add(case, found)
            print(*rows(subject, {case: found})[2:], sep="\n", flush=True)
    complete = results.of(cases)
    text = "\n".join([f"{processor()}, fp32, one {subject.item}.", "", *rows(subject, complete)]) + "\n"
    table, picture = out / f"{name}.md", out / f"{name}.svg"
    table.write_text(text)
    draw(processor(), subject, complete, picture)
    print(f"\n{text}\nwritten: {table}, {picture}")
    return 0


def main(arguments: list[str]) -> int:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog="tests/bench/peers/run lengths", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("subject", choices=SUBJECTS, nargs="?", default="documents", help="(documents)")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="tokens, or pixels of an image's side (all)")
    parser.add_argument("--threads", nargs="+", type=int, default=sorted({1, cores}), metavar="N",
                        help="of each runner (1 and one for each core)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=3, help="each runner measures this long (%(default)g)")
    parser.add_argument("--slowest", type=float, default=600, metavar="SECONDS",
                        help="a runner that takes longer for a case is not in it (%(default)g)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench-peers", metavar="FOLDER",
                        help="gets SUBJECT.json, SUBJECT.md and SUBJECT.svg (build/bench-peers)")  # fmt: skip
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build/release", help="whose programs to run (build/release)"
    )
    given = parser.parse_args(arguments)
    subject = SUBJECTS[given.subject]
    sizes = given.sizes or subject.sizes
    if min(given.threads) < 1 or not set(sizes) <= set(subject.sizes):
        parser.error(f"--threads must be at least 1, and --sizes of {given.subject} are {subject.sizes}")
    cases = [
        LengthCase(network, size, threads)
        for threads in given.threads
        for network in subject.networks
        for size in sizes
    ]
    return run(given.subject, cases, given.seconds, given.slowest, given.build / "bin", given.out)
