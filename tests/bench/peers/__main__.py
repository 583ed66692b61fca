"""Times of published classifiers on this machine's CPU, ms per item: Longshort through its C++ API and its server,
beside OpenVINO, ONNX Runtime and eager PyTorch, and the time at the peak of LibTorch's products in the same run.

All run the same network: the weights follow a formula, and the others run the plain PyTorch form
(tests/bench/gpu/plain), exported as an ONNX file for each batch size. Logits are compared with Longshort's in each
case; a case whose logits differ ends the run.

The runners take turns, a batch each. A virtual processor is slower for a while when its other half works for others, so
each round begins with a product of some milliseconds: rounds in which it is slow are kept apart as busy. A table has
the least time of the rounds and their quartiles, and the median of the rounds' ratios. The server is measured alone:
its callers are as many as the batch, on the same cores, and send pixels or text.

Results are kept in --out by case, so an interrupted run continues where it was; delete results.json to measure again.
On a shared machine, run it with real-time priority: chrt -r 1 tests/bench/peers/run
tests/bench/peers/run lengths measures time and memory by length, beside full attention.
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
from bench.peers import lengths
from bench.peers.cases import NETWORKS, RUNNERS, Case, all_cases, measure
from bench.peers.results import Results
from bench.peers.table import draw, least, shown, tables

ROOT = Path(__file__).resolve().parents[3]


def progress(case: Case, found: dict[str, Any]) -> str:
    times = [
        f"{name} {found['errors'].get(runner) or shown(least(found, runner) / case.batch * 1e3)}"
        for runner, name in RUNNERS.items()
    ]
    return f"{', '.join(times)}, at the peak {shown(found['at_peak'] / case.batch * 1e3)} ms per item"


def run(cases: list[Case], rounds: int, seconds: float, programs: Path, out: Path) -> int:
    """Measures what is not there yet; writes results.json, table.md and picture.svg."""
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out / "results.json")
    failed = {}
    with tempfile.TemporaryDirectory(prefix="longshort-bench-") as name:
        folder = Path(name)
        bench = Bench(programs, "cpu", folder, compiles=False)
        missing = [case for case in cases if case not in results.of(cases)]
        for number, case in enumerate(missing, 1):
            print(f"[{number}/{len(missing)}] {case.key}: ", end="", flush=True)
            try:
                found = measure(bench, case, rounds, seconds, folder)
            except MeasurementError as error:
                print(f"\npeers: {error}", file=sys.stderr)
                return 1
            print(progress(case, found), flush=True)
            if found["errors"]:
                failed |= {f"{case.key}, {RUNNERS[runner]}": error for runner, error in found["errors"].items()}
            else:
                results.add(case, found)
    complete = results.of(cases)
    if complete:
        text = tables(processor(), complete)
        (out / "table.md").write_text(text)
        draw(processor(), complete, out / "picture.svg")
        print(f"\n{text}\nwritten: {out / 'table.md'}, {out / 'picture.svg'}")
    for what, error in failed.items():
        print(f"peers: {what}: {error}; the case is not in the table", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog="tests/bench/peers/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NAME",
                        help=", ".join(NETWORKS))  # fmt: skip
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32], metavar="N", help="items (1 8 32)")
    parser.add_argument("--threads", nargs="+", type=int, default=sorted({1, cores}), metavar="N",
                        help="of each runner (1 and one for each core)")  # fmt: skip
    parser.add_argument("--precision", nargs="+", choices=["fp32", "bf16"], default=["fp32"],
                        help="fp32 (default), bf16: Longshort's classifiers compute in float32 with both on CPUs "
                        "without AMX (small text classifiers on all), and ONNX Runtime has no bf16 there")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=30, metavar="N", help="of a case (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3,
                        help="the server is measured this long in a case, and a runner warms up a quarter of it "
                        "(%(default)g)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench-peers", metavar="FOLDER",
                        help="gets results.json, table.md and picture.svg (build/bench-peers)")  # fmt: skip
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build/release", help="whose programs to run (build/release)"
    )
    given = parser.parse_args()
    if min(*given.batches, *given.threads, given.rounds) < 1 or given.seconds <= 0:
        parser.error("--batches, --threads and --rounds must be at least 1, and --seconds more than 0")
    cases = list(all_cases(given.networks, given.precision, given.batches, given.threads))
    return run(cases, given.rounds, given.seconds, given.build / "bin", given.out)


if __name__ == "__main__":
    sys.exit(lengths.main(sys.argv[2:]) if sys.argv[1:2] == ["lengths"] else main())
