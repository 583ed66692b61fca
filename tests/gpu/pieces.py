"""The pieces of the checks on a GPU, each a command."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    """Where programs are, the device that they run on, and the folder of results."""

    programs: Path
    device: str
    out: Path
    compiles: bool = True
    """Whether benchmarks also measure torch.compile, which takes minutes."""

    @property
    def is_emulated(self) -> bool:
        return self.device.startswith("emulated:")

    @property
    def kernel_tests(self) -> Path:
        return self.programs / ("cuda_kernels_test" if self.is_emulated else "cuda_kernels_on_gpu_test")

    @property
    def model_tests(self) -> list[str | Path]:
        # On the emulated GPU some tests take a minute. They are disabled elsewhere.
        return [self.programs / "language_model_on_gpu_test", "--gtest_also_run_disabled_tests"]


# The cases for compute-sanitizer. They are few, because it is some hundred times slower.
SANITIZED = ("Instructions.*", "*InEveryOrder*", "*EmbedsTokens", "*AppendsKeys*")

# A command, or why the piece cannot be done here.
Command = list[str | Path] | str


def machine(place: Place) -> Command:
    """The bundle's programs fit the machine's PyTorch and driver."""
    return [sys.executable, "-m", "gpu.machine", "--device", place.device]


def instructions(place: Place) -> Command:
    """Each function of device.h does on the chip what the emulator does."""
    return [place.kernel_tests, "--gtest_filter=Instructions.*"]


def kernels(place: Place) -> Command:
    """The kernels' own tests."""
    return [place.kernel_tests, "--gtest_filter=-Instructions.*:TestedDevice.*"]


def device(place: Place) -> Command:
    """Memory, copies, graphs of the device."""
    return [place.kernel_tests, "--gtest_filter=TestedDevice.*"]


def memcheck(place: Place) -> Command:
    """A few kernels under compute-sanitizer's memcheck."""
    return _sanitized(place, "memcheck")


def racecheck(place: Place) -> Command:
    """The same under its racecheck."""
    return _sanitized(place, "racecheck")


def models(place: Place) -> Command:
    """The served language model's own tests."""
    return [*place.model_tests, "--gtest_filter=-*RepeatedSteps*:*Graph*"]


def graphs(place: Place) -> Command:
    """Steps that come again, as graphs, have the bits of those that do not."""
    return [*place.model_tests, "--gtest_filter=*RepeatedSteps*:*Graph*"]


def goldens(place: Place) -> Command:
    """The reference cases of all families."""
    return [sys.executable, "-m", "golden", "--device", place.device]


def bf16(place: Place) -> Command:
    """What bfloat16 changes, held to its bounds."""
    return [sys.executable, "-m", "gpu.bf16", *_where(place)]


def server(place: Place) -> Command:
    """A server on the device answers every kind of call as one on the CPU does."""
    return [sys.executable, "-m", "gpu.served", *_where(place)]


def bench_streams(place: Place) -> Command:
    """Times of the language model, and its targets."""
    return _bench(place, "streams")


def bench_served(place: Place) -> Command:
    """The same through a server."""
    return _bench(place, "served")


def bench_lengths(place: Place) -> Command:
    """Time and memory by the length of the text: the paper's Figure 3."""
    return _bench(place, "lengths")


def bench_images(place: Place) -> Command:
    """Times of the image classifiers, and their targets."""
    return _bench(place, "images")


def bench_texts(place: Place) -> Command:
    """Times of the text classifiers, and their targets."""
    return _bench(place, "texts")


def kernel_times(place: Place) -> Command:
    """The time of each kernel in steps of the language model."""
    if place.is_emulated:
        return "an emulated GPU has no times"
    ncu = _cuda_tool("ncu")
    if ncu is None:
        return "ncu is neither on PATH nor in /usr/local/cuda*/bin"
    return [sys.executable, "-m", "gpu.kernel_times", *_where(place), "--ncu", ncu]


def _where(place: Place) -> list[str | Path]:
    return ["--device", place.device, "--programs", place.programs]


def _bench(place: Place, group: str) -> Command:
    more = [] if place.compiles else ["--no-compile"]
    return [sys.executable, "-m", "bench.gpu", group, *_where(place), "--out", place.out, *more]


def _sanitized(place: Place, tool: str) -> Command:
    if place.is_emulated:
        return "the address and thread sanitizers see the emulator (tests/run --only asan,tsan)"
    sanitizer = _cuda_tool("compute-sanitizer")
    if sanitizer is None:
        return "compute-sanitizer is neither on PATH nor in /usr/local/cuda*/bin"
    return [sanitizer, "--tool", tool, "--error-exitcode", "1", place.kernel_tests,
            f"--gtest_filter={':'.join(SANITIZED)}"]  # fmt: skip


def _cuda_tool(name: str) -> str | None:
    cuda = os.pathsep.join(map(str, sorted(Path("/usr/local").glob("cuda*/bin"))))
    return shutil.which(name) or shutil.which(name, path=cuda)


def _by_name(*pieces: Callable[[Place], Command]) -> dict[str, Callable[[Place], Command]]:
    return {piece.__name__.replace("_", "-"): piece for piece in pieces}


# What a check without names runs: minutes. The sanitizers, which are slow, come last.
CORRECTNESS = _by_name(
    machine, instructions, kernels, device, models, graphs, goldens, bf16, server, memcheck, racecheck
)
PIECES = CORRECTNESS | _by_name(kernel_times, bench_streams, bench_served, bench_lengths, bench_images, bench_texts)

# The seconds and the pieces of each call on a machine that is lent for 15 minutes. The first call gives first numbers.
DAYS = {
    1: (300, ("machine", "instructions", "device", "kernels", "bench-streams")),
    2: (330, ("graphs", "models", "server", "bf16", "kernel-times")),
    3: (570, ("goldens", "memcheck", "racecheck")),
}


def environment(place: Place) -> dict[str, str]:
    """A bundle's programs find their own libraries, and here LibTorch's, and those that it needs."""
    sites = sorted(ROOT.glob(".venv/lib/python3*/site-packages"))
    if not sites and (torch := importlib.util.find_spec("torch")):  # without it, the piece `machine` says so
        sites = [Path(torch.origin).parents[1]]
    folders = [path for site in sites for path in (site / "torch/lib", *sorted(site.glob("nvidia/*/lib")))]
    known = os.environ.get("LD_LIBRARY_PATH")
    paths = ":".join([*map(str, folders), *([known] if known else [])])
    return {**os.environ, "LONGSHORT_BUILD": str(place.programs.parent), "LD_LIBRARY_PATH": paths}
