"""Files of safetensors as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file


def read(path: Path) -> dict[str, NDArray]:
    """All tensors of the file by name."""
    return load_file(path)


def write(path: Path, tensors: Mapping[str, NDArray]) -> None:
    """The library orders the tensors by the width of their elements, then by name."""
    save_file({name: np.require(tensor, requirements="C") for name, tensor in tensors.items()}, path)
    path.chmod(0o644)  # the library lets the owner alone read it; some tests' servers run as another user
