"""The dashboards themselves: they are what the definitions make, and can be read."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from integration.server_process import ROOT

from dashboards.panels import DASHBOARDS, FOLDER, panels, queries, variables

DOCUMENT = ROOT / "docs/operations/dashboards.md"
RUNBOOKS = "longshort-runbooks"
# What Grafana 12 begins with. An older one takes newer dashboards, and a newer one brings older ones up to its own.
SCHEMA = 42


@pytest.fixture(params=DASHBOARDS)
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    return DASHBOARDS[request.param]


def test_files_are_what_the_definitions_make(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FOLDER / "generate", f"--out={tmp_path}"], check=True, timeout=60)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    committed = {path.name: path.read_text() for path in (FOLDER / "dashboards").iterdir()}
    assert made == committed, "run .venv/bin/python deploy/grafana/generate"


def test_grafanas_schema_knows_all_of_it(dashboard: dict[str, Any]) -> None:
    """The SDK's types are Grafana's schema: what they do not know is lost on the way through them."""
    register_default_plugins()
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    # What the SDK adds to links: deploy/grafana/generate.
    for has_links in (known, *known["panels"]):
        for link in has_links.get("links", []):
            link.pop("placement", None)
    assert known == dashboard
    assert dashboard["schemaVersion"] == SCHEMA


def test_ids_are_unique() -> None:
    assert [board["uid"] for board in DASHBOARDS.values()] == list(DASHBOARDS), "a file has the name of its dashboard"
    assert len({board["title"] for board in DASHBOARDS.values()}) == len(DASHBOARDS)
    for board in DASHBOARDS.values():
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        titles = [panel["title"] for panel in panels(board) if panel["type"] != "stat"]
        assert len(set(titles)) == len(titles), "two panels of one kind would have one name"


def test_every_panel_says_what_it_shows(dashboard: dict[str, Any]) -> None:
    assert dashboard["description"].endswith("?")
    for panel in panels(dashboard):
        if panel["type"] == "text":
            continue
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["targets"], panel["title"]
        assert all(query["legendFormat"] for query in queries(panel)), panel["title"]
        if panel["type"] in ("timeseries", "state-timeline"):
            assert panel["options"]["legend"]["showLegend"], panel["title"]
        if panel["type"] == "heatmap":
            assert panel["options"]["legend"]["show"], panel["title"]


def test_panels_fill_the_width_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        columns = range(place.get("x", 0), place.get("x", 0) + place["w"])
        assert columns.stop <= 24
        for cell in itertools.product(columns, range(place.get("y", 0), place.get("y", 0) + place["h"])):
            assert cell not in taken, f"{panel['title']} lies on {taken.get(cell)}"
            taken[cell] = panel["title"]
    bottom = 1 + max(y for _, y in taken)
    assert len(taken) == 24 * bottom, "there is a hole"


def test_queries_ask_only_what_variables_leave(dashboard: dict[str, Any]) -> None:
    used = set()
    for panel in panels(dashboard):
        for query in queries(panel):
            assert query["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            used |= set(re.findall(r"\$(\w+)", query["expr"]))
            for window in re.findall(r"rate\([^[]*\[([^]]*)\]", query["expr"]):
                assert window == "$__rate_interval", query["expr"]
    assert used - {"__rate_interval"} == {each["name"] for each in variables(dashboard)}
    for variable in variables(dashboard):
        assert variable["multi"] and variable["includeAll"]


def test_a_tile_counts_the_same_calls_as_the_panel_below_it() -> None:
    """Otherwise the tile may show more than every line of the panel."""
    asked = {}
    for panel in panels(DASHBOARDS["longshort-overview"]):
        asked[panel["type"], panel["title"]] = queries(panel)
    for tile, lines in (("Failed", "Failed, by version"), ("Refused", "Refused, by model")):
        (whole,), (parts,) = asked["stat", tile], asked["timeseries", lines]
        assert re.sub(r"sum by \([^)]*\) ", "sum", parts["expr"]) == whole["expr"]
    (count,), (times,) = asked["stat", "Alerts"], asked["state-timeline", "Alerts"]
    assert times["expr"].removeprefix("max by (alertname) ") in count["expr"], "of each alert one, as there are lines"


def test_links_lead_to_what_to_do_about_an_alert() -> None:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
    alerts = {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}
    books = {panel["id"]: panel for panel in panels(DASHBOARDS[RUNBOOKS])}
    assert {book["title"] for book in books.values()} == set(alerts)
    linked = set()
    for board in DASHBOARDS.values():
        for panel in panels(board):
            for link in panel.get("links", []):
                uid, panel_id = re.fullmatch(r"/d/([\w-]+)\?viewPanel=panel-(\d+)", link["url"]).groups()
                alert = books[int(panel_id)]["title"]
                assert uid == RUNBOOKS and link["title"] == f"What to do: {alert}"
                linked.add(alert)
    assert linked == set(alerts), "each alert has a panel that shows it coming"
    for book in books.values():
        description = alerts[book["title"]]["annotations"]["description"].strip()
        assert description in book["options"]["content"]
        for anchor in re.findall(r"metrics\.md#([\w-]+)", description):
            assert (
                f"\n### {anchor.replace('-', ' ').capitalize()}\n" in (ROOT / "docs/operations/metrics.md").read_text()
            )


def test_dashboards_link_to_each_other(dashboard: dict[str, Any]) -> None:
    (link,) = dashboard["links"]
    assert link["type"] == "dashboards" and link["tags"] == ["longshort"] == dashboard["tags"]


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    folder = FOLDER / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources/longshort.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((folder / "dashboards/longshort.yaml").read_text())["providers"]
    prometheus = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text())
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"], "what rates are taken over"
    assert provider["type"] == "file" and provider["options"]["path"] in DOCUMENT.read_text()
    assert source["url"] == "http://127.0.0.1:9090", "where Prometheus listens by default"
