"""The CUDA sources compile for the supported chips, and the programs link. Needs nvcc, not a GPU."""

import subprocess
from pathlib import Path

import pytest
from gpu.bundle import build_with_cuda
from gpu.machine_code import NVCC, compiled, kernels_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NVCC is None, reason="there is no nvcc")]


@pytest.mark.parametrize("chip", ["80", "90a"])
def test_what_tests_an_instruction_on_a_gpu_compiles(chip: str, tmp_path: Path) -> None:
    assert kernels_of(compiled(Path(__file__).parent / "instruction_kernels.cu", chip, tmp_path / "kernels.o"))


@pytest.mark.timeout(1800)  # several CPU minutes, beside other tests
def test_the_programs_with_cuda_compile_and_link() -> None:
    """As for a bundle. C++ that other builds have, too, comes from the compiler cache."""
    build = build_with_cuda(libtorch=None)
    linked = subprocess.run(["readelf", "--dynamic", build / "bin/longshort-server"], check=True, capture_output=True)
    assert b"[libtorch_cuda.so]" in linked.stdout, "no function is taken from it, so a linker may leave it out"
    symbols = subprocess.run(["nm", build / "bin/longshort-server"], check=True, capture_output=True).stdout
    assert b" U cudaLaunchKernel" in symbols, "a CUDA runtime of its own would not know LibTorch's streams"
