"""The CUDA sources compile for the supported chips. Needs nvcc, not a GPU."""

import subprocess
from pathlib import Path

import pytest
from gpu.machine_code import NVCC, compiled, kernels_of
from gpu.pieces import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NVCC is None, reason="there is no nvcc")]


@pytest.mark.parametrize("chip", ["80", "90a"])
def test_what_tests_an_instruction_on_a_gpu_compiles(chip: str, tmp_path: Path) -> None:
    assert kernels_of(compiled(Path(__file__).parent / "instruction_kernels.cu", chip, tmp_path / "kernels.o"))


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
