"""Packs programs and their libraries for a machine with a GPU on which nothing can be built or installed.

The archive is unpacked over a checkout, which has the cases, texts and models.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from gpu.pieces import ROOT

PROGRAMS = (
    "language_model_on_gpu_test", "longshort", "longshort-bf16-difference", "longshort-golden",
    "longshort-golden-classifier", "longshort-gpu-bench", "longshort-load", "longshort-server",
)  # fmt: skip
CUDA_PROGRAMS = (*PROGRAMS, "cuda_kernels_on_gpu_test")
EMULATED_PROGRAMS = (*PROGRAMS, "cuda_kernels_test", "longshort-server-with-emulated-gpus")
# H100 and H200. Each further chip adds kernels to each program.
ARCHITECTURES = "90a-real"
# A checkout and the archive may travel together: 64 MiB. A bundle leaves room for changes of the checkout.
MAX_TRAVEL_BYTES = (64 << 20) - 4_000_000
# What the machine has: glibc and the compiler's libraries, PyTorch's and CUDA's.
_SYSTEM = re.compile(
    r"/(ld-linux|lib(anl|c|dl|m|mvec|pthread|resolv|rt|util|stdc\+\+|gcc_s)\.so)|/torch/lib/|/nvidia/|/cuda"
)


def make(out: Path, libtorch: Path | None, *, emulated: bool) -> int:
    """Builds, packs, and returns the archive's bytes. Errors: RuntimeError if it is too large.

    `libtorch`: the folder torch of another wheel than .venv's. `emulated`: packs the programs of build/release, for the
    rehearsal, instead of those with CUDA.
    """
    programs = EMULATED_PROGRAMS if emulated else CUDA_PROGRAMS
    if emulated:
        build = ROOT / "build/release"
        subprocess.run(["cmake", "--build", build, "--target", *programs], check=True)
    else:
        build = build_with_cuda(libtorch)
    with tempfile.TemporaryDirectory(prefix="longshort-gpu-") as scratch:
        folder = Path(scratch) / build.name
        for name in ("bin", "lib", "python"):
            (folder / name).mkdir(parents=True)
        for name in programs:
            program = shutil.copy(build / "bin" / name, folder / "bin" / name)
            subprocess.run(["strip", program], check=True)
            for library in libraries_of(build / "bin" / name):
                shutil.copy(library, folder / "lib" / library.name)
        if not emulated:
            (folder / "built-with.json").write_text(json.dumps(_built_with(build)))
        # tests/reference reads files by it; it works with any Python from 3.10.
        library = Path(importlib.util.find_spec("safetensors").origin).parent
        shutil.copytree(library, folder / "python/safetensors", ignore=shutil.ignore_patterns("__pycache__"))
        # The dictionary of 9 reaches from one program's kernels to the next one's. The rehearsal does not travel: the
        # fastest setting takes it a tenth of the time.
        with tarfile.open(out, "w:xz", preset=0 if emulated else 9) as bundle:
            bundle.add(folder, f"build/{build.name}")
    size = out.stat().st_size
    if not emulated:
        check_size(size, travelling_bytes(ROOT, out))
    return size


def build_with_cuda(libtorch: Path | None) -> Path:
    """Builds CUDA_PROGRAMS, and returns the build's folder. It needs nvcc, not a GPU. `libtorch`: as in make."""
    build = ROOT / "build/cuda"
    _configure(build, libtorch)
    subprocess.run(["cmake", "--build", build, "--target", *CUDA_PROGRAMS], check=True)
    return build


def check_size(bundle: int, checkout: int) -> None:
    """Errors: RuntimeError if they cannot travel together."""
    if bundle + checkout > MAX_TRAVEL_BYTES:
        raise RuntimeError(f"the bundle has {bundle} bytes, the checkout {checkout}; at most {MAX_TRAVEL_BYTES} travel")


def travelling_bytes(checkout: Path, bundle: Path) -> int:
    """The bytes of the checkout's files, tracked or not, without ignored ones and the bundle."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True).stdout
    paths = {checkout / name for name in listed.split("\0") if name} - {bundle.resolve()}
    return sum(path.lstat().st_size for path in paths if path.exists())


def libraries_of(program: Path) -> list[Path]:
    """The shared libraries that the machine may not have."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = [Path(match) for match in re.findall(r"=> (/\S+)", listed)]
    return [path for path in found if not _SYSTEM.search(str(path))]


def _configure(build: Path, libtorch: Path | None) -> None:
    # An rpath counts for the libraries of libraries, too. LD_LIBRARY_PATH would change what Python loads as well.
    options = ["-DLONGSHORT_CUDA=on", f"-DCMAKE_CUDA_ARCHITECTURES={ARCHITECTURES}",
               "-DCMAKE_CUDA_FLAGS=--compress-mode=size", "-DCMAKE_SKIP_BUILD_RPATH=ON",
               "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,'$ORIGIN/../lib'"]  # fmt: skip
    # Without one, CMake looks for .venv's again.
    options.append("-ULONGSHORT_TORCH_ROOT" if libtorch is None else f"-DLONGSHORT_TORCH_ROOT={libtorch.resolve()}")
    configure = ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)


def _built_with(build: Path) -> dict[str, str]:
    """The versions of LibTorch and CUDA's tools, as gpu.machine wants them."""
    cache = (build / "CMakeCache.txt").read_text()
    torch = Path(re.search(r"^LONGSHORT_TORCH_ROOT:PATH=(.+)$", cache, re.MULTILINE)[1])
    version = re.search(r"__version__ = '([^']+)'", (torch / "version.py").read_text())[1]
    nvcc = re.search(r"^LONGSHORT_NVCC:FILEPATH=(.+)$", cache, re.MULTILINE)[1]
    listed = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return {"torch": version, "cuda": re.search(r"release ([\d.]+)", listed)[1]}
