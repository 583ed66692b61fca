"""Writes the PrometheusRule of deploy/kubernetes from deploy/prometheus/alerts.yaml:
PYTHONPATH=tests .venv/bin/python -m kubernetes.prometheus_rule"""

from __future__ import annotations

from integration.server_process import ROOT

ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
RULE = ROOT / "deploy/kubernetes/components/monitoring/prometheus-rule.yaml"
BEGINNING = """\
# deploy/prometheus/alerts.yaml for the Prometheus operator, written by tests/kubernetes/prometheus_rule.py.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: longshort
spec:
"""


def text() -> str:
    """What the file should be."""
    alerts = ALERTS.read_text()
    groups = alerts[alerts.index("groups:") :]
    return BEGINNING + "".join(f"  {line}" if line.strip() else line for line in groups.splitlines(keepends=True))


if __name__ == "__main__":
    RULE.write_text(text())
