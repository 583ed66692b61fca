"""A dashboard around its panels: variables, links, places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard

from definitions.panels import SOURCE

TAG = "longshort"
# A heading and the panels below it, from left to right.
Row = tuple[str, Sequence[Any]]

ALL = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])


def labels(name: str, label: str, title: str, series: str, description: str) -> build.QueryVariable:
    """A variable of the values that a label has; "All" is also what has no such label."""
    query = f"label_values({series}, {label})"
    variable = build.QueryVariable(name).label(title).description(description).datasource(SOURCE)
    variable.query({"query": query, "refId": name}).definition(query)
    variable.multi(True).include_all(True).all_value(".*").current(ALL)
    return variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.NATURAL_ASC)


def _source() -> build.DatasourceVariable:
    variable = build.DatasourceVariable("datasource").label("Data source")
    return variable.description("The Prometheus that reads the servers.").type("prometheus")


JOB = labels("job", "job", "Job", "longshort_build_info", "What the scrape configuration calls the servers.")
INSTANCE = labels("instance", "instance", "Server", 'longshort_build_info{job=~"$job"}', "One server, or several.")


def model(series: str = "longshort_model_load_duration_seconds") -> build.QueryVariable:
    """Of those that have this series."""
    return labels("model", "model", "Model", f'{series}{{job=~"$job"}}', "Models that are served, by name.")


def version(series: str = "longshort_model_load_duration_seconds") -> build.QueryVariable:
    of_model = f'{series}{{job=~"$job", model=~"$model"}}'
    return labels("version", "version", "Version", of_model, "Versions of these models, such as an old and a new one.")


def board(uid: str, title: str, description: str, variables: Sequence[build.QueryVariable], rows: Sequence[Row]) -> Any:
    """The dashboard, with an id for each panel by its place."""
    made = build.Dashboard(f"Longshort / {title}").uid(uid).description(description).tags([TAG])
    made.time("now-1h", "now").refresh("30s").timezone("browser").editable()
    made.tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
    links = build.DashboardLink("Longshort").type(dashboard.DashboardLinkType.DASHBOARDS).tags([TAG])
    made.link(links.as_dropdown(False).include_vars(True).keep_time(True))
    if variables:
        made.variables([_source(), *variables])
    panel_id = 0
    for heading, panels in rows:
        if heading:
            panel_id += 1
            made.with_row(build.Row(heading).id(panel_id))
        for panel in panels:
            panel_id += 1
            made.with_panel(panel.id(panel_id))
    return made.build()
