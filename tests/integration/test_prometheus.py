"""The metrics and deploy/prometheus in the eyes of a real Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from integration import classifier_directory, model_directory
from integration.certificates import DAY, Authority
from integration.prometheus_process import CONFIGURATION, Prometheus, check
from integration.server_process import ROOT, Server, wait_until
from integration.tls_calls import files_of

pytestmark = pytest.mark.not_sanitized("about names and rules of metrics")

NAME = re.compile(r"\b(?:longshort|process)_\w+")


@pytest.fixture(scope="module")
def busy(api: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a language model and a classifier, each of which has answered."""
    folder = tmp_path_factory.mktemp("busy")
    model_directory.write(folder / "models")
    classifier_directory.write_text(folder / "models", "texts", documents=1)
    authority = Authority("servers")
    options = files_of(folder, authority.server(end=9 * DAY))
    with Server(folder / "models", folder, *options, trusted=authority.pem) as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        prompt = api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "x"})
        document = api.inference.ScoreTextRequest(model={"name": "texts"}, inputs=[{"text": "x"}])
        list(stub.GenerateStream(prompt, timeout=60))
        stub.ScoreText(document, timeout=60)
        yield server


def test_the_page_counts_the_alerts() -> None:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
    alerts = sum("alert" in rule for group in groups for rule in group["rules"])
    assert f"and {alerts} alerts." in (ROOT / "docs/operations/metrics.md").read_text()


def test_each_alert_fires_when_it_should() -> None:
    check("check", "config", CONFIGURATION)
    check("test", "rules", Path(__file__).with_name("prometheus_alerts.yaml"))


def test_metrics_are_named_as_they_should_be(busy: Server) -> None:
    check("check", "metrics", standard_input=busy.http("/metrics")[1])


def test_prometheus_reads_what_the_alerts_and_the_documentation_name(busy: Server, tmp_path: Path) -> None:
    with Prometheus(tmp_path / "prometheus", busy) as prometheus:

        def targets() -> list[str]:
            return [target["health"] for target in prometheus.ask("targets")["activeTargets"]]

        def rules() -> list[Any]:
            return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

        wait_until(lambda: targets() == ["up"])
        wait_until(lambda: all(rule["health"] != "unknown" for rule in rules()))
        assert [rule["lastError"] for rule in rules() if rule["health"] != "ok"] == []
        # Before it has read the server, the alert that there is none is pending.
        wait_until(lambda: prometheus.ask("alerts")["alerts"] == [])

        rows = re.findall(r"^\| `.*", (ROOT / "docs/operations/metrics.md").read_text(), re.MULTILINE)
        assert set(prometheus.ask("metadata")) == set(NAME.findall("\n".join(rows)))
        series = set(prometheus.ask("label/__name__/values"))
        assert {name for rule in rules() for name in NAME.findall(rule["query"])} <= series
