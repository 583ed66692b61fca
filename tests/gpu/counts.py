"""The counts of the GPU path: tests/models/gpu/counts.txt, a fact on each line.

Its lines are counted without a GPU: those of graphs, steps, batches and launches by longshort-gpu-counts, those of
kernels and paths by CUDA's tools. A line says what it counts, then its numbers.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpu import machine_code
from gpu.pieces import ROOT

FILE = ROOT / "tests/models/gpu/counts.txt"
BY_PROGRAM = ("graph", "step", "batch", "launch")
BY_TOOLS = ("kernel", "spills", "path")
WRITE = "tests/gpu/run count --write"
CAUSAL = ROOT / "models/ops/causal_attention"


@dataclass(frozen=True)
class Way:
    """A warp's way through a block of 64 keys. `runs`: how often each loop runs (Code.longest_path)."""

    name: str
    kernel: str
    source: str
    runs: tuple[int, ...]
    is_loop: bool  # the kernel's main loop, instead of the whole kernel


WAYS = (
    # A thread copies 4 pieces of values in one unrolled run, and stages 1 channel of the queries.
    Way("single_blocks", "AttendToBlocks<BFloat16, 64>", "decode_attention.cu", (0, 1, 1, 0), is_loop=False),
    # It copies 4 pieces of keys and of values. Queries are staged before the first window block only. A band has 10
    # tiles of 8 distances, 2 in a run; vectors of chunks have no band.
    Way("tile_window_blocks", "AttendFromTiles<BFloat16, 64>", "prompt_attention.cu", (1, 0, 5), is_loop=True),
    Way("tile_vector_blocks", "AttendFromTiles<BFloat16, 64>", "prompt_attention.cu", (1, 0, 0), is_loop=True),
)
# The chips whose kernels are listed one by one, and those of which the file has spills only.
CHIPS, OTHER_CHIPS = ("80", "90a"), ("100", "120")


def listed(*kinds: str) -> list[str]:
    """The file's lines of these kinds."""
    return [line for line in FILE.read_text().splitlines() if line.split(",")[0] in kinds]


def values(line: str) -> dict[str, float]:
    """The numbers of a line by name: "nodes=124" is one."""
    words = (word.rstrip(":").partition("=") for word in line.split())
    return {name: float(number) for name, is_value, number in words if is_value and name}


def of(name: str) -> dict[str, float]:
    """The numbers of the line with this name."""
    return next(values(line) for line in FILE.read_text().splitlines() if line.startswith(f"{name}: "))


def differences(found: list[str], expected: list[str]) -> list[str]:
    """Lines that are not the file's, and what the file has instead."""
    gone = [f"- {line}" for line in expected if line not in found]
    new = [f"+ {line}" for line in found if line not in expected]
    return [*gone, *new, f"If that is intended: {WRITE}"] if gone or new else []


def of_program() -> list[str]:
    build = Path(os.environ.get("LONGSHORT_BUILD") or ROOT / "build/release")
    done = subprocess.run([build / "bin/longshort-gpu-counts"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def of_kernels(chip: str, scratch: Path) -> list[str]:
    """A line for each kernel on this chip."""
    lines = []
    launches = {line.split(": ")[0].removeprefix("launch, "): values(line) for line in listed("launch")}
    for name, kernel in sorted(machine_code.all_kernels(chip, scratch).items()):
        if name not in launches:
            raise RuntimeError(f"{name} has no line 'launch' in {FILE}: kernel_launches.cc lacks it")
        launch = launches[name]
        shared = kernel.shared + int(launch["shared"])
        blocks = machine_code.MULTIPROCESSORS[chip].blocks_of(kernel.registers, shared, int(launch["threads"]))
        lines.append(f"kernel, sm_{chip}, {name}: registers={kernel.registers} spilled={kernel.spilled} "
                     f"shared={shared} blocks={blocks}")  # fmt: skip
    return lines


def of_spills(chip: str, scratch: Path) -> list[str]:
    """A line for each kernel that spills on this chip."""
    kernels = sorted(machine_code.all_kernels(chip, scratch).items())
    return [f"spills, sm_{chip}, {name}: bytes={kernel.spilled}" for name, kernel in kernels if kernel.spilled > 0]


def of_paths(scratch: Path) -> list[str]:
    """A line for each of WAYS, on sm_90a. Where a way has a choice, the longer one counts."""
    lines = []
    for way in WAYS:
        code = machine_code.code_of(way.kernel, CAUSAL / way.source, "90a", scratch)
        begin, end = code.main_loop() if way.is_loop else (0, code.end())
        products, instructions = code.longest_path(begin, end, way.runs)
        lines.append(f"path, {way.name}: instructions={instructions} products={products}")
    return lines


def count(*, write: bool) -> int:
    """Prints what differs from the file, or writes it. Lines that this machine cannot count stay."""
    with tempfile.TemporaryDirectory(prefix="longshort-counts-") as scratch:
        found = of_program()
        if machine_code.NVCC is None:
            print(f"there is no nvcc: lines of {', '.join(BY_TOOLS)} are not counted")
            found += listed(*BY_TOOLS)
        else:
            if write:
                _write([*found, *listed(*BY_TOOLS)])  # lines of kernels need those of launches
            for chip in CHIPS:
                found += of_kernels(chip, Path(scratch))
            for chip in OTHER_CHIPS:
                found += of_spills(chip, Path(scratch))
            found += listed("path") if machine_code.NVDISASM is None else of_paths(Path(scratch))
    different = differences(found, listed(*BY_PROGRAM, *BY_TOOLS))
    print("\n".join(different) or "no number differs")
    if write:
        _write(found)
    return 0 if write or not different else 1


def _write(lines: list[str]) -> None:
    comments = [line for line in FILE.read_text().splitlines() if line.startswith("#")]
    FILE.write_text("\n".join([*comments, *lines]) + "\n")
