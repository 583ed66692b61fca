"""The pieces of what is checked on a GPU. Each is a command that takes less than ten minutes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    """Where programs are, and the device that they run on."""

    programs: Path
    device: str

    @property
    def is_emulated(self) -> bool:
        return self.device.startswith("emulated:")

    @property
    def kernel_tests(self) -> Path:
        return self.programs / ("cuda_kernels_test" if self.is_emulated else "cuda_kernels_on_gpu_test")


# A command, or why the piece cannot be done here.
Command = list[str | Path] | str


def instructions(place: Place) -> Command:
    return [place.kernel_tests, "--gtest_filter=Instructions.*"]


def kernels(place: Place) -> Command:
    return [place.kernel_tests, "--gtest_filter=-Instructions.*:TestedDevice.*"]


def device(place: Place) -> Command:
    """Memory, copies, graphs."""
    return [place.kernel_tests, "--gtest_filter=TestedDevice.*"]


def memcheck(place: Place) -> Command:
    return _sanitized(place, "memcheck")


def racecheck(place: Place) -> Command:
    return _sanitized(place, "racecheck")


def goldens(place: Place) -> Command:
    """The reference cases of the language model."""
    return [sys.executable, "-m", "golden", ROOT / "tests/golden/language_model", "--device", place.device]


def _sanitized(place: Place, tool: str) -> Command:
    if place.is_emulated:
        return "the address and thread sanitizers see the emulator (tests/run --only asan,tsan)"
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        return "compute-sanitizer is not there"
    # A few cases: it is some hundred times slower.
    return [sanitizer, "--tool", tool, "--error-exitcode", "1", place.kernel_tests,
            "--gtest_filter=Instructions.*:*InEveryOrder*:*EmbedsTokens:*AppendsKeys*"]  # fmt: skip


PIECES: dict[str, Callable[[Place], Command]] = {
    "instructions": instructions,
    "kernels": kernels,
    "device": device,
    "memcheck": memcheck,
    "racecheck": racecheck,
    "goldens": goldens,
}


def environment(place: Place) -> dict[str, str]:
    """Libraries of a bundle, and those of the Python that has PyTorch."""
    folders = [str(folder) for folder in (ROOT / "lib",) if folder.is_dir()]
    if not (ROOT / ".venv").is_dir():
        import torch  # noqa: PLC0415

        site = Path(torch.__file__).parents[1]
        folders += [str(site / "torch/lib"), *(str(path) for path in sorted(site.glob("nvidia/*/lib")))]
    known = os.environ.get("LD_LIBRARY_PATH")
    paths = ":".join([*folders, *([known] if known else [])])
    more = {"LD_LIBRARY_PATH": paths} if paths else {}
    return {**os.environ, "LONGSHORT_BUILD": str(place.programs.parent), **more}
