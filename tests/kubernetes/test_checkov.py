"""What checkov finds in the manifests and Dockerfiles is what checkov_skips.yaml gives a reason for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.server_process import ROOT

from kubernetes.rendered import MANIFESTS, Rendered, render, render_with_components

CHECKOV = ROOT / "build/checkov/bin"  # deploy/install --tests
DOCKERFILES = ("Dockerfile", "deploy/kubernetes/batch/Dockerfile")
SKIPS = yaml.safe_load((Path(__file__).parent / "checkov_skips.yaml").read_text())
BROKEN = "/broken.yaml"

Finding = tuple[str, str]  # a check, and the resource that fails it


def all_rendered(folder: Path) -> Iterator[tuple[str, Rendered]]:
    """All that can be applied, and each component by itself."""
    for kustomization in sorted(MANIFESTS.glob("**/kustomization.yaml")):
        name = kustomization.parent.relative_to(MANIFESTS)
        if name.parts[0] == "namespace":  # is for `transformers`
            continue
        if name.parts[0] == "components":
            yield "-".join(name.parts), render_with_components(folder / name.parts[1], name.parts[1])
        else:
            yield "-".join(name.parts), render(kustomization.parent)


def write(rendered: Rendered, name: str, folder: Path) -> None:
    """With labels of its own: checkov takes all files for one cluster, where a policy of one is for the pods of all."""
    text = re.sub(r"(app\.kubernetes\.io/name: \S+)", rf"\1-{name}", yaml.safe_dump_all(rendered.manifests))
    (folder / f"{name}.yaml").write_text(text)


def broken() -> Rendered:
    """Privileged, and without the network policy."""
    rendered = render(MANIFESTS / "overlays/cpu")
    rendered.container["securityContext"]["privileged"] = True
    return Rendered([each for each in rendered.manifests if each["kind"] != "NetworkPolicy"])


def run_checkov(folder: Path) -> list[dict[str, Any]]:
    """A report for each framework."""
    done = subprocess.run(
        [CHECKOV / "python", CHECKOV / "checkov", "--directory", folder, "--framework", "kubernetes", "dockerfile",
         "--skip-download", "--output", "json"],
        # It has no other settings, and the proxies keep its requests from the network.
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true",
             "HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"},
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1, "it has found something: " + done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Finding]]:
    """By file. One run for all: most of its seconds are its own start."""
    folder = tmp_path_factory.mktemp("checkov")
    for dockerfile in DOCKERFILES:
        (folder / dockerfile).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / dockerfile, folder / dockerfile)
    for name, rendered in all_rendered(tmp_path_factory.mktemp("kustomize")):
        write(rendered, name, folder)
    write(broken(), "broken", folder)
    found: dict[str, set[Finding]] = {}
    for report in run_checkov(folder):
        results = report["results"]
        assert not results["parsing_errors"]
        assert not results["skipped_checks"], "what is skipped stands in checkov_skips.yaml alone"
        for each in results["passed_checks"]:
            found.setdefault(each["file_path"], set())
        for each in results["failed_checks"]:
            found.setdefault(each["file_path"], set()).add((each["check_id"], each["resource"]))
    assert set(found) == {f"/{path.relative_to(folder)}" for path in folder.rglob("*") if path.is_file()}
    return found


def test_all_that_is_found_has_a_reason_to_stay_and_each_reason_is_needed(findings: dict[str, set[Finding]]) -> None:
    skips = [(skip["check"], resource) for skip in SKIPS for resource in skip["resources"]]
    assert len(set(skips)) == len(skips)
    assert all(re.fullmatch(r"[A-Z].* .*\.", skip["reason"]) for skip in SKIPS), "a sentence"
    found = {(file, finding) for file, all_of_it in findings.items() if file != BROKEN for finding in all_of_it}
    assert not {(file, finding) for file, finding in found if finding not in skips}
    assert not set(skips) - {finding for _, finding in found}, "skips that skip nothing"


def test_a_broken_manifest_is_found(findings: dict[str, set[Finding]]) -> None:
    checks = {check for check, _ in findings[BROKEN]}
    assert {"CKV_K8S_16", "CKV2_K8S_6"} <= checks, "a privileged container; a pod that no network policy is for"
