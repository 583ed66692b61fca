"""Makes opencv_resized.safetensors: images, and what cv2.resize makes of them.

    PYTHONPATH=tests /usr/bin/python3 tests/models/images/make_opencv_files.py

needs Debian's python3-opencv: the wheel opencv-python-headless resizes by IPP, which rounds otherwise.
With --difference it writes nothing, and says the largest difference between the cv2 that runs it and the file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
from reference import safetensors_file

FILE = Path(__file__).resolve().parent / "opencv_resized.safetensors"
FILTERS = {
    "nearest": cv2.INTER_NEAREST,
    "linear": cv2.INTER_LINEAR,
    "area": cv2.INTER_AREA,
    "cubic": cv2.INTER_CUBIC,
}
# Height and width: smaller by whole and other factors, larger, and one of each.
SIZES = ((16, 24), (20, 33), (40, 60), (11, 70))


def images() -> dict[str, np.ndarray]:
    """32 x 48: noise on a wave, so that neither roundings nor overshoots are rare."""
    random = np.random.default_rng(7)
    y, x, channel = np.mgrid[0:32, 0:48, 0:3]
    wave = 128 + 100 * np.sin(x / 3 + channel) * np.cos(y / 5)
    colours = np.clip(wave + random.normal(0, 40, wave.shape), 0, 255).astype(np.uint8)
    return {
        "colours": colours,
        "grey": colours[..., :1].copy(),
        "floats": (colours[..., 1:2] / 255).astype(np.float32),
    }


def resized(image: np.ndarray, interpolation: int, height: int, width: int) -> np.ndarray:
    result = cv2.resize(image, (width, height), interpolation=interpolation)
    result = result.reshape(height, width, image.shape[2])
    # The server keeps floats in what a pixel can be.
    return result.clip(0, 1) if result.dtype == np.float32 else result


def main() -> None:
    tensors: dict[str, np.ndarray] = dict(images())
    for name, image in images().items():
        for filter_name, interpolation in FILTERS.items():
            for height, width in SIZES:
                tensors[f"{name} {filter_name} {height}x{width}"] = resized(image, interpolation, height, width)
    if "--difference" not in sys.argv:
        safetensors_file.write(FILE, tensors)
        return
    stored = safetensors_file.read(FILE)
    largest: dict[str, float] = {}
    for name, tensor in tensors.items():
        if " " in name:
            kind = " ".join(name.split()[:2])
            difference = float(np.abs(tensor.astype(np.float64) - stored[name]).max())
            largest[kind] = max(largest.get(kind, 0.0), difference)
    print(cv2.__version__, largest)


if __name__ == "__main__":
    main()
