"""Panels of each kind, without a place: see boards.py."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import common as build_common
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, statetimeline, table, text, timeseries
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models import text as text_model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from definitions.queries import Query
from definitions.runbooks import link_to

SOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
# (from this value on, colour); the first begins at None.
Steps = Sequence[tuple[float | None, str]]
CALM: Steps = ((None, "green"),)


def limit(value: float, *, warn: float | None = None) -> Steps:
    """Red from a value on, the one that an alert has; yellow from another one on."""
    between: Steps = () if warn is None else ((warn, "orange"),)
    return ((None, "green"), *between, (value, "red"))


def _thresholds(steps: Steps) -> build.ThresholdsConfig:
    made = [dashboard.Threshold(value=value, color=color) for value, color in steps]
    return build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(made)


def _prepare(
    panel: Any,
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    size: tuple[int, int],
    alerts: Sequence[str],
) -> Any:
    panel.title(title).description(description).unit(unit).datasource(SOURCE).span(size[0]).height(size[1])
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter)
        panel.with_target(target.datasource(SOURCE).range())
    if alerts:
        panel.links([link_to(alert) for alert in alerts])
    return panel


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 8,
    height: int = 8,
    stacked: bool = False,
    most: float | None = None,
    line_at: float | None = None,
    log: bool = False,
    alerts: Sequence[str] = (),
) -> timeseries.Panel:
    """Lines over time. `line_at`: where an alert's limit is drawn."""
    panel = _prepare(timeseries.Panel(), title, description, unit, queries, (width, height), alerts)
    panel.color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.PALETTE_CLASSIC))
    legend = build_common.VizLegendOptions().display_mode(common.LegendDisplayMode.LIST).show_legend(True)
    panel.legend(legend.placement(common.LegendPlacement.BOTTOM).calcs([]))
    panel.tooltip(
        build_common.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    )
    panel.line_width(1).show_points(common.VisibilityMode.NEVER).fill_opacity(60 if stacked else 8)
    panel.thresholds(_thresholds(CALM if line_at is None else limit(line_at)))
    if line_at is not None:
        dashed = common.GraphThresholdsStyleMode.DASHED
        panel.thresholds_style(build_common.GraphThresholdsStyleConfig().mode(dashed))
    if stacked:
        panel.stacking(build_common.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    if log:
        panel.scale_distribution(build_common.ScaleDistributionConfig().type(common.ScaleDistribution.LOG).log(10))
    else:
        panel.min(0)
    return panel if most is None else panel.max(most)


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    steps: Steps = CALM,
    *,
    width: int = 4,
    alerts: Sequence[str] = (),
) -> stat.Panel:
    """The current value, over a faint line of its history."""
    panel = _prepare(stat.Panel(), title, description, unit, [query], (width, 4), alerts)
    panel.color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS)).thresholds(_thresholds(steps))
    panel.graph_mode(common.BigValueGraphMode.AREA).color_mode(common.BigValueColorMode.VALUE)
    panel.reduce_options(build_common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    return panel


def buckets(title: str, description: str, unit: str, rate: str, *, width: int = 8) -> heatmap.Panel:
    """How the values of a histogram are spread, over time. `rate`: of its buckets, by `le`."""
    panel = _prepare(heatmap.Panel(), title, description, unit, [], (width, 8), ())
    panel.with_target(
        prometheus.Dataquery()
        .expr(rate)
        .legend_format("{{le}}")
        .ref_id("A")
        .datasource(SOURCE)
        .range()
        .format(PromQueryFormat.HEATMAP)
    )
    colors = heatmap.HeatmapColorOptions().mode(heatmap_model.HeatmapColorMode.SCHEME).scheme("Blues")
    panel.calculate(False).color(colors.steps(64)).show_legend().y_axis(heatmap.YAxisConfig().unit(unit))
    return panel


def states(
    title: str,
    description: str,
    query: Query,
    names: dict[int, tuple[str, str]],
    *,
    width: int = 12,
    alerts: Sequence[str] = (),
) -> statetimeline.Panel:
    """A bar for each series that has a colour for each value. `names`: what each value is called, and its colour."""
    panel = _prepare(statetimeline.Panel(), title, description, "none", [query], (width, 8), alerts)
    results = {
        str(value): dashboard.ValueMappingResult(text=name, color=color, index=index)
        for index, (value, (name, color)) in enumerate(names.items())
    }
    panel.mappings([dashboard.ValueMap(options=results)]).show_value(common.VisibilityMode.NEVER)
    panel.color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS)).thresholds(_thresholds(CALM))
    legend = build_common.VizLegendOptions().display_mode(common.LegendDisplayMode.LIST).show_legend(True)
    return panel.legend(legend.placement(common.LegendPlacement.BOTTOM).calcs([])).row_height(0.8)


def rows(
    title: str, description: str, key: str, columns: Sequence[tuple[Query, str, Steps]], *, alerts: Sequence[str] = ()
) -> table.Panel:
    """A row for each value of the label `key`, and a column for each query below its legend; of the first query it is
    the label "version". Of each column: the query, its unit, its colours."""
    panel = _prepare(table.Panel(), title, description, "none", [], (24, 7), alerts)
    names = {}
    for letter, (query, unit, steps) in zip(string.ascii_uppercase, columns, strict=False):
        target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter)
        panel.with_target(target.datasource(SOURCE).instant().format(PromQueryFormat.TABLE))
        names[f"Value #{letter}"] = query.legend
        properties = [dashboard.DynamicConfigValue("unit", unit)]
        if len(steps) > 1:
            properties.append(dashboard.DynamicConfigValue("thresholds", _thresholds(steps).build()))
            properties.append(dashboard.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
        panel.override_by_name(query.legend, properties)
    panel.with_transformation(dashboard.DataTransformerConfig("merge", options={}))
    order = {name: index for index, name in enumerate([key, "version", *names.values()])}
    # The first query is there for its label: its value is 1.
    hidden = {"Time": True, "Value #A": True}
    options = {"excludeByName": hidden, "renameByName": names, "indexByName": order}
    return panel.with_transformation(dashboard.DataTransformerConfig("organize", options=options))


def words(title: str, content: str, *, width: int = 12, height: int = 8) -> text.Panel:
    panel = text.Panel().title(title).mode(text_model.TextMode.MARKDOWN).content(content)
    return panel.span(width).height(height)
