"""The CUDA kernels compile for the supported chips, and stay within their register limits. Needs nvcc, not a GPU."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "models/ops"
ARCHITECTURES = ("80", "90a")
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
# The options of target longshort_cuda_kernels.
OPTIONS = ["-std=c++17", "-O3", "--expt-relaxed-constexpr", "--Werror=all-warnings", "-Xptxas=-v", f"-I{ROOT}"]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NVCC is None, reason="there is no nvcc")]


def budget() -> dict[str, int | None]:
    """The maximum registers of each kernel; None: it may spill."""
    lines = [line.split("#")[0].strip() for line in (Path(__file__).parent / "registers.txt").read_text().splitlines()]
    listed = (line.rsplit(maxsplit=1) for line in lines if line)
    return {name.strip(): None if number == "spills" else int(number) for name, number in listed}


def compile_kernels(source: Path, architecture: str, folder: Path) -> str:
    """The assembler's report on a source. The compiler cache, if there is one, keeps it as well."""
    launcher = [ccache] if (ccache := shutil.which("ccache")) else []
    result = subprocess.run(
        [*launcher, NVCC, *OPTIONS, f"-gencode=arch=compute_{architecture},code=sm_{architecture}", "-c", source,
         "-o", folder / f"{source.stem}.o"],
        cwd=ROOT, env={**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    report = result.stdout + result.stderr
    return subprocess.run(["c++filt"], input=report, text=True, capture_output=True, check=True).stdout


def kernels_of(report: str) -> dict[str, tuple[int, int]]:
    """Registers and spilled bytes of each kernel."""
    kernels = {}
    for entry in report.split("Compiling entry function '")[1:]:
        # "void longshort::models::cuda::(anonymous namespace)::Norm<4>(longshort::models::cuda::NormRows)' for 'sm_80'"
        name = entry.split("'")[0].replace("(anonymous namespace)::", "").replace("longshort::models::cuda::", "")
        name = name.removeprefix("void ").split("(")[0]
        spills = sum(int(number) for number in re.findall(r"(\d+) bytes spill", entry))
        kernels[name] = int(re.search(r"Used (\d+) registers", entry)[1]), spills
    return kernels


def misfits(found: dict[str, tuple[int, int]], listed: dict[str, int | None]) -> list[str]:
    """Differences of these kernels' registers and spilled bytes from the list."""
    wrong = [f"{name} is in registers.txt and not among the kernels" for name in listed if name not in found]
    for name, (registers, spills) in sorted(found.items()):
        limit = listed.get(name, 0)
        if name not in listed:
            wrong.append(f"{name} is not in registers.txt: {registers} registers, {spills} bytes spilled")
        elif limit is not None and (registers > limit or spills > 0):
            wrong.append(f"{name}: {registers} registers, {spills} bytes spilled; at most {limit}, and none")
    return wrong


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_kernels_compile_and_fit_their_registers(architecture: str, tmp_path: Path) -> None:
    found = {}
    for source in sorted(KERNELS.rglob("*.cu")):
        found |= kernels_of(compile_kernels(source, architecture, tmp_path))
    wrong = misfits(found, budget())
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_tests_an_instruction_on_a_gpu_compiles(architecture: str, tmp_path: Path) -> None:
    assert kernels_of(compile_kernels(Path(__file__).parent / "instruction_kernels.cu", architecture, tmp_path))


def host_sources() -> list[str]:
    """The C++ that builds without CUDA leave out, in whole or in part."""
    pattern = r"LONGSHORT_CUDA_GPU|LONGSHORT_WITH_CUDA|#include .*cuda_(runtime|device|profiler)"
    command = ["git", "grep", "-lE", pattern, "--", "*.cc"]
    named = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted({*named, "models/families/cuda_backends.cc", "tests/models/families/cuda_backends_test.cc"})


@pytest.mark.parametrize("source", host_sources())
def test_the_host_side_compiles(source: str) -> None:
    headers = [Path(NVCC).resolve().parents[1] / "include"]
    for site in ROOT.glob(".venv/lib/python3*/site-packages"):
        headers += [site / "torch/include", site / "torch/include/torch/csrc/api/include"]
    subprocess.run(
        ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-DLONGSHORT_WITH_CUDA",
         "-DLONGSHORT_CUDA_GPU", f"-I{ROOT}",
         *(f"-isystem{folder}" for folder in headers), ROOT / source],
        check=True,
    )  # fmt: skip


def test_a_kernel_that_is_not_listed_or_does_not_fit_is_reported() -> None:
    listed = {"Fits": 32, "Large": 32, "Spilled": 32, "MaySpill": None, "Gone": 32}
    found = {"Fits": (32, 0), "Large": (33, 0), "Spilled": (32, 4), "MaySpill": (255, 8), "New": (8, 0)}
    assert [line.split(" ")[0].rstrip(":") for line in misfits(found, listed)] == ["Gone", "Large", "New", "Spilled"]


def test_a_spill_is_seen() -> None:
    report = (
        "ptxas info    : Compiling entry function 'void longshort::models::cuda::(anonymous namespace)::Norm<4>"
        "(longshort::models::cuda::NormRows)' for 'sm_80'\n"
        "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 0 barriers, 456 bytes cmem[0]\n"
        "ptxas info    : Compiling entry function 'longshort::models::cuda::(anonymous namespace)::Keep"
        "(longshort::models::cuda::KeepRows)' for 'sm_80'\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 32 registers, used 0 barriers\n"
    )
    assert kernels_of(report) == {"Norm<4>": (40, 16), "Keep": (32, 0)}
