"""The preprocessing of images in the official evaluation."""

from __future__ import annotations

from typing import Any


def default_preprocessing(image_size: int) -> dict[str, Any]:
    """Resizes the shorter side to image_size / 0.875, crops the centre, and normalises with ImageNet's statistics."""
    return {
        "resize_shorter_side": int(image_size / 0.875),
        "crop_height": image_size,
        "crop_width": image_size,
        "mean": [0.485, 0.456, 0.406],
        "standard_deviation": [0.229, 0.224, 0.225],
    }
