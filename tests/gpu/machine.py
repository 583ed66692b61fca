"""Checks that a bundle fits the machine: programs need the PyTorch of their build, and a driver for its CUDA."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What a bundle was built with; a build of this machine has none.
BUILT_WITH = ROOT / "build/cuda/built-with.json"


def release(version: str) -> str:
    """2.11 of 2.11.0+cu130: within it, libraries stay compatible."""
    return ".".join(version.split("+")[0].split(".")[:2])


def misfits(built_with: dict[str, str], torch_version: str, torch_cuda: str | None) -> list[str]:
    """What does not fit."""
    again = "build the bundle again: tests/gpu/run bundle --libtorch=FOLDER, with the folder torch of that wheel"
    wrong = []
    if release(torch_version) != release(built_with["torch"]):
        wrong.append(f"PyTorch is {torch_version}, and the programs were built with {built_with['torch']}; {again}")
    if (torch_cuda or "none").split(".")[0] != built_with["cuda"].split(".")[0]:
        wrong.append(f"PyTorch's CUDA is {torch_cuda}, and that of the programs {built_with['cuda']}; {again}")
    return wrong


def missing_packages() -> list[str]:
    """What the pieces need and this Python lacks."""
    sources = {
        "torch": "the programs load its libraries",
        "numpy": "the reference cases need it",
        "safetensors": "the bundle has it; unpack that first",
    }
    return [f"{sys.executable} has no {name}: {why}" for name, why in sources.items() if find_spec(name) is None]


def run(device: str) -> int:
    if missing := missing_packages():
        print(*(f"FAIL {what}" for what in missing), sep="\n")
        return 1
    if device.startswith("emulated:") or not BUILT_WITH.exists():
        print(f"{device}: a build of this machine")
        return 0
    import torch  # noqa: PLC0415

    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__} for CUDA {torch.version.cuda}")
    for command in (["nvidia-smi"], ["nvcc", "--version"], ["compute-sanitizer", "--version"]):
        try:
            subprocess.run(command, check=False)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}")
    wrong = misfits(json.loads(BUILT_WITH.read_text()), torch.__version__, torch.version.cuda)
    if not torch.cuda.is_available():
        wrong.append("PyTorch finds no GPU, or a driver that is too old for its CUDA")
    for what in wrong:
        print(f"FAIL {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True)
    sys.exit(run(parser.parse_args().device))
