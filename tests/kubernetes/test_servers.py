"""deploy/kubernetes held against real servers: options, probes, secrets, metrics."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from docs.blocks import block_of
from integration import classifier_directory, model_directory, tokens
from integration.certificates import Authority
from integration.server_process import BINARY, ROOT, Server

from kubernetes.rendered import MANIFESTS, OVERLAYS, Rendered, render, render_with_components

USER = 65532
PORTS = ("--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0")
METRIC = re.compile(r"\blongshort_\w+")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that everybody may read, as what is mounted into a container."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def models(folder: Path) -> Path:
    model_directory.write(folder / "models")
    return folder / "models"


class Secrets:
    """Folders with what the documented secrets hold, as Kubernetes mounts them: links to files of root and a group."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority("servers")
        self.clients = Authority("clients")
        pair = self.authority.server()
        tls = {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem, "ca.crt": self.authority.pem}
        self.proxy = Authority("proxy")
        self.token = "u" * 32
        lines = [tokens.line("prometheus", "t" * 32, "scopes=observe"), tokens.line("alice", self.token)]
        access = {"tokens": "".join(lines).encode(), "session.key": b"k" * 32}
        clients = {"ca.crt": self.clients.pem}
        self.files = {"longshort-tls": tls, "longshort-clients": clients, "longshort-access": access}
        for name, each in (("envoy-tls", self.proxy.server()), ("envoy-client", self.clients.client("envoy"))):
            self.files[f"longshort-{name}"] = {"tls.crt": each.certificate_pem, "tls.key": each.key_pem}
        self._folder = folder

    def mount(self, rendered: Rendered) -> dict[str, Path]:
        """Where each is, by the place in the container."""
        places = {}
        group = rendered.pod["spec"]["securityContext"]["fsGroup"]
        for mount, secret in rendered.secret_mounts().items():
            data = self._folder / Path(mount).name / "..data"
            data.mkdir(parents=True)
            for name, content in self.files[secret["secretName"]].items():
                file = data / name
                file.write_bytes(content)
                file.chmod(secret["defaultMode"])
                if os.geteuid() == 0:
                    os.chown(file, 0, group)
                (data.parent / name).symlink_to(Path("..data") / name)
            places[mount] = data.parent
        return places


def check_config(
    arguments: list[str], user: int = USER, group: int = USER, extra_groups: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs as the user of the container where the tests may change users."""
    who = {"user": user, "group": group, "extra_groups": extra_groups} if os.geteuid() == 0 else {}
    command = [BINARY, *arguments, *PORTS, "--check-config"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/", **who)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_server_takes_the_options(overlay: str, folder: Path, models: Path) -> None:
    rendered = render(MANIFESTS / "overlays" / overlay)
    places = {"/models": models, **Secrets(folder).mount(rendered)}
    done = check_config(rendered.arguments_at(folder, places))
    if overlay == "gpu":  # until there are workers for GPUs
        assert done.returncode == 1 and "cuda:0 is a GPU" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert "tiny/1" in done.stdout


def test_the_server_runs_as_the_user_that_openshift_chooses(folder: Path, models: Path) -> None:
    """Any user, of the group root, and of a group of its own that may read the secrets."""
    rendered = render_with_components(folder / "own", "mtls", "openshift")
    chosen = 1000650000
    rendered.pod["spec"]["securityContext"]["fsGroup"] = chosen
    places = {"/models": models, **Secrets(folder).mount(rendered)}
    done = check_config(rendered.arguments_at(folder, places), user=chosen, group=0, extra_groups=(chosen,))
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take a file from its group")
def test_secrets_that_the_servers_group_cannot_read_are_named(folder: Path, models: Path) -> None:
    rendered = render(MANIFESTS / "overlays/mtls")
    places = {"/models": models, **Secrets(folder).mount(rendered)}
    for path in places["/etc/longshort-access"].joinpath("..data").iterdir():
        path.chmod(0o400)
    done = check_config(rendered.arguments_at(folder, places))
    assert done.returncode == 1 and "longshort-access" in done.stderr


@pytest.mark.parametrize("overlay", ["cpu", "mtls"])
def test_probes_hit_what_a_server_has(overlay: str, folder: Path, models: Path) -> None:
    rendered = render(MANIFESTS / "overlays" / overlay)
    secrets = Secrets(folder)
    places = {"/models": models, **secrets.mount(rendered)}
    trusted = secrets.authority.pem if overlay == "mtls" else None
    arguments = rendered.arguments_at(folder, places)
    with Server(models, folder / "server", *arguments, *PORTS, trusted=trusted) as server:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = rendered.container[probe]["httpGet"]
            assert asked.get("scheme", "HTTP") == ("HTTPS" if trusted else "HTTP")
            assert server.http(asked["path"])[0] == 200
        assert server.http("/metrics")[0] == (401 if overlay == "mtls" else 200)


def test_metrics_that_scalers_and_rules_ask_for_are_there(tmp_path: Path) -> None:
    model_directory.write(tmp_path / "models")
    classifier_directory.write_text(tmp_path / "models", "texts", documents=1)
    scaled = render(MANIFESTS / "overlays/cpu").one("ScaledObject")["spec"]["triggers"]
    hpa = render(MANIFESTS / "overlays/hpa").one("HorizontalPodAutoscaler")["spec"]["metrics"]
    asked = set(METRIC.findall(json.dumps([scaled, hpa])))
    assert asked
    with Server(tmp_path / "models", tmp_path) as server:
        # Families without a sample, too: test_prometheus.py reads a server that has been asked all.
        exported = set(METRIC.findall(server.http("/metrics")[1]))
    assert asked <= exported


def test_metrics_that_an_endpoint_picker_asks_for_are_there_of_every_kind_of_model(tmp_path: Path) -> None:
    model_directory.write(tmp_path / "models")
    classifier_directory.write_text(tmp_path / "models", "texts", documents=1)
    document = (ROOT / "docs/operations/kubernetes.md").read_text()
    table = document[document.index("| the picker's name") : document.index("- Select the pods by")]
    asked = METRIC.findall(table)
    assert len(asked) == 3
    with Server(tmp_path / "models", tmp_path) as server:
        exported = server.http("/metrics")[1]
    for metric in asked:
        assert f'{metric}{{model="tiny",version="1"}} 0' in exported
        if metric != "longshort_streams_active":  # of language models
            assert f'{metric}{{model="texts",version="1"}} 0' in exported


def test_the_hook_that_moves_sessions_is_a_command_of_the_client() -> None:
    hook = yaml.safe_load(block_of("docs/operations/kubernetes.md", "lifecycle:").code)
    program, *words = hook["lifecycle"]["preStop"]["exec"]["command"]
    assert (program, words[:2]) == ("longshort", ["session", "drain"])
    command = [BINARY.with_name(program), *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_document_has_what_an_adapter_must_know() -> None:
    hpa = render(MANIFESTS / "overlays/hpa").one("HorizontalPodAutoscaler")["spec"]["metrics"]
    document = (ROOT / "docs/operations/kubernetes.md").read_text()
    rule = re.search(r"seriesQuery: '(.*)'", document)[1]
    for metric in hpa:
        assert re.search(re.search(r'__name__=~"(.*?)"', rule)[1], metric["pods"]["metric"]["name"])
