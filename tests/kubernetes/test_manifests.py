"""deploy/kubernetes as a cluster would read it: what is rendered is valid, and its parts fit each other."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from docs.blocks import block_of
from integration.prometheus_process import check
from integration.server_process import ROOT

from kubernetes.rendered import (
    MANIFESTS,
    OVERLAYS,
    PROGRAMS,
    Manifest,
    Rendered,
    commands_of,
    render,
    render_text,
    render_with_components,
    seconds,
)

PAGE = "docs/operations/kubernetes.md"
USER = 65532  # of the image
# Of kinds that are not Kubernetes' own, by apiVersion and kind.
SCHEMAS = {
    (schema["properties"]["apiVersion"]["const"], schema["properties"]["kind"]["const"]): schema
    for schema in (yaml.safe_load(path.read_text()) for path in Path(__file__).parent.glob("schemas/*.yaml"))
}


@pytest.fixture(scope="module", params=[*OVERLAYS, "base", "models-from-image"])
def rendered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    if request.param == "models-from-image":
        return render_with_components(tmp_path_factory.mktemp("kustomize") / "own", request.param)
    return render(MANIFESTS / request.param if request.param == "base" else MANIFESTS / "overlays" / request.param)


def kubernetes_validate(manifests: list[Manifest], folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return subprocess.run(
        [PROGRAMS / "kubernetes-validate", "--strict", file], capture_output=True, text=True, timeout=120, check=False
    )


def is_kubernetes_own(manifest: Manifest) -> bool:
    return (manifest["apiVersion"], manifest["kind"]) not in SCHEMAS


def test_kubernetes_own_kinds_are_valid(rendered: Rendered, tmp_path: Path) -> None:
    own = [manifest for manifest in rendered.manifests if is_kubernetes_own(manifest)]
    done = kubernetes_validate(own, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = copy.deepcopy(own)
    next(each for each in wrong if each["kind"] == "Deployment")["spec"]["replica"] = 2
    assert kubernetes_validate(wrong, tmp_path).returncode != 0, "it sees a field that there is not"


def test_other_kinds_are_valid(rendered: Rendered) -> None:
    for manifest in rendered.manifests:
        if not is_kubernetes_own(manifest):
            jsonschema.validate(manifest, SCHEMAS[manifest["apiVersion"], manifest["kind"]])


def test_each_schema_is_of_something_that_is_there() -> None:
    rendered = render(MANIFESTS / "overlays/cpu")
    assert set(SCHEMAS) <= {(each["apiVersion"], each["kind"]) for each in rendered.manifests}


def test_all_is_in_one_namespace_that_is_restricted(rendered: Rendered) -> None:
    namespace = rendered.one("Namespace")["metadata"]
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    others = [each["metadata"] for each in rendered.manifests if each["kind"] != "Namespace"]
    assert {each["namespace"] for each in others} == {namespace["name"]}


def render_in_another_namespace(content: Manifest, folder: Path) -> str:
    """As an overlay of an operator's own, whose paths begin at the repository."""
    for key in ("resources", "components", "transformers"):
        places = [ROOT / place.removeprefix("longshort/") for place in content.get(key, [])]
        content = {**content, key: [os.path.relpath(place, folder) for place in places]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({**content, "namespace": "prod"}))
    return render_text(folder)


OWN = yaml.safe_load(block_of(PAGE, "apiVersion:").code)
COMPONENTS = [
    [f"longshort/deploy/kubernetes/components/{name}" for name in names]
    for names in (["monitoring"], ["monitoring", "keda", "mtls"], ["monitoring", "hpa"], ["keda"], [])
]


@pytest.mark.parametrize(
    "content",
    [*({**OWN, "components": names} for names in COMPONENTS),
     *({**OWN, "components": [], "resources": [f"longshort/deploy/kubernetes/overlays/{name}"]} for name in OVERLAYS)],
)  # fmt: skip
def test_an_overlay_like_the_documents_puts_all_into_its_own_namespace(content: Manifest, tmp_path: Path) -> None:
    text = render_in_another_namespace(content, tmp_path)
    assert "namespace: prod\n" in text
    assert not re.findall(r".*(?:namespace[:=]\W+longshort\b|\.longshort\.).*", text)
    rendered = Rendered(list(yaml.safe_load_all(text)))
    assert rendered.one("Namespace")["metadata"]["name"] == "prod"
    for scaled in rendered.of_kind("ScaledObject"):
        for trigger in scaled["spec"]["triggers"]:
            assert '{namespace="prod"}' in trigger["metadata"]["query"]


def test_pods_keep_to_the_restricted_standard(rendered: Rendered) -> None:
    pod = rendered.pod["spec"]
    security = pod["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] == security["runAsGroup"] == USER
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & set(pod)
    assert all({"configMap", "secret", "persistentVolumeClaim", "emptyDir"} & set(each) for each in pod["volumes"])
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not any("hostPort" in port for port in container.get("ports", []))


def test_servers_have_no_token_of_kubernetes(rendered: Rendered) -> None:
    account = rendered.one("ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert rendered.pod["spec"]["automountServiceAccountToken"] is False
    assert rendered.pod["spec"]["serviceAccountName"] == account["metadata"]["name"]


def selectors(rendered: Rendered) -> Iterator[tuple[str, dict[str, str]]]:
    """All that select the servers' pods, and what they select by."""
    deployment = rendered.one("Deployment")["spec"]
    yield "Deployment", deployment["selector"]["matchLabels"]
    for constraint in deployment["template"]["spec"]["topologySpreadConstraints"]:
        yield "topologySpreadConstraint", constraint["labelSelector"]["matchLabels"]
    for service in rendered.of_kind("Service"):
        yield service["metadata"]["name"], service["spec"]["selector"]
    yield "PodDisruptionBudget", rendered.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    yield "NetworkPolicy", rendered.one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]


def test_selectors_meet_the_pods_labels(rendered: Rendered) -> None:
    labels = rendered.pod["metadata"]["labels"]
    for name, selector in selectors(rendered):
        assert selector and selector.items() <= labels.items(), name


def test_named_ports_exist(rendered: Rendered) -> None:
    ports = {port["name"]: port["containerPort"] for port in rendered.container["ports"]}
    options = rendered.options()
    assert ports == {name: int(options[option].rpartition(":")[2]) for name, option in
                     (("grpc", "listen"), ("http", "http-listen"))}  # fmt: skip
    for service in rendered.of_kind("Service"):
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in ports and ports[port["targetPort"]] == port["port"]
    for rule in rendered.one("NetworkPolicy")["spec"]["ingress"]:
        assert {port["port"] for port in rule["ports"]} <= set(ports)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert rendered.container[probe]["httpGet"]["port"] in ports


def test_prometheus_reads_each_server_once_and_as_the_alerts_expect() -> None:
    for overlay in OVERLAYS:
        rendered = render(MANIFESTS / "overlays" / overlay)
        monitor = rendered.one("ServiceMonitor")["spec"]
        selector = monitor["selector"]["matchLabels"]
        (service,) = [
            each for each in rendered.of_kind("Service") if selector.items() <= each["metadata"]["labels"].items()
        ]
        assert service["spec"]["clusterIP"] == "None"
        (endpoint,) = monitor["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
        assert service["metadata"]["labels"][monitor["jobLabel"]] == "longshort", "a job of servers only"
        assert (
            endpoint.get("scheme", "http")
            == rendered.container["readinessProbe"]["httpGet"].get("scheme", "HTTP").lower()
        )


def test_prometheus_is_let_in(rendered: Rendered) -> None:
    rules = rendered.one("NetworkPolicy")["spec"]["ingress"]
    from_where = {port["port"]: rule["from"] for rule in rules for port in rule["ports"]}
    (scraper,) = from_where["http"]
    assert scraper["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    for scaled in rendered.of_kind("ScaledObject"):
        for trigger in scaled["spec"]["triggers"]:
            assert ".monitoring.svc:" in trigger["metadata"]["serverAddress"]


def fewest_servers(rendered: Rendered) -> int:
    for kind, field in (("ScaledObject", "minReplicaCount"), ("HorizontalPodAutoscaler", "minReplicas")):
        for scaler in rendered.of_kind(kind):
            return scaler["spec"][field]
    return rendered.one("Deployment")["spec"]["replicas"]


def test_the_disruption_budget_leaves_servers(rendered: Rendered) -> None:
    assert rendered.one("PodDisruptionBudget")["spec"]["maxUnavailable"] < fewest_servers(rendered)


def test_only_scalers_scale_the_servers(rendered: Rendered) -> None:
    scalers = rendered.of_kind("ScaledObject") + rendered.of_kind("HorizontalPodAutoscaler")
    deployment = rendered.one("Deployment")
    assert len(scalers) + ("replicas" in deployment["spec"]) == 1
    for scaler in scalers:
        assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]


def test_the_drain_fits_into_the_grace_period(rendered: Rendered) -> None:
    options = rendered.options()
    drain = seconds(options["drain-delay"]) + seconds(options["drain-timeout"])
    assert rendered.pod["spec"]["terminationGracePeriodSeconds"] >= drain + 5, "docs/operations/run.md"
    assert seconds(options["drain-delay"]) >= 5, "a cluster takes some seconds to send connections elsewhere"
    assert "lifecycle" not in rendered.container, "while a hook sleeps, the server would say that it is ready"


def test_limits_are_what_is_reserved(rendered: Rendered) -> None:
    """The server's caches fill its limit, so a smaller request would let other pods reserve the same memory."""
    resources = rendered.container["resources"]
    for resource in ("cpu", "memory"):
        assert resources["requests"][resource] == resources["limits"][resource]


def test_what_is_mounted_is_there_and_not_written(rendered: Rendered) -> None:
    pod = rendered.pod["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = rendered.container["volumeMounts"]
    assert {mount["name"] for mount in mounts} == set(volumes)
    assert all(mount["readOnly"] and "subPath" not in mount for mount in mounts)
    claims = {claim["metadata"]["name"] for claim in rendered.of_kind("PersistentVolumeClaim")}
    used = {each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "persistentVolumeClaim" in each}
    assert claims == used
    (models,) = [mount["mountPath"] for mount in mounts if mount["name"] == "models"]
    assert rendered.options()["model-repository"] == models


def test_secrets_are_for_the_servers_eyes_and_have_the_files_that_options_name() -> None:
    rendered = render(MANIFESTS / "overlays/mtls")
    made = documented_secrets()
    named = [value for value in rendered.options().values() if value.startswith("/etc/longshort-")]
    assert len(named) == 5
    assert rendered.options()["tls-client-ca"] not in {f"/etc/longshort-tls/{name}" for name in made["longshort-tls"]}
    assert rendered.pod["spec"]["securityContext"]["fsGroup"] == USER
    for mount, secret in rendered.secret_mounts().items():
        assert secret["defaultMode"] == 0o440, "the group is the server's; the server refuses what all may read"
        files = {Path(value).name for value in named if value.startswith(f"{mount}/")}
        assert files and files <= made[secret["secretName"]]
    endpoint = rendered.one("ServiceMonitor")["spec"]["endpoints"][0]
    for reference in (endpoint["tlsConfig"]["ca"]["secret"], endpoint["authorization"]["credentials"]):
        assert reference["key"] in made[reference["name"]]


def documented_secrets() -> dict[str, set[str]]:
    """The keys of each secret that the document makes."""
    secrets = {}
    for words in commands_of(PAGE):
        if "secret" in words and "create" in words:
            name = words[words.index("generic") + 1]
            files = [word.removeprefix("--from-file=") for word in words if word.startswith("--from-file=")]
            secrets[name] = {file.partition("=")[0] if "=" in file else Path(file).name for file in files}
    return secrets


def test_generated_files_are_what_deploy_has(tmp_path: Path) -> None:
    subprocess.run([sys.executable, MANIFESTS / "generate", f"--out={tmp_path}"], check=True, timeout=60)
    for made in (path for path in tmp_path.rglob("*") if path.is_file()):
        committed = MANIFESTS / "components" / made.relative_to(tmp_path)
        assert committed.read_text() == made.read_text(), "run deploy/kubernetes/generate"
    alerts = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    assert render(MANIFESTS / "overlays/cpu").one("PrometheusRule")["spec"] == alerts


def test_prometheus_understands_what_scalers_ask(tmp_path: Path) -> None:
    triggers = render(MANIFESTS / "overlays/cpu").one("ScaledObject")["spec"]["triggers"]
    rules: list[Any] = [{"record": each["name"], "expr": each["metadata"]["query"]} for each in triggers]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "scaler", "rules": rules}]}))
    check("check", "rules", file)


def test_a_prometheus_that_knows_no_server_is_not_taken_for_servers_with_nothing_to_do() -> None:
    """KEDA treats an empty answer as 0 unless `ignoreNullValues` is false."""
    queued, streams = render(MANIFESTS / "overlays/cpu").one("ScaledObject")["spec"]["triggers"]
    assert queued["metadata"]["ignoreNullValues"] == "false" and " or " not in queued["metadata"]["query"]
    assert streams["metadata"]["query"].endswith(" or vector(0)"), "classifiers have no streams"


def test_the_documents_patch_leaves_the_metric_that_classifiers_have(tmp_path: Path) -> None:
    patch = block_of(PAGE, "patches:").code
    names = {"resources": ["longshort/deploy/kubernetes/overlays/hpa"]}
    text = render_in_another_namespace({**yaml.safe_load(patch), **names}, tmp_path)
    (metric,) = Rendered(list(yaml.safe_load_all(text))).one("HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "longshort_queue_length"


def test_the_document_names_folders_that_there_are() -> None:
    applied = [words[-1] for words in commands_of(PAGE) if words[:3] == ["kubectl", "apply", "-k"]]
    assert applied
    for folder in applied:
        assert (ROOT / folder / "kustomization.yaml").exists()
