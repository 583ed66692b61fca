"""tests/gpu/run, rehearsed on the emulated device."""

import os
import subprocess
from pathlib import Path

import pytest

from gpu.bundle import libraries_of
from gpu.pieces import ROOT

BUILD = Path(os.environ.get("LONGSHORT_BUILD") or ROOT / "build/release")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "tests/gpu/run", *arguments], capture_output=True, text=True, check=False)


def test_pieces_are_rehearsed_on_the_emulated_device() -> None:
    done = run("check", "instructions", "device", "memcheck", "--device=emulated:0")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok  ", "FAIL", "----", "gpu:"))]
    assert [line.split(":")[0] for line in lines] == ["ok   instructions", "ok   device", "---- memcheck", "gpu"]
    assert lines[-1] == "gpu: 2 of 3 pieces hold on emulated:0, 1 left out"


def test_a_piece_that_fails_is_told() -> None:
    # Nothing is built for CUDA here, or there is no GPU.
    done = run("check", "device", "kernels", "--device=cuda:0")
    if done.returncode == 0:
        pytest.skip("there is a GPU")
    assert "FAIL kernels: " in done.stdout
    assert "pieces hold on cuda:0" in done.stdout


def test_an_unknown_piece_is_refused() -> None:
    done = run("check", "everything", "--device=emulated:0")
    assert done.returncode == 2
    assert "no piece everything" in done.stderr


def test_a_bundle_takes_abseil_along_but_not_the_system() -> None:
    names = [path.name for path in libraries_of(BUILD / "bin/cuda_kernels_test")]
    assert any(name.startswith("libabsl_status.so") for name in names)
    assert not any(name.startswith(("libc.so", "libstdc++.so", "libm.so")) for name in names)
