#!/usr/bin/env python3
"""Measures simple models on the same split: a colour histogram with logistic regression, and the most common class.
Needs scikit-learn and Pillow (models/zoo/requirements.txt).
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

BINS = 8  # for each of red, green and blue: 512 colours


def colour_histogram(path: Path) -> np.ndarray:
    """The square roots of the relative frequencies of the colours."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    counts, _ = np.histogramdd(pixels, bins=BINS, range=[(0, 256)] * 3)
    return np.sqrt(counts.ravel() / len(pixels))


def read_images(folder: Path) -> tuple[np.ndarray, list[str]]:
    """Histograms [images, 512] and labels."""
    paths = sorted(folder.glob("*/*.jpg"))
    return np.stack([colour_histogram(path) for path in paths]), [path.parent.name for path in paths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that prepare.py wrote")
    given = parser.parse_args()

    train, train_labels = read_images(given.data / "train")
    images, labels = read_images(given.data / "held_out")
    commonest, _ = Counter(train_labels).most_common(1)[0]
    print(f"commonest class ({commonest}): {labels.count(commonest) / len(labels):.4f}")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
    model.fit(train, train_labels)
    print(f"colour histogram + logistic regression: {model.score(images, labels):.4f} of {len(labels)}")


if __name__ == "__main__":
    main()
