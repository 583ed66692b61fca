"""The metrics and deploy/prometheus in the eyes of a real Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from integration import classifier_directory, model_directory
from integration.certificates import DAY, Authority, write_at_once
from integration.server_process import ROOT, Server, wait_until

PROGRAMS = ROOT / "build/prometheus/usr/bin"  # deploy/install --tests
CONFIGURATION = ROOT / "deploy/prometheus/prometheus.yaml"
NAME = re.compile(r"\b(?:longshort|process)_\w+")


def check(*arguments: str | Path, standard_input: str = "") -> None:
    done = subprocess.run(
        [PROGRAMS / "promtool", *arguments], input=standard_input, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus:
    """A Prometheus that reads one server, which speaks TLS, every second. Use as a context manager."""

    def __init__(self, server: Server, folder: Path) -> None:
        folder.mkdir()
        configuration = CONFIGURATION.read_text().replace("127.0.0.1:8501", f"127.0.0.1:{server.http_port}")
        trusted = write_at_once(folder / "ca.pem", server.trusted)
        encrypted = f"    scheme: https\n    tls_config: {{ca_file: {trusted}}}\n    static_configs:"
        assert "    static_configs:" in configuration
        configuration = configuration.replace("    static_configs:", encrypted)
        (folder / "prometheus.yaml").write_text(configuration.replace("15s", "1s"))
        (folder / "alerts.yaml").write_text((CONFIGURATION.parent / "alerts.yaml").read_text())
        self._log_path = folder / "log"
        self._log = self._log_path.open("wb")
        arguments = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
        self._process = subprocess.Popen(
            [PROGRAMS / "prometheus", *arguments, "--web.listen-address=127.0.0.1:0"], stderr=self._log
        )
        wait_until(self._ready)

    def _ready(self) -> bool:
        log = self._log_path.read_text()
        assert self._process.poll() is None, log
        return "Server is ready to receive web requests" in log

    def ask(self, path: str) -> Any:
        """The data of an answer of its HTTP interface."""
        address = re.search(r'msg="Listening on" address=(\S+)', self._log_path.read_text())[1]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{address}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)["data"]

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


@pytest.fixture(scope="module")
def busy(api: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a language model and a classifier, each of which has answered."""
    folder = tmp_path_factory.mktemp("busy")
    model_directory.write(folder / "models")
    classifier_directory.write_text(folder / "models", "texts", documents=1)
    authority = Authority("servers")
    certificate, key = authority.server(end=9 * DAY).write(folder, "server")
    options = [f"--tls-certificate={certificate}", f"--tls-key={key}"]
    with Server(folder / "models", folder, *options, trusted=authority.pem) as server:
        stub = api.inference_grpc.InferenceStub(server.channel)
        prompt = api.inference.GenerateRequest(model={"name": "tiny"}, prompt={"text": "x"})
        document = api.inference.ScoreTextRequest(model={"name": "texts"}, inputs=[{"text": "x"}])
        list(stub.GenerateStream(prompt, timeout=60))
        stub.ScoreText(document, timeout=60)
        yield server


def test_each_alert_fires_when_it_should() -> None:
    check("check", "config", CONFIGURATION)
    check("test", "rules", Path(__file__).with_name("prometheus_alerts.yaml"))


def test_metrics_are_named_as_they_should_be(busy: Server) -> None:
    check("check", "metrics", standard_input=busy.http("/metrics")[1])


def test_prometheus_reads_what_the_alerts_and_the_documentation_name(busy: Server, tmp_path: Path) -> None:
    with Prometheus(busy, tmp_path / "prometheus") as prometheus:

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
