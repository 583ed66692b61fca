"""Draws time and memory by the length of a text, as the paper's Figure 3, from the bench-lengths.json of a run."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ModuleNotFoundError as error:
    raise SystemExit(".venv/bin/pip install -r tests/bench/requirements.txt: matplotlib is not there") from error

SERIES = {
    "longshort": "Longshort, M = n",
    "eager": "Transformer-LS, M = n, eager PyTorch",
    "full_attention_fused": "full attention, PyTorch's fused",
    "full_attention_written_out": "full attention, written out",
}
MILLISECONDS, MEBIBYTE = 1e3, 1 << 20


def seconds(found: dict[str, Any]) -> float | None:
    """Seconds for the whole text; None if it was not run, for example because memory was exhausted."""
    if "step_seconds" in found:
        return sum(found["step_seconds"])
    return statistics.fmean(found["seconds"]) if "seconds" in found else None


def points(rows: list[dict[str, Any]], series: str, what: str) -> list[tuple[int, float]]:
    pairs = []
    for row in rows:
        found = row["numbers"].get(series, {})
        value = seconds(found) if what == "seconds" else found.get("used_memory")
        if value:
            pairs.append((row["numbers"]["tokens"], value))
    return pairs


def draw(rows: list[dict[str, Any]], title: str, path: Path) -> None:
    figure, panels = pyplot.subplots(1, 2, figsize=(9.2, 3.4), layout="constrained")
    for axes, what, scale, label in (
        (panels[0], "seconds", MILLISECONDS, "milliseconds"),
        (panels[1], "used_memory", 1 / MEBIBYTE, "MiB of the GPU's memory"),
    ):
        for series, name in SERIES.items():
            if found := points(rows, series, what):
                axes.plot([n for n, _ in found], [value * scale for _, value in found], marker=".", label=name)
        axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel=label)
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.plot", description=__doc__)
    parser.add_argument("numbers", type=Path, metavar="bench-lengths.json")
    parser.add_argument("picture", type=Path, metavar="FILE", help=".svg or .png")
    arguments = parser.parse_args()
    run = json.loads(arguments.numbers.read_text())
    draw(run["rows"], run["chip"] or run["device"], arguments.picture)
