"""The dashboards of deploy/grafana as Grafana would read them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from integration.server_process import ROOT

FOLDER = ROOT / "deploy/grafana"
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))}
# What Grafana puts in the place of each variable when a dashboard is opened: "All" of each.
VARIABLES = {"job": "longshort", "model": ".*", "version": ".*", "instance": ".*"}

Panel = dict[str, Any]


def panels(dashboard: dict[str, Any]) -> Iterator[Panel]:
    """Those that show something: no headings."""
    yield from (panel for panel in dashboard["panels"] if panel["type"] != "row")


def queries(panel: Panel) -> Iterator[dict[str, Any]]:
    yield from panel.get("targets", [])


def expression(query: dict[str, Any], window: str) -> str:
    """What Prometheus is asked. `window`: what Grafana makes $__rate_interval."""

    def value(found: re.Match[str]) -> str:
        return window if found[1] == "__rate_interval" else VARIABLES[found[1]]

    return re.sub(r"\$\{?(\w+)\}?", value, query["expr"])
