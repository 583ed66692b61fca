"""The dashboards of deploy/grafana as Grafana would read them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from integration.prometheus_process import Prometheus
from integration.server_process import ROOT

FOLDER = ROOT / "deploy/grafana"
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))}

Panel = dict[str, Any]


def panels(dashboard: dict[str, Any]) -> Iterator[Panel]:
    """Those that show something: no headings."""
    yield from (panel for panel in dashboard["panels"] if panel["type"] != "row")


def queries(panel: Panel) -> Iterator[dict[str, Any]]:
    yield from panel.get("targets", [])


def variables(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those whose values Prometheus is asked for."""
    yield from (each for each in dashboard["templating"].get("list", []) if each["type"] == "query")


def fill(expression: str, values: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], expression)


def offered(prometheus: Prometheus, variable: dict[str, Any], values: dict[str, str]) -> list[str]:
    series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
    return prometheus.ask(f"label/{label}/values", **{"match[]": fill(series, values)})


class Asked:
    """What a dashboard asks Prometheus when it is opened: with "All" in each variable."""

    def __init__(self, prometheus: Prometheus, dashboard: dict[str, Any], window: str) -> None:
        """`window`: what Grafana makes $__rate_interval."""
        self._values = {"__rate_interval": window}
        for variable in variables(dashboard):
            every = "|".join(offered(prometheus, variable, self._values))
            self._values[variable["name"]] = variable.get("allValue", f"({every})")

    def expression(self, query: dict[str, Any]) -> str:
        return fill(query["expr"], self._values)
