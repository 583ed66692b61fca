"""Measures a group of cases on a device, with the peaks of the same run, and prints a table of targets.

tests/gpu/run check bench-GROUP runs it. A target that is missed is no failure of the run. With --model, it measures
nothing, and prints the times that counts and the chip's figures predict.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.gpu import predict
from bench.gpu.bench import Bench, MeasurementError, Row, as_json
from bench.gpu.cases import GROUPS

HEADER = ["case", "figure", "target", "", "share", "eager PyTorch", "torch.compile"]


def chip(device: str) -> str:
    """The GPU's name and driver, where there is one."""
    if device.startswith("emulated:") or shutil.which("nvidia-smi") is None:
        return device
    command = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def head(device: str, peaks: dict[str, float]) -> str:
    products = ", ".join(f"{name} {peaks[f'{name}_flops'] / 1e12:.3g} TFLOP/s" for name in ("bf16", "fp32"))
    return f"{chip(device)}: {products}, copies {peaks['copy_bytes'] / 1e9:.4g} GB/s"


def table_head() -> list[str]:
    return [line(HEADER), "|" + "---|" * len(HEADER)]


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write(path: Path, device: str, bench: Bench, rows: list[Row]) -> None:
    found = {"device": device, "chip": chip(device), "peaks": bench.peaks, "rows": as_json(rows)}
    path.write_text(json.dumps(found, indent=1) + "\n")


def run(group: str, device: str, programs: Path, out: Path, *, compiles: bool) -> int:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="longshort-bench-") as scratch:
        try:
            bench = Bench(programs, device, Path(scratch), compiles=compiles)
            print(head(device, bench.peaks), *table_head(), sep="\n", flush=True)
            for row in GROUPS[group](bench):
                if bench.tiny:
                    row.target, row.met = f"{row.target} (not of an emulated GPU)" if row.target else "", None
                rows.append(row)
                print(line(row.cells()), flush=True)
                # What is measured is kept, whatever comes then.
                write(out / f"bench-{group}.json", device, bench, rows)
        except MeasurementError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--model"]:
        print(*predict.table(), sep="\n")
        sys.exit(0)
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--device", required=True)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="gets bench-GROUP.json")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile, which takes minutes")
    arguments = parser.parse_args()
    sys.exit(
        run(arguments.group, arguments.device, arguments.programs, arguments.out, compiles=not arguments.no_compile)
    )
