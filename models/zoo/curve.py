#!/usr/bin/env python3
"""Prints accuracies on the test of runs of a classifier's recipe, and draws their curves.

They are those of the last step, of the best evaluation on the validation part if there is one, and of the best
evaluation on the test. The figure of the last one is too high, because the test itself chose it. Needs only Python.
"""

import argparse
import math
import re
from pathlib import Path
from typing import NamedTuple

EVALUATION = re.compile(r"step (\d+): (held-out|validation) accuracy ([\d.]+) \(\d+ of \d+\).* loss ([\d.]+)")
WIDTH, HEIGHT, LEFT, BOTTOM = 700, 400, 60, 350
COLOURS = ("#1f6fb4", "#d1622b", "#2f8f4e", "#8a4fa3", "#7a6a58", "#b03a5b")


def read_curve(log: Path, part: str) -> dict[int, tuple[float, float]]:
    """Accuracy and negative loss by step. A step that a continued run computed again counts once."""
    found = EVALUATION.findall(log.read_text())
    return {int(step): (float(accuracy), -float(loss)) for step, name, accuracy, loss in found if name == part}


class Axes(NamedTuple):
    steps: int
    low: float  # accuracies
    high: float

    def place(self, step: float, accuracy: float) -> str:
        x = LEFT + step / self.steps * (WIDTH - LEFT - 20)
        return f"{x:.1f},{BOTTOM - (accuracy - self.low) / (self.high - self.low) * (BOTTOM - 20):.1f}"


def line(start: str, end: str, style: str) -> str:
    (x1, y1), (x2, y2) = start.split(","), end.split(",")
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>'


def text(x: float, y: float, content: str, style: str = "") -> str:
    return f'<text x="{x}" y="{y}" {style}>{content}</text>'


def drawing(curves: dict[str, dict[int, float]], axes: Axes, published: dict[str, float], examples: str) -> str:
    place = axes.place
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for tenths in range(math.ceil(axes.low * 10), math.floor(axes.high * 10) + 1):
        accuracy = tenths / 10
        parts.append(line(place(0, accuracy), place(axes.steps, accuracy), 'stroke="#ddd"'))
        y = float(place(0, accuracy).split(",")[1])
        parts.append(text(LEFT - 8, y + 4, f"{accuracy:.1f}", 'text-anchor="end"'))
    for step in range(0, axes.steps + 1, max(1, axes.steps // 5)):
        x = float(place(step, 0).split(",")[0])
        parts.append(text(x, BOTTOM + 18, f"{step:,}", 'text-anchor="middle"'))
    for name, accuracy in published.items():
        parts.append(line(place(0, accuracy), place(axes.steps, accuracy), 'stroke="#555" stroke-dasharray="6 4"'))
        y = float(place(0, accuracy).split(",")[1])
        parts.append(text(LEFT + 6, y - 6, f"paper, {name}: {accuracy}", 'fill="#555"'))
    for (name, curve), colour in zip(curves.items(), COLOURS * len(curves), strict=False):
        points = " ".join(place(step, curve[step]) for step in sorted(curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = map(float, place(max(curve), curve[max(curve)]).split(","))
        parts.append(text(min(x + 6, WIDTH - 150), y + 18, name, f'fill="{colour}"'))
    parts.append(text(WIDTH / 2, HEIGHT - 12, f"steps of 32 {examples}", 'text-anchor="middle"'))
    parts.append(text(LEFT, 14, f"accuracy on the test {examples}"))
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, nargs="+", help="logs of runs, W_R_seed_N.log")
    parser.add_argument("--picture", type=Path, help="SVG of the curves")
    parser.add_argument("--steps", type=int, default=5000, help="of a whole run")
    parser.add_argument("--range", type=float, nargs=2, default=(0, 0.45), help="of the accuracy (0 0.45)")
    parser.add_argument("--published", nargs="*", default=["8,32=0.375"], help="W,R=ACCURACY of the paper")
    parser.add_argument("--examples", default="expressions", help="what they are called")
    given = parser.parse_args()

    published = {}
    for one in given.published:
        form, _, accuracy = one.partition("=")
        published["w {}, r {}".format(*form.split(","))] = float(accuracy)
    curves = {}
    for log in given.logs:
        window, rank, _, seed = log.stem.split("_")
        name = f"w {window}, r {rank}, seed {seed}"
        test, validation = read_curve(log, "held-out"), read_curve(log, "validation")
        if not test:
            continue
        curves[name] = {step: accuracy for step, (accuracy, _) in test.items()}
        steps = {"last": max(test), "best on the test": max(test, key=lambda step: test[step])}
        if validation:
            steps["best by validation"] = max(validation, key=lambda step: validation[step])
        figures = [f"{which} {test[step][0]:.4f} at step {step}" for which, step in steps.items()]
        print(f"{name}: {'; '.join(figures)}")
    if given.picture and curves:
        axes = Axes(given.steps, *given.range)
        given.picture.write_text(drawing(curves, axes, published, given.examples))


if __name__ == "__main__":
    main()
