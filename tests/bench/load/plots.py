"""Draws reports of tests/bench/load/run and of longshort-load --json: a PNG per file, with a column for each run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ModuleNotFoundError as error:
    raise SystemExit(".venv/bin/pip install -r tests/bench/requirements.txt: matplotlib is not there") from error

INCHES = (4.6, 3.0)
MILLISECONDS = 1000.0


def curve(axes: Any, distribution: dict, label: str) -> None:
    """Share of samples at or below a time."""
    if distribution["count"] > 0:
        points = distribution["curve"]
        axes.plot([MILLISECONDS * seconds for _, seconds in points], [percent for percent, _ in points], label=label)


def draw_latency(axes: Any, run: dict) -> None:
    for workload in run["workloads"]:
        curve(axes, workload["first_token_seconds"], f"{workload['name']}: first token")
        curve(axes, workload["inter_token_seconds"], f"{workload['name']}: between messages")
        for code, distribution in workload["total_seconds"].items():
            curve(axes, distribution, f"{workload['name']}: {'end to end' if code == 'OK' else code}")
    axes.set(xscale="log", xlabel="milliseconds", ylabel="% of samples", ylim=(0, 100), title="latency")


def over_time(axes: Any, workload: dict, name: str, scale: float, label: str) -> None:
    timeline = workload["timeline"]
    values = timeline[name]
    points = [(i * timeline["slice_seconds"], scale * value) for i, value in enumerate(values) if value is not None]
    if any(value > 0 for _, value in points):
        marker = "." if len(points) < 3 else ""
        axes.plot(*zip(*points, strict=True), label=f"{workload['name']}: {label}", marker=marker)


def draw_percentiles(axes: Any, run: dict) -> None:
    for workload in run["workloads"]:
        for kind, what in (("total", "end to end"), ("first_token", "first token")):
            for percentile in ("p50", "p99"):
                over_time(axes, workload, f"{kind}_{percentile}", MILLISECONDS, f"{what} {percentile}")
    axes.set(xlabel="seconds", ylabel="milliseconds", yscale="log", title="percentiles over time")


def draw_rates(axes: Any, run: dict) -> None:
    for workload in run["workloads"]:
        slice_seconds = workload["timeline"]["slice_seconds"]
        for name, what in (("tokens", "tokens"), ("answered", "answers"), ("refused_or_failed", "refused or failed")):
            over_time(axes, workload, name, 1 / slice_seconds, what)
    axes.set(xlabel="seconds", ylabel="per second", title="throughput")
    axes.set_ylim(bottom=0)


def draw_memory(axes: Any, run: dict) -> None:
    samples = run["resident_bytes"]
    axes.plot([seconds for seconds, _ in samples], [size / 2**20 for _, size in samples], label="server")
    axes.set(xlabel="seconds", ylabel="MiB resident", title="memory")
    axes.set_ylim(bottom=0)


def draw(runs: list[dict], title: str, path: Path) -> None:
    rows: list[Callable[[Any, dict], None]] = [draw_latency, draw_percentiles, draw_rates]
    if any("resident_bytes" in run for run in runs):
        rows.append(draw_memory)
    size = (INCHES[0] * len(runs), INCHES[1] * len(rows))
    figure, grid = pyplot.subplots(len(rows), len(runs), figsize=size, squeeze=False, layout="constrained")
    for column, run in enumerate(runs):
        for row, draw_one in enumerate(rows):
            axes = grid[row][column]
            if draw_one is draw_memory and "resident_bytes" not in run:
                axes.set_axis_off()
                continue
            draw_one(axes, run)
            axes.grid(alpha=0.3)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(fontsize="x-small")
        grid[0][column].set_title(f"{run['title']}\nlatency" if run["title"] else "latency", fontsize="medium")
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/bench/load/plot", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder for the PNG files")
    parser.add_argument("--most", type=int, default=6, help="maximum number of columns, the last runs (%(default)s)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for file in options.files:
        report = json.loads(file.read_text())
        runs = report.get("runs", [report])[-options.most :]
        if not runs:
            print(f"{file}: no run to draw")
            continue
        path = options.out / f"{file.stem}.png"
        draw(runs, report.get("command", " ".join(report.get("arguments", []))), path)
        print(path)


if __name__ == "__main__":
    main()
