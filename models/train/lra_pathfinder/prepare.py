#!/usr/bin/env python3
"""Draws images like those of Long Range Arena's Pathfinder: are the two discs joined by a dashed path?

Each image, 32 x 32 grey values, has two long paths of dashes that do not touch, and short ones that distract. Two discs
lie at the ends of one long path ("joined"), or at ends of both ("apart"). The images are not those of Long Range Arena,
whose program is not used here. Writes FOLDER/train and FOLDER/test, each with a folder for each class.
Needs numpy and Pillow (models/zoo/requirements.txt).
"""

import argparse
import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 32
FINE = 4  # each pixel is the mean of this many rows and columns
LONG, SHORT, DISTRACTORS = 14, 4, 3  # dashes of a path, and short paths
STEP, DASH, WIDTH = 2.1, 1.4, 0.45  # from dash to dash, a dash's length, and half its width, in pixels
TURN = 0.45  # largest change of direction between two dashes, in radians
MARGIN, APART = 2.0, 2.6  # from a dash's centre to the border, and to another path's, in pixels
DISC = 1.3  # radius

# A dash: its centre and its direction.
Dash = tuple[float, float, float]


def path(draw: random.Random, dashes: int, others: list[Dash]) -> list[Dash]:
    """A path away from the others; empty if it got stuck."""
    x, y = draw.uniform(MARGIN, SIDE - MARGIN), draw.uniform(MARGIN, SIDE - MARGIN)
    angle = draw.uniform(0, 2 * math.pi)
    placed: list[Dash] = []
    for _ in range(dashes):
        for _ in range(8):
            turned = angle + draw.uniform(-TURN, TURN)
            at = (x + STEP * math.cos(turned), y + STEP * math.sin(turned))
            is_inside = min(at) > MARGIN and max(at) < SIDE - MARGIN
            if is_inside and all(math.dist(at, one[:2]) >= APART for one in others + placed[:-1]):
                break
        else:
            return []
        x, y, angle = *at, turned
        placed.append((x, y, angle))
    return placed


def scene(draw: random.Random) -> list[list[Dash]]:
    """Two long paths, then short ones."""
    while True:
        paths: list[list[Dash]] = []
        for dashes in [LONG] * 2 + [SHORT] * DISTRACTORS:
            taken = [dash for one in paths for dash in one]
            tries = (path(draw, dashes, taken) for _ in range(20))
            paths.append(next(filter(None, tries), []))
            if not paths[-1]:
                break
        else:
            return paths


def around(x: float, y: float) -> tuple[slice, slice]:
    """The rows and columns that a mark at this place can touch."""
    return tuple(slice(int((one - MARGIN) * FINE), int((one + MARGIN) * FINE) + 1) for one in (y, x))


def picture(draw: random.Random, joined: bool) -> np.ndarray:
    """[SIDE, SIDE] uint8: white on black."""
    paths = scene(draw)
    first, second = paths[:2]
    ends = [first[0], first[-1]] if joined else [first[draw.choice((0, -1))], second[draw.choice((0, -1))]]
    places = (np.arange(SIDE * FINE) + 0.5) / FINE
    x, y = np.meshgrid(places, places)
    lit = np.zeros_like(x, dtype=bool)
    for cx, cy, angle in (dash for one in paths for dash in one):
        box = around(cx, cy)
        along = (x[box] - cx) * math.cos(angle) + (y[box] - cy) * math.sin(angle)
        across = (y[box] - cy) * math.cos(angle) - (x[box] - cx) * math.sin(angle)
        lit[box] |= (np.abs(along) < DASH / 2) & (np.abs(across) < WIDTH)
    for cx, cy, _ in ends:
        box = around(cx, cy)
        lit[box] |= np.hypot(x[box] - cx, y[box] - cy) < DISC
    means = lit.reshape(SIDE, FINE, SIDE, FINE).mean(axis=(1, 3))
    return np.round(means * 255).astype(np.uint8)


def pictures(count: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    for number in range(count):
        joined = number % 2 == 0
        yield "joined" if joined else "apart", picture(random.Random(f"{seed} {number}"), joined)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=180_000, help="images to train on and to validate with; 180,000")
    parser.add_argument("--test", type=int, default=20_000, help="images of the test; 20,000")
    given = parser.parse_args()
    for seed, (part, count) in enumerate({"test": given.test, "train": given.train}.items()):
        for label in ("apart", "joined"):
            (given.folder / part / label).mkdir(parents=True, exist_ok=True)
        for number, (label, pixels) in enumerate(pictures(count, seed)):
            Image.fromarray(pixels).save(given.folder / part / label / f"{number:06}.png")
    (given.folder / "drawn").touch()


if __name__ == "__main__":
    main()
