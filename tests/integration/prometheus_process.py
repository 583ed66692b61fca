"""A real Prometheus, with the configuration and the rules of deploy/prometheus."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from integration.certificates import write_at_once
from integration.server_process import ROOT, Server, wait_until

PROGRAMS = ROOT / "build/prometheus/usr/bin"  # deploy/install --tests
CONFIGURATION = ROOT / "deploy/prometheus/prometheus.yaml"


def check(*arguments: str | Path, standard_input: str = "") -> None:
    """Runs promtool, which must find nothing wrong."""
    done = subprocess.run(
        [PROGRAMS / "promtool", *arguments], input=standard_input, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus:
    """Reads servers, which speak TLS by one authority, every second, and calls them server-1, server-2 and so
    on. Use as a context manager."""

    def __init__(self, folder: Path, *servers: Server, token: str | None = None) -> None:
        """`token`: what it shows the servers."""
        folder.mkdir()
        trusted = write_at_once(folder / "ca.pem", servers[0].trusted)
        access = f"    scheme: https\n    tls_config: {{ca_file: {trusted}}}\n"
        if token is not None:
            access += f"    authorization: {{credentials: {token}}}\n"
        targets = "".join(
            f"      - {{targets: ['127.0.0.1:{server.http_port}'], labels: {{instance: server-{number}}}}}\n"
            for number, server in enumerate(servers, start=1)
        )
        configuration = CONFIGURATION.read_text()
        for old, new in (
            ('      - targets: ["127.0.0.1:8501"]\n', targets),
            ("    static_configs:", access + "    static_configs:"),
        ):
            assert old in configuration
            configuration = configuration.replace(old, new)
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

    def ask(self, path: str, **parameters: str | float) -> Any:
        """The data of an answer of its HTTP interface."""
        address = re.search(r'msg="Listening on" address=(\S+)', self._log_path.read_text())[1]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with opener.open(f"http://{address}/api/v1/{path}{query}", timeout=60) as answer:
            return json.load(answer)["data"]

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()
