"""Made-up images, and the simplest files that hold them."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from integration.classifier_directory import IMAGE_SIDE


def some_pixels(seed: int, height: int = IMAGE_SIDE, width: int = IMAGE_SIDE) -> NDArray[np.uint8]:
    """Noise [height, width, 3], by default as large as the model of `write_images` takes it."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of [height, width, 3]."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def raw(pixels: NDArray[np.uint8]) -> dict[str, object]:
    """Pixels [height, width, channels] as the contract's ImageTensor."""
    height, width, channels = pixels.shape
    return {"height": height, "width": width, "channels": channels, "uint8_values": pixels.tobytes()}
