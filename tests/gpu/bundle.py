"""Packs programs, their libraries and cases for a machine with a GPU on which nothing can be built or installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import safetensors

from gpu.pieces import ROOT

BUILD = ROOT / "build/cuda"
PROGRAMS = (
    "cuda_kernels_on_gpu_test", "language_model_on_gpu_test", "longshort", "longshort-bf16-difference",
    "longshort-golden", "longshort-golden-classifier", "longshort-gpu-bench", "longshort-load", "longshort-server",
)  # fmt: skip
# Cases, texts and models; Python's part.
FILES = (
    "deploy/paragraph.txt", "deploy/photo.jpg", "deploy/review.txt", "docs", "models/convert/src", "models/zoo",
    "tests/bench", "tests/golden", "tests/gpu", "tests/reference",
)  # fmt: skip
MOST_BYTES = 64 << 20
# What the machine has: the system's own, PyTorch's and CUDA's.
_SYSTEM = re.compile(r"/(ld-linux|lib(c|m|dl|rt|util|pthread|stdc\+\+|gcc_s)\.so)|/torch/lib/|/nvidia/|/cuda")


def make(out: Path, libtorch: Path | None) -> int:
    """Builds with CUDA, packs, and returns the bundle's bytes. Errors: RuntimeError if it is too large.

    `libtorch`: the folder torch of another wheel than .venv's.
    """
    # An rpath counts for the libraries of libraries, too. LD_LIBRARY_PATH would change what Python loads as well.
    options = ["-DLONGSHORT_CUDA=on", "-DCMAKE_CUDA_FLAGS=--compress-mode=size", "-DCMAKE_SKIP_BUILD_RPATH=ON",
               "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,'$ORIGIN/../../../lib'"]  # fmt: skip
    if libtorch is not None:
        options.append(f"-DLONGSHORT_TORCH_ROOT={libtorch.resolve()}")
    configure = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "--target", *PROGRAMS], check=True)
    with tempfile.TemporaryDirectory(prefix="longshort-gpu-") as scratch:
        folder = Path(scratch) / "longshort-gpu"
        for name in PROGRAMS:
            program = folder / "build/cuda/bin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(BUILD / "bin" / name, program)
            subprocess.run(["strip", program], check=True)
            for library in libraries_of(BUILD / "bin" / name):
                (folder / "lib").mkdir(exist_ok=True)
                shutil.copy(library, folder / "lib" / library.name)
        (folder / "built-with.json").write_text(json.dumps(built_with()))
        listed = subprocess.run(
            ["git", "ls-files", *FILES], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split()
        for name in listed:
            to = folder / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to)
        # Beside tests/reference, which reads files by it: it works with any Python from 3.10.
        library = Path(safetensors.__file__).parent
        shutil.copytree(library, folder / "tests/safetensors", ignore=shutil.ignore_patterns("__pycache__"))
        with tarfile.open(out, "w:gz") as bundle:
            bundle.add(folder, "longshort-gpu")
    size = out.stat().st_size
    if size > MOST_BYTES:
        raise RuntimeError(f"{out} has {size} bytes; at most {MOST_BYTES} may travel")
    return size


def built_with() -> dict[str, str]:
    """The versions of LibTorch and CUDA's tools, as gpu.machine wants them."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    torch = Path(re.search(r"^LONGSHORT_TORCH_ROOT:PATH=(.+)$", cache, re.MULTILINE)[1])
    version = re.search(r"__version__ = '([^']+)'", (torch / "version.py").read_text())[1]
    nvcc = re.search(r"^LONGSHORT_NVCC:FILEPATH=(.+)$", cache, re.MULTILINE)[1]
    listed = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return {"torch": version, "cuda": re.search(r"release ([\d.]+)", listed)[1]}


def libraries_of(program: Path) -> list[Path]:
    """The shared libraries that the machine may not have."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = [Path(match) for match in re.findall(r"=> (/\S+)", listed)]
    return [path for path in found if not _SYSTEM.search(str(path))]
