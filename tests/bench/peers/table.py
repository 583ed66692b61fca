"""The table in Markdown, and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.cases import NETWORKS, RUNNERS, Case

HEADER = ["network", "batch", "threads", *RUNNERS.values(), "OpenVINO / C++", "at the peak", "share of the peak"]
MILLISECONDS = 1e3


def shown(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def counted(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def row(case: Case, found: dict[str, Any]) -> str:
    seconds = found["seconds"]
    times = {runner: value for runner, value in seconds.items() if not isinstance(value, str)}
    fastest = min(times, key=lambda runner: times[runner])

    def cell(runner: str) -> str:
        if runner not in times:
            return "failed" if runner in seconds else "-"
        text = shown(times[runner] / case.batch * MILLISECONDS)
        return f"**{text}**" if runner == fastest else text

    ratio = f"{times['openvino'] / times['cpp']:.2f}x" if "openvino" in times else "-"
    return line([
        NETWORKS[case.network], str(case.batch), str(case.threads), *(cell(runner) for runner in RUNNERS), ratio,
        shown(found["at_peak"] / case.batch * MILLISECONDS), f"{found['at_peak'] / times['cpp']:.0%}",
    ])  # fmt: skip


def tables(machine: str, results: dict[Case, dict[str, Any]]) -> str:
    """One table for each precision: milliseconds per item."""
    parts = []
    for precision in dict.fromkeys(case.precision for case in results):
        rows = {case: found for case, found in results.items() if case.precision == precision}
        rates = {
            threads: [found["peaks"][f"{precision}_flops"] for case, found in rows.items() if case.threads == threads]
            for threads in sorted({case.threads for case in rows})
        }
        peaks = "; ".join(
            f"{counted(threads)} {min(found) / 1e9:.0f} to {max(found) / 1e9:.0f} GFLOP/s"
            for threads, found in rates.items()
        )
        parts.append(f"{machine}, {precision}, ms per item. LibTorch's peak of {precision} products: {peaks}.")
        lines = [line(HEADER), "|" + "---|" * len(HEADER), *(row(case, found) for case, found in rows.items())]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


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
            times = [results[case]["seconds"].get(runner) for case in cases]
            bars = [
                time / case.batch * MILLISECONDS if isinstance(time, float) else 0
                for case, time in zip(cases, times, strict=True)
            ]
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
