"""Draws a dashboard as Grafana would lay it out, from a Prometheus' answers."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import dates, pyplot, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from PIL import Image

from dashboards.panels import Panel, queries

matplotlib.use("Agg")
matplotlib.rcParams.update({"font.family": "DejaVu Sans", "font.size": 7.5, "axes.edgecolor": "#c7ccd4"})

# Pixels of the grid's unit, and between panels.
COLUMN, LINE, GAP = 56, 29, 7
DPI = 100
INK, FAINT, PAPER, TABLE_LINE = "#24292e", "#6e7681", "#f4f5f7", "#e3e6ea"
LINES = ("#3274d9", "#e0752d", "#37872d", "#a352cc", "#e02f44", "#1f9aa8", "#c4a000", "#8e5b3a", "#7b8794", "#d683ce")
COLORS_KEPT = 56
COLORS = {"green": "#37872d", "orange": "#e0752d", "red": "#e02f44"}

# What answers a panel's query over the time of the picture: lines, each with its labels and (seconds, value) pairs.
Ask = Callable[[dict[str, Any]], list[dict[str, Any]]]


def amount(value: float, unit: str) -> str:
    """A value as Grafana writes it, about."""
    if not math.isfinite(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s":
        for size, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if abs(value) >= size:
                return f"{value / size:.3g} {name}"
        return "0 s" if value == 0 else f"{value * 1e6:.2g} µs"
    if unit == "bytes":
        for size, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
            if abs(value) >= size:
                return f"{value / size:.3g} {name}"
        return f"{value:.3g} B"
    ending = {"none": "", "reqps": " req/s", "ops": " /s", "cps": " /s"}.get(unit, f" {unit.split(':')[-1].strip()}")
    for size, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            prefix = name if ending else name.strip()
            return f"{value / size:.3g}{prefix}{ending.strip()}"
    return f"{value:.3g}{ending}"


def _reduce(picture: Image.Image) -> Image.Image:
    """The picture in the colours that it has most of, so that lines and surfaces keep theirs; what smooths edges does
    not."""
    counted = sorted(picture.getcolors(1 << 24), reverse=True)[:COLORS_KEPT]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, color in counted for part in color])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


class _Locator(ticker.MaxNLocator):
    """Marks an axis at round amounts of its unit, such as whole MiB of bytes or whole minutes, hours, days of time."""

    def __init__(self, unit: str) -> None:
        super().__init__(5)
        self._unit = unit

    def tick_values(self, vmin: float, vmax: float) -> Any:
        sizes = {"bytes": [2**30, 2**20, 2**10], "s": [86400, 3600, 60]}.get(self._unit, [])
        size = next((size for size in sizes if vmax > 2 * size), 1)
        self.set_params(integer=size > 1)
        return super().tick_values(vmin / size, vmax / size) * size


class Board:
    """One picture."""

    def __init__(self, ask: Ask, begin: float, end: float, step: float) -> None:
        """`ask` answers for the time from `begin` to `end` (unix time), at each `step` (seconds)."""
        self._ask = ask
        self._begin, self._end = (datetime.fromtimestamp(at, UTC) for at in (begin, end))
        self._step = step

    def draw(self, dashboard: dict[str, Any], path: Path) -> None:
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "text"]
        self._bottom = max(panel["gridPos"].get("y", 0) + panel["gridPos"]["h"] for panel in panels)
        top = 1.3  # of the title
        self._width, self._height = 24 * COLUMN + GAP, (self._bottom + top) * LINE + GAP
        figure = pyplot.figure(figsize=(self._width / DPI, self._height / DPI), dpi=DPI, facecolor=PAPER)
        title = dashboard["title"].replace(" / ", "  /  ")
        figure.text(
            GAP / self._width, 1 - 0.75 * LINE / self._height, title, size=13, weight="bold", color=INK, va="center"
        )
        for panel in panels:
            self._draw_panel(figure, panel, top)
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=DPI, facecolor=PAPER)
        pyplot.close(figure)
        _reduce(Image.open(buffer).convert("RGB")).save(path, optimize=True)

    def _draw_panel(self, figure: Figure, panel: Panel, top: float) -> None:
        place = panel["gridPos"]
        left = place.get("x", 0) * COLUMN + GAP
        above = (place.get("y", 0) + top) * LINE + GAP / 2
        width, height = place["w"] * COLUMN - GAP, place["h"] * LINE - GAP
        if panel["type"] == "row":
            y = 1 - (above + height / 2) / self._height
            figure.text(left / self._width, y, panel["title"], size=10, weight="bold", color=INK, va="center")
            return
        card = figure.add_axes(self._box(left, above, width, height))
        card.set_axis_off()
        card.set(xlim=(0, width), ylim=(height, 0))
        style = f"round,pad=0,rounding_size={3}"
        card.add_patch(FancyBboxPatch((0, 0), width, height, boxstyle=style, facecolor="white", edgecolor="#d8dce2"))
        card.text(8, 13, panel["title"], size=8.5, weight="bold", color=INK, va="center")
        kinds = {
            "timeseries": self._lines,
            "stat": self._number,
            "heatmap": self._buckets,
            "state-timeline": self._states,
            "table": self._table,
        }
        kinds[panel["type"]](figure, card, panel, (left, above, width, height))

    def _box(self, left: float, above: float, width: float, height: float) -> tuple[float, float, float, float]:
        """Pixels from the top left corner as matplotlib has it."""
        return (
            left / self._width,
            1 - (above + height) / self._height,
            width / self._width,
            height / self._height,
        )

    def _series(self, panel: Panel) -> list[tuple[str, list[datetime], list[float], dict[str, str]]]:
        """Name, times, values and labels of each line, in the order of their names."""
        found = []
        for query in queries(panel):
            for line in self._ask(query):
                labels = line["metric"]
                name = re.sub(r"\{\{(\w+)\}\}", lambda found, of=labels: of.get(found[1], ""), query["legendFormat"])
                times = [datetime.fromtimestamp(at, UTC) for at, _ in line["values"]]
                values = [float(value) for _, value in line["values"]]
                found.append((name.strip() or "no model", times, values, labels))
        return found if len(list(queries(panel))) > 1 else sorted(found, key=lambda line: line[0])

    def _axes(self, figure: Figure, box: tuple[float, ...], bottom: float) -> Axes:
        left, above, width, height = box
        axes = figure.add_axes(self._box(left + 58, above + 26, width - 70, height - 26 - bottom))
        axes.set_facecolor("white")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=0, colors=FAINT, labelsize=7)
        axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))
        axes.xaxis.set_major_locator(dates.MinuteLocator())
        axes.set_xlim(self._begin, self._end)
        return axes

    def _lines(self, figure: Figure, card: Axes, panel: Panel, box: tuple[float, ...]) -> None:
        axes = self._axes(figure, box, 44)
        defaults = panel["fieldConfig"]["defaults"]
        custom, unit = defaults["custom"], defaults["unit"]
        lines = self._series(panel)
        log = custom.get("scaleDistribution", {}).get("type") == "log"
        colors = [LINES[index % len(LINES)] for index in range(len(lines))]
        if custom.get("stacking", {}).get("mode") == "normal" and lines:
            self._stack(axes, lines, colors)
        else:
            for (_, times, values, _), color in zip(lines, colors, strict=True):
                axes.plot(times, [value if value > 0 or not log else math.nan for value in values], color=color, lw=1.1)
                if not log and len(lines) == 1:
                    axes.fill_between(times, values, color=color, alpha=0.08, lw=0)
        self._scale(axes, defaults, log)
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: amount(value, unit)))
        axes.grid(axis="y", color=TABLE_LINE, lw=0.6)
        axes.set_axisbelow(True)
        self._legend(card, [(name, color) for (name, *_), color in zip(lines, colors, strict=True)], box)

    @staticmethod
    def _stack(axes: Axes, lines: list[Any], colors: list[str]) -> None:
        moments = sorted({moment for _, times, _, _ in lines for moment in times})
        below = [0.0] * len(moments)
        for (_, times, values, _), color in zip(lines, colors, strict=True):
            value_at = dict(zip(times, values, strict=True))
            steps = [value if math.isfinite(value := value_at.get(moment, 0.0)) else 0.0 for moment in moments]
            above = [low + step for low, step in zip(below, steps, strict=True)]
            axes.fill_between(moments, below, above, color=color, alpha=0.55, lw=0)
            axes.plot(moments, above, color=color, lw=0.8)
            below = above

    @staticmethod
    def _scale(axes: Axes, defaults: dict[str, Any], log: bool) -> None:
        limits = [step["value"] for step in defaults["thresholds"]["steps"] if step.get("value") is not None]
        if log:
            axes.set_yscale("log")
            axes.yaxis.set_minor_locator(ticker.NullLocator())
        else:
            high = defaults.get("max", 1.06 * axes.dataLim.y1)
            # A limit is shown where it is near.
            if limits and high < limits[-1] <= 4 * high:
                high = 1.1 * limits[-1]
            if axes.dataLim.y1 <= 0 and "max" not in defaults:
                high = 1.25 * limits[-1] if limits else 1
            axes.set_ylim(0, high)
            axes.yaxis.set_major_locator(_Locator(defaults["unit"]))
        if "thresholdsStyle" in defaults["custom"] and limits:
            axes.axhline(limits[-1], color=COLORS["red"], lw=1, ls=(0, (4, 3)))

    @staticmethod
    def _legend(card: Axes, entries: list[tuple[str, str]], box: tuple[float, ...]) -> None:
        """Names below the plot, in two lines at the most."""
        width, height = box[2], box[3]
        x, y = 10.0, height - 22
        renderer = card.figure.canvas.get_renderer()
        for index, (name, color) in enumerate(entries):
            text = card.text(x + 16, y, name, size=7, color=INK, va="center")
            wide = text.get_window_extent(renderer).width * 100 / card.figure.dpi + 28
            if x + wide > width - 4 and x > 10:
                if y > height - 15:
                    text.set_text(f"+ {len(entries) - index}")
                    text.set_x(x)
                    return
                x, y = 10.0, height - 9
                text.set_position((x + 16, y))
            card.add_patch(Rectangle((x, y - 1.5), 11, 3, color=color, lw=0))
            x += wide

    def _number(self, figure: Figure, card: Axes, panel: Panel, box: tuple[float, ...]) -> None:
        defaults = panel["fieldConfig"]["defaults"]
        left, above, width, height = box
        lines = self._series(panel)
        values = [value for value in (lines[0][2] if lines else []) if math.isfinite(value)]
        now = values[-1] if values else math.nan
        color = COLORS["green"]
        for step in defaults["thresholds"]["steps"]:
            if step.get("value") is None or now >= step["value"]:
                color = COLORS[step["color"]]
        card.text(width / 2, 0.52 * height, amount(now, defaults["unit"]), size=19, weight="bold", color=color,
                  ha="center", va="center")  # fmt: skip
        if len(values) > 1 and max(values) > min(values):
            spark = figure.add_axes(self._box(left + 2, above + 0.72 * height, width - 4, 0.26 * height))
            spark.set_axis_off()
            spark.plot(values, color=color, lw=0.8)
            spark.fill_between(range(len(values)), values, min(values), color=color, alpha=0.15, lw=0)
            spark.set_xlim(0, len(values) - 1)

    def _buckets(self, figure: Figure, card: Axes, panel: Panel, box: tuple[float, ...]) -> None:
        axes = self._axes(figure, box, 26)
        unit = panel["fieldConfig"]["defaults"]["unit"]
        lines = sorted(self._series(panel), key=lambda line: float(line[3]["le"]))
        times = lines[0][1]
        cells, below = [], [0.0] * len(times)
        for _, of_line, values, _ in lines:
            value_at = dict(zip(of_line, values, strict=True))
            cumulative = [value_at.get(moment, low) for moment, low in zip(times, below, strict=True)]
            cells.append([max(0.0, high - low) for high, low in zip(cumulative, below, strict=True)])
            below = cumulative
        used = [index for index, row in enumerate(cells) if max(row) > 0]
        first, last = max(0, used[0] - 1), min(len(cells) - 1, used[-1] + 1)
        shown = [[math.sqrt(cell) if cell > 0 else math.nan for cell in row] for row in cells[first : last + 1]]
        axes.pcolormesh(times, range(len(shown)), shown, cmap=pyplot.get_cmap("Blues", 12), vmin=0, shading="nearest")
        edges = [float(line[3]["le"]) for line in lines[first : last + 1]]
        every = max(1, len(edges) // 6)
        axes.set_yticks(
            [index + 0.5 for index in range(0, len(edges), every)], [amount(edge, unit) for edge in edges[::every]]
        )

    def _states(self, figure: Figure, card: Axes, panel: Panel, box: tuple[float, ...]) -> None:
        left, above, width, height = box
        results = {
            value: of for each in panel["fieldConfig"]["defaults"]["mappings"] for value, of in each["options"].items()
        }
        lines = self._series(panel)
        axes = self._axes(figure, (left + 120, above, width - 120, height), 44)
        for index, (_, times, values, _) in enumerate(lines):
            for begin, end, value in zip(times, times[1:], values, strict=False):
                # Nothing was said for a while: there is a hole.
                if (end - begin).total_seconds() <= 2 * self._step:
                    color = COLORS[results[f"{value:g}"]["color"]]
                    axes.barh(index, end - begin, left=begin, height=0.6, color=color, alpha=0.8, lw=0)
        axes.set_xlim(self._begin, self._end)
        axes.set_yticks(range(len(lines)), [name for name, *_ in lines])
        axes.set_ylim(len(lines) - 0.4, -0.6)
        self._legend(card, [(of["text"], COLORS[of["color"]]) for of in results.values()], box)

    def _table(self, _: Figure, card: Axes, panel: Panel, box: tuple[float, ...]) -> None:
        width = box[2]
        units = {
            override["matcher"]["options"]: next(
                each["value"] for each in override["properties"] if each["id"] == "unit"
            )
            for override in panel["fieldConfig"]["overrides"]
        }
        cells: dict[str, dict[str, str]] = {}
        for query in queries(panel):
            name = query["legendFormat"]
            for line in self._ask(query):
                # Grafana asks for the last moment only.
                if line["values"][-1][0] < self._end.timestamp() - 2 * self._step:
                    continue
                row = cells.setdefault(line["metric"]["instance"], {})
                row.update({label: value for label, value in line["metric"].items() if label == "version"})
                row[name] = amount(float(line["values"][-1][1]), units[name])
        # The first query is there for its label.
        columns = ["instance", "version", *list(units)[1:]]
        for index, column in enumerate(columns):
            x = 14 + index * (width - 20) / len(columns)
            card.text(x, 34, column, size=7.5, weight="bold", color="#3274d9", va="center")
            for row, (instance, values) in enumerate(sorted(cells.items())):
                value = instance if column == "instance" else values.get(column, "")
                card.text(x, 58 + 24 * row, value, size=8, color=INK, va="center")
        for row in range(len(cells)):
            card.plot([10, width - 10], [46 + 24 * row] * 2, color=TABLE_LINE, lw=0.8)
