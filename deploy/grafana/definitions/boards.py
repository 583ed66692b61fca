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


def labels(name: str, title: str, series: str, description: str, *, with_none: bool = False) -> build.QueryVariable:
    """A variable of the values that the label `name` has. "All" is these; or, `with_none`, any value and none."""
    query = f"label_values({series}, {name})"
    variable = build.QueryVariable(name).label(title).description(description).datasource(SOURCE)
    variable.query(query).definition(query)
    variable.multi(True).include_all(True).current(ALL)
    if with_none:
        variable.all_value(".*")
    return variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.NATURAL_ASC)


def _source() -> build.DatasourceVariable:
    variable = build.DatasourceVariable("datasource").label("Data source")
    return variable.description("The Prometheus that reads the servers.").type("prometheus")


JOB = labels("job", "Job", "longshort_build_info", "What the scrape configuration calls the servers.")
INSTANCE = labels("instance", "Server", 'longshort_build_info{job=~"$job"}', "One server, or several.")


def models(series: str, *, with_none: bool = False) -> list[build.QueryVariable]:
    """Model and version, of those that have this series; `with_none`: calls that name no model are in "All"."""
    of_job, of_model = f'{series}{{job=~"$job"}}', f'{series}{{job=~"$job", model=~"$model"}}'
    versions = "Versions of these models, such as an old and a new one."
    return [
        labels("model", "Model", of_job, "Models that are served, by name.", with_none=with_none),
        labels("version", "Version", of_model, versions, with_none=True),
    ]


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
