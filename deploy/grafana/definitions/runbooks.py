"""What to do about each alert: its annotations and its section of docs/operations/metrics.md. Panels link to a
dashboard of these texts, so that the links work in any Grafana."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard

ROOT = Path(__file__).parents[3]
UID = "longshort-runbooks"
SECTION = re.compile(r"docs/operations/metrics\.md#([\w-]+)")


@dataclass(frozen=True)
class Runbook:
    panel: int  # its id
    alert: dict[str, Any]
    section: str  # of the document; "" if the alert says all

    @property
    def content(self) -> str:
        annotations = self.alert["annotations"]
        summary = re.sub(r"\{\{.*?\}\}", "…", annotations["summary"])
        parts = [f"**{self.alert['labels']['severity']}**: {summary}", annotations["description"].strip(), self.section]
        parts.append(f"```promql\n{self.alert['expr'].strip()}\n```")
        return "\n\n".join(part for part in parts if part)


def _sections() -> dict[str, str]:
    """The document's sections of the third level by their anchors. Links to other documents are their words only."""
    document = (ROOT / "docs/operations/metrics.md").read_text()
    found = {}
    for title, body in re.findall(r"^### ([^\n]*)\n(.*?)(?=^#|\Z)", document, re.MULTILINE | re.DOTALL):
        found[title.lower().replace(" ", "-")] = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", body).strip()
    return found


def _read() -> dict[str, Runbook]:
    sections = _sections()
    groups = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
    alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    books = {}
    for panel, alert in enumerate(alerts, start=1):
        anchor = SECTION.search(alert["annotations"]["description"])
        books[alert["alert"]] = Runbook(panel, alert, sections[anchor[1]] if anchor else "")
    return books


RUNBOOKS = _read()


def link_to(alert: str) -> build.DashboardLink:
    """A panel's link to an alert's runbook."""
    link = build.DashboardLink(f"What to do: {alert}").type(dashboard.DashboardLinkType.LINK)
    return link.url(f"/d/{UID}?viewPanel=panel-{RUNBOOKS[alert].panel}")
