"""The table in Markdown, and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.cases import NETWORKS, RUNNERS, Case, kept_apart

HEADER = [
    "network",
    "batch",
    "threads",
    "rounds",
    *RUNNERS.values(),
    "OpenVINO / C++",
    "at the peak",
    "share of the peak",
]
MILLISECONDS = 1e3


def shown(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def counted(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def spread(seconds: list[float], batch: int) -> str:
    """The least and the quartiles, in milliseconds per item."""
    low, high = np.quantile(seconds, [0.25, 0.75])
    least, low, high = (shown(one / batch * MILLISECONDS) for one in (min(seconds), low, high))
    return f"{least} ({low} to {high})"


def rows(case: Case, found: dict[str, Any]) -> list[str]:
    """A line for the quiet rounds, and one for the busy ones."""
    return [row(case, found, name, part) for name, part in kept_apart(found).items()]


def row(case: Case, found: dict[str, Any], name: str, seconds: dict[str, list[float]]) -> str:
    """A case's line for these rounds. The line of the quiet ones has the server's time."""
    fastest = min(seconds, key=lambda runner: min(seconds[runner]))

    def cell(runner: str) -> str:
        if runner == "server":
            return shown(found["server"] / case.batch * MILLISECONDS) if name == "quiet" else ""
        if runner not in seconds:
            return "failed" if runner in found["errors"] else "-"
        text = spread(seconds[runner], case.batch)
        return f"**{text}**" if runner == fastest else text

    ratio = "-"
    if "openvino" in seconds:
        pairs = zip(seconds["openvino"], seconds["cpp"], strict=True)
        ratio = f"{np.median([openvino / cpp for openvino, cpp in pairs]):.2f}x"
    return line([
        NETWORKS[case.network], str(case.batch), str(case.threads), f"{len(seconds['cpp'])} {name}",
        *(cell(runner) for runner in RUNNERS), ratio,
        shown(found["at_peak"] / case.batch * MILLISECONDS), f"{found['at_peak'] / min(seconds['cpp']):.0%}",
    ])  # fmt: skip


def tables(machine: str, results: dict[Case, dict[str, Any]]) -> str:
    """One table for each precision: milliseconds per item."""
    parts = []
    for precision in dict.fromkeys(case.precision for case in results):
        chosen = {case: found for case, found in results.items() if case.precision == precision}
        rates = {
            threads: [found["peaks"][f"{precision}_flops"] for case, found in chosen.items() if case.threads == threads]
            for threads in sorted({case.threads for case in chosen})
        }
        peaks = "; ".join(
            f"{counted(threads)} {min(found) / 1e9:.0f} to {max(found) / 1e9:.0f} GFLOP/s"
            for threads, found in rates.items()
        )
        title = f"{machine}, {precision}, ms per item: the least of the rounds, and their quartiles."
        parts.append(f"{title} LibTorch's peak of {precision} products: {peaks}.")
        lines = [line(HEADER), "|" + "---|" * len(HEADER)]
        for case, found in chosen.items():
            lines += rows(case, found)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def least(found: dict[str, Any], runner: str) -> float:
    """The seconds of a runner's fastest batch; the server's mean; 0 if there are none."""
    return found["server"] if runner == "server" else min(found["rounds"].get(runner, [0]))


def draw(machine: str, results: dict[Case, dict[str, Any]], path: Path) -> None:
    """A panel for each network and precision: bars for each batch and number of threads, and lines at the peak."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    # Text stays text, and equal results give equal files.
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "peers", "font.size": 8}
    from matplotlib import pyplot  # noqa: PLC0415

    panels = list(dict.fromkeys((case.network, case.precision) for case in results))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5.6 * columns, 2.2 * rows + 0.6), layout="constrained", squeeze=False
    )
    width = 0.8 / len(RUNNERS)
    for panel, (network, precision) in zip(axes.flat, panels, strict=False):
        cases = [case for case in results if (case.network, case.precision) == (network, precision)]
        for number, (runner, name) in enumerate(RUNNERS.items()):
            bars = [least(results[case], runner) / case.batch * MILLISECONDS for case in cases]
            places = [place + (number + 0.5) * width - 0.4 for place in range(len(cases))]
            panel.bar(places, bars, width, label=name)
        peaks = [results[case]["at_peak"] / case.batch * MILLISECONDS for case in cases]
        panel.hlines(peaks, [x - 0.4 for x in range(len(cases))], [x + 0.4 for x in range(len(cases))],
                     colors="black", linestyles="dotted", label="at the peak of products")  # fmt: skip
        labels = [f"batch {case.batch},\n{counted(case.threads)}" for case in cases]
        panel.set_xticks(range(len(cases)), labels)
        panel.set_title(f"{NETWORKS[network]}, {precision}".replace("\\", ""))
        panel.set_ylabel("ms per item")
    for panel in axes.flat[len(panels) :]:
        panel.set_axis_off()
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(RUNNERS) + 1)
    figure.suptitle(machine)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
