"""Prints where a step's time goes: the language model's kernels in order of their time, by Nsight Compute.

The kernels of a step run one after the other, so their sum is less than the step's time by the gaps between them.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.gpu.bench import Bench
from bench.gpu.cases import BASE

STEPS = {
    "1 stream": {"streams": 1},
    "256 streams": {"streams": 256},
    "a prompt's 4,096 tokens": {"step_tokens": 4096},
}
METRICS = {"gpu__time_duration.sum": "seconds", "dram__bytes.sum": "bytes"}
# As ncu writes them.
UNITS = {"ns": 1e-9, "us": 1e-6, "usecond": 1e-6, "nsecond": 1e-9, "ms": 1e-3, "msecond": 1e-3, "byte": 1.0,
         "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}  # fmt: skip


@dataclass
class Kernel:
    """All launches of a kernel in a step."""

    launches: int = 0
    seconds: float = 0
    bytes: float = 0


def kernels_of(lines: Iterable[str]) -> dict[str, Kernel]:
    """From ncu's CSV, whose lines are one metric of one launch each, after the program's own output."""
    table = [line for line in lines if line.startswith('"')]
    kernels: defaultdict[str, Kernel] = defaultdict(Kernel)
    for row in csv.DictReader(table):
        metric = METRICS.get(row["Metric Name"])
        if metric is None:
            continue
        kernel = kernels[short_name(row["Kernel Name"])]
        value = float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
        setattr(kernel, metric, getattr(kernel, metric) + value)
        kernel.launches += metric == "seconds"
    return dict(kernels)


def short_name(name: str) -> str:
    """Without arguments and namespaces; LibTorch's elementwise kernels keep what they compute."""
    functor = re.search(r"(\w+?)(?:_kernel_cuda|_kernel_impl|Functor|_kernel_cuda_impl)", name)
    base = re.sub(r"^void |\(.*$|<.*$", "", name.replace("(anonymous namespace)::", "").replace("<unnamed>::", ""))
    base = base.split("::")[-1]
    return f"{base} ({functor[1]})" if functor and "elementwise" in base else base


def table(kernels: dict[str, Kernel]) -> list[str]:
    total = sum(kernel.seconds for kernel in kernels.values())
    lines = ["| kernel | launches | us | share | GB/s |", "|---|---|---|---|---|"]
    for name, kernel in sorted(kernels.items(), key=lambda item: -item[1].seconds):
        rate = kernel.bytes / kernel.seconds / 1e9 if kernel.seconds else 0
        lines.append(
            f"| {name} | {kernel.launches} | {kernel.seconds * 1e6:.1f} | {kernel.seconds / total:.1%} | {rate:.0f} |"
        )
    launches = sum(kernel.launches for kernel in kernels.values())
    return [*lines, f"| all | {launches} | {total * 1e6:.1f} | | |"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--ncu", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="longshort-kernels-") as scratch:
        bench = Bench(arguments.programs, arguments.device, Path(scratch), compiles=False)
        model = bench.model("language-model", BASE)
        for name, options in STEPS.items():
            words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
            command = [arguments.ncu, "--profile-from-start", "off", "--clock-control", "none", "--csv",
                       "--graph-profiling", "node", "--metrics", ",".join(METRICS),
                       arguments.programs / "longshort-gpu-bench", "streams", f"--device={arguments.device}",
                       f"--model={model}", "--precision=bf16", "--steps=1", "--warm-up-steps=2", *words]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            kernels = kernels_of(done.stdout.splitlines()) if done.returncode == 0 else {}
            if not kernels:
                print(f"{name}: ncu ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
                return 1
            print(f"{name}:", *table(kernels), "", sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
