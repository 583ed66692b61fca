"""What nvcc makes of the kernels: registers, spills, shared memory, blocks of a multiprocessor, and instructions.

It needs CUDA's tools, not a GPU.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu.pieces import ROOT

KERNELS = ROOT / "models/ops"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
# nvdisasm is a package of tests/requirements.txt.
NVDISASM = shutil.which("nvdisasm") or shutil.which(
    "nvdisasm", path=str(Path(sysconfig.get_path("purelib")) / "nvidia/cu13/bin")
)
# The options of target longshort_cuda_kernels.
OPTIONS = ["-std=c++17", "-O3", "--expt-relaxed-constexpr", "--Werror=all-warnings", "-Xptxas=-v", f"-I{ROOT}"]


def compiled(source: Path, architecture: str, to: Path, *, kind: str = "-c") -> str:
    """Compiles a source for one chip, and returns the assembler's report. The compiler cache keeps that as well."""
    launcher = [ccache] if kind == "-c" and (ccache := shutil.which("ccache")) else []
    result = subprocess.run(
        [*launcher, NVCC, *OPTIONS, f"-gencode=arch=compute_{architecture},code=sm_{architecture}", kind, source,
         "-o", to],
        cwd=ROOT, env={**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        raise RuntimeError(result.stdout + result.stderr)
    return demangled(result.stdout + result.stderr)


def demangled(text: str) -> str:
    return subprocess.run(["c++filt"], input=text, text=True, capture_output=True, check=True).stdout


def short_name(function: str) -> str:
    """Norm<4> of "void longshort::models::cuda::(anonymous namespace)::Norm<4>(longshort::models::cuda::NormRows)"."""
    name = function.replace("(anonymous namespace)::", "").replace("longshort::models::cuda::", "")
    return name.removeprefix("void ").split("(")[0]


# --- what the assembler reports ---


@dataclass(frozen=True)
class Kernel:
    """What a kernel needs: registers of a thread; bytes that it spills; fixed shared memory of a block."""

    registers: int
    spilled: int
    shared: int


def kernels_of(report: str) -> dict[str, Kernel]:
    kernels = {}
    for entry in report.split("Compiling entry function '")[1:]:
        shared = re.search(r"(\d+) bytes smem", entry)
        kernels[short_name(entry.split("'")[0])] = Kernel(
            registers=int(re.search(r"Used (\d+) registers", entry)[1]),
            spilled=sum(int(number) for number in re.findall(r"(\d+) bytes spill", entry)),
            shared=int(shared[1]) if shared else 0,
        )
    return kernels


def all_kernels(architecture: str, scratch: Path) -> dict[str, Kernel]:
    found: dict[str, Kernel] = {}
    for source in sorted(KERNELS.rglob("*.cu")):
        found |= kernels_of(compiled(source, architecture, scratch / f"{source.stem}.o"))
    return found


@dataclass(frozen=True)
class Multiprocessor:
    """What the blocks of a multiprocessor share (CUDA C++ Programming Guide, "Compute Capabilities")."""

    shared: int
    registers: int = 65536
    warps: int = 64
    blocks: int = 32

    def blocks_of(self, registers: int, shared: int, threads: int) -> int:
        """Of a kernel. A warp's registers come in units of 256; a block has 1 KiB of shared memory more."""
        warps = threads // 32
        by_registers = self.registers // (-(-registers * 32 // 256) * 256) // 4 * 4 // warps
        by_shared = self.shared // (-(-shared // 128) * 128 + 1024)
        return min(by_registers, by_shared, self.warps // warps, self.blocks)


MULTIPROCESSORS = {"80": Multiprocessor(shared=164 << 10), "90a": Multiprocessor(shared=228 << 10)}


# --- instructions ---


@dataclass
class Instruction:
    """`target`: the label to which it may jump."""

    text: str
    target: str | None = None

    @property
    def is_conditional(self) -> bool:
        return self.text.startswith("@")

    @property
    def name(self) -> str:
        return re.sub(r"^@\S+ ", "", self.text).split(" ")[0].rstrip(";")


@dataclass(frozen=True)
class Code:
    """A function's instructions, and the places of its labels."""

    instructions: list[Instruction]
    labels: dict[str, int]

    def loops(self, begin: int, end: int) -> list[tuple[int, int]]:
        """First and last instruction of each loop within [begin, end), in the order of their ends."""
        found = []
        for place in range(begin, end):
            one = self.instructions[place]
            if one.name == "BRA" and one.is_conditional and begin <= self.labels[one.target] <= place:
                found.append((self.labels[one.target], place))
        return found

    def end(self) -> int:
        """Behind the kernel's last exit, where the functions that it calls begin."""
        return max(place for place, one in enumerate(self.instructions) if one.name == "EXIT") + 1

    def longest_path(self, begin: int, end: int, runs: tuple[int, ...]) -> tuple[int, int]:
        """Products of tensor cores, and instructions, of a way from `begin` to before `end` or the kernel's end.

        Of all ways, it has the most products, and of these the most instructions. `runs` says how often each loop runs;
        0: the way does not enter it. A way has no calls: those are divisions of numbers beyond 32 bits.
        """
        loops = self.loops(begin, end)
        if len(loops) != len(runs):
            raise ValueError(f"the loops are {loops}; say how often each of them runs")
        ways: dict[int, tuple[int, int]] = {end: (0, 0)}
        for place in range(end - 1, begin - 1, -1):
            one = self.instructions[place]
            weight = math.prod(
                times for (first, last), times in zip(loops, runs, strict=True) if first <= place <= last
            )
            if weight == 0 or one.name.startswith(("CALL", "RET")):
                continue
            after = [place + 1]
            if one.name == "BRA":
                target = self.labels[one.target]
                after = ([place + 1] if one.is_conditional else []) + ([target] if target > place else [])
            following = [ways[next_place] for next_place in after if next_place in ways]
            if one.name == "EXIT":
                following = following if one.is_conditional else [(0, 0)]
            if following:
                products, instructions = max(following)
                ways[place] = products + weight * one.name.startswith("HMMA"), instructions + weight
        return ways[begin]

    def main_loop(self) -> tuple[int, int]:
        """The loop with the most products."""
        loops = self.loops(0, len(self.instructions))

        def products(loop: tuple[int, int]) -> int:
            return sum(one.name.startswith("HMMA") for one in self.instructions[loop[0] : loop[1] + 1])

        return max(loops, key=products)


def functions_of(listing: str) -> Iterator[tuple[str, Code]]:
    """Each function of nvdisasm's listing, with its mangled name."""
    for part in re.split(r"^\.text\.", listing, flags=re.MULTILINE)[1:]:
        labels: dict[str, int] = {}
        code: list[Instruction] = []
        for line in part.splitlines()[1:]:
            if label := re.match(r"(\.L_x_\d+):", line):
                labels[label[1]] = len(code)
            elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?;)", line):
                target = re.search(r"`\((\.L_x_\d+)\)", found[1])
                code.append(Instruction(" ".join(found[1].split()), target[1] if target else None))
        yield part.split(":", maxsplit=1)[0], Code(code, labels)


def code_of(kernel: str, source: Path, architecture: str, scratch: Path) -> Code:
    cubin = scratch / f"{source.stem}.cubin"
    compiled(source, architecture, cubin, kind="-cubin")
    listing = subprocess.run([NVDISASM, "-c", cubin], capture_output=True, text=True, check=True).stdout
    return next(code for name, code in functions_of(listing) if short_name(demangled(name).strip()) == kernel)
