"""Components of deploy/kubernetes in combination: none undoes what another, or an overlay, has set."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.server_process import ROOT

from kubernetes.rendered import MANIFESTS, OVERLAYS, Manifest, Rendered, render_with_components
from kubernetes.test_manifests import is_kubernetes_own, kubernetes_validate

USERS = {"runAsUser", "runAsGroup", "fsGroup"}


def has_monitoring(rendered: Rendered) -> bool:
    (endpoint,) = rendered.one("ServiceMonitor")["spec"]["endpoints"]
    tls = "insecure" not in rendered.options()
    authenticated = endpoint.get("scheme") == "https" and {"ca", "serverName"} <= set(endpoint["tlsConfig"])
    return bool(rendered.one("PrometheusRule")) and authenticated == tls == ("authorization" in endpoint)


def has_dashboards(rendered: Rendered) -> bool:
    return rendered.one("ConfigMap", "longshort-overview")["metadata"]["namespace"] == "longshort"


def has_scaler(kind: str) -> Callable[[Rendered], bool]:
    def has(rendered: Rendered) -> bool:
        return bool(rendered.one(kind)) and "replicas" not in rendered.one("Deployment", "longshort")["spec"]

    return has


def has_models_from_image(rendered: Rendered) -> bool:
    (models,) = [volume for volume in rendered.pod["spec"]["volumes"] if volume["name"] == "models"]
    (copier,) = rendered.pod["spec"]["initContainers"]
    return "emptyDir" in models and copier["name"] == "models" and not rendered.of_kind("PersistentVolumeClaim")


def has_tracing(rendered: Rendered) -> bool:
    name, _, port = rendered.options()["otlp-endpoint"].removeprefix("http://").partition(":")
    collector, _ = rendered.one("NetworkPolicy", "longshort")["spec"]["egress"]
    (namespace,) = [to["namespaceSelector"]["matchLabels"].values() for to in collector["to"]]
    return name.split(".")[1:] == [*namespace, "svc"] and int(port) in {each["port"] for each in collector["ports"]}


def has_envoy(rendered: Rendered) -> bool:
    (container,) = rendered.one("Deployment", "envoy")["spec"]["template"]["spec"]["containers"]
    file = Path(container["args"][1])
    (name,) = [each["metadata"]["name"] for each in rendered.of_kind("ConfigMap") if file.name in each["data"]]
    text = rendered.one("ConfigMap", name)["data"][file.name]
    to_servers = re.findall(r"transport_socket_match: \{tls: (\w+)\}", text)
    tls = "false" if "insecure" in rendered.options() else "true"
    return to_servers == [tls, tls]  # of gRPC and of HTTP


def has_mtls(rendered: Rendered) -> bool:
    probes = {rendered.container[probe]["httpGet"].get("scheme") for probe in ("readinessProbe", "livenessProbe")}
    secrets = {secret["secretName"] for secret in rendered.secret_mounts().values()}
    needed = {"tls-certificate", "tls-client-ca", "token-file", "session-key-file"}
    return needed <= set(rendered.options()) and len(secrets) == 3 and probes == {"HTTPS"}


def has_openshift(rendered: Rendered) -> bool:
    security = [each["spec"]["template"]["spec"]["securityContext"] for each in rendered.of_kind("Deployment")]
    return all(each["runAsNonRoot"] and not USERS & set(each) for each in security)


# In the order in which they are listed.
COMPONENTS: dict[str, Callable[[Rendered], bool]] = {
    "monitoring": has_monitoring,
    "dashboards": has_dashboards,
    "keda": has_scaler("ScaledObject"),
    "hpa": has_scaler("HorizontalPodAutoscaler"),
    "models-from-image": has_models_from_image,
    "tracing": has_tracing,
    "envoy": has_envoy,
    "mtls": has_mtls,
    "openshift": has_openshift,
}
SCALERS = {"keda", "hpa"}
IN_OVERLAYS = {
    "cpu": {"monitoring", "keda"},
    "gpu": {"monitoring", "keda"},
    "hpa": {"monitoring", "hpa"},
    "mtls": {"monitoring", "keda", "mtls"},
}


def combinations() -> list[tuple[str, tuple[str, ...]]]:
    """All of two components, and all components with each of the scalers; what an overlay lacks."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for without in SCALERS:
        fitting = [name for name in COMPONENTS if name != without]
        found += [("base", pair) for pair in itertools.combinations(fitting, 2)]
        found.append(("base", tuple(fitting)))
    for overlay in OVERLAYS:
        lacks = [name for name in COMPONENTS if name not in IN_OVERLAYS[overlay] | SCALERS]
        if overlay == "mtls":
            lacks.remove("envoy")  # which must come before mtls
        found += [(f"overlays/{overlay}", (name,)) for name in lacks]
        found.append((f"overlays/{overlay}", tuple(lacks)))
    return sorted(set(found))


def containers(rendered: Rendered) -> list[Manifest]:
    pods = [each["spec"]["template"]["spec"] for each in rendered.of_kind("Deployment")]
    return [one for pod in pods for one in (*pod["containers"], *pod.get("initContainers", []))]


def check_what_all_have(rendered: Rendered) -> None:
    options = rendered.options()
    assert options["model-repository"] == "/models" and options["threads"] == "2"
    assert ("insecure" in options) != ("tls-certificate" in options)
    for container in containers(rendered):
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
        assert container["resources"]["limits"]["memory"]
    for deployment in rendered.of_kind("Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        mounted = {
            mount["name"]
            for one in (*pod["containers"], *pod.get("initContainers", []))
            for mount in one["volumeMounts"]
        }
        assert mounted == {volume["name"] for volume in pod["volumes"]}
    names = [(each["kind"], each["metadata"]["name"]) for each in rendered.manifests]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("of", "components"), combinations(), ids=lambda value: value if isinstance(value, str) else "+".join(value)
)
def test_each_component_has_its_effect_beside_others(of: str, components: tuple[str, ...], tmp_path: Path) -> None:
    rendered = render_with_components(tmp_path / "own", *components, of=of)
    check_what_all_have(rendered)
    overlay = of.removeprefix("overlays/")
    for name in {*components, *IN_OVERLAYS.get(overlay, ())}:
        assert COMPONENTS[name](rendered), name
    if overlay == "gpu":
        assert rendered.options()["devices"] == "cuda:0"
        assert rendered.container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    if len(components) > 2:
        own = [manifest for manifest in rendered.manifests if is_kubernetes_own(manifest)]
        done = kubernetes_validate(own, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("of", "components"),
    [("base", ("mtls", "monitoring")), ("base", ("mtls", "envoy")), ("overlays/mtls", ("envoy",))],
)
def test_what_mtls_must_change_cannot_come_after_it(of: str, components: tuple[str, ...], tmp_path: Path) -> None:
    """Otherwise Prometheus or Envoy would speak without TLS to servers that require it."""
    with pytest.raises(AssertionError, match="args/1 failed: test failed"):
        render_with_components(tmp_path / "own", *components, of=of)


def test_the_component_openshift_is_for_jobs_too(tmp_path: Path) -> None:
    for batch in ("shared", "sidecar"):
        rendered = render_with_components(tmp_path / batch, "openshift", of=f"batch/{batch}")
        security = rendered.one("Job")["spec"]["template"]["spec"]["securityContext"]
        assert security["runAsNonRoot"] and not USERS & set(security)


def test_the_document_lists_the_components_in_their_order() -> None:
    document = (ROOT / "docs/operations/kubernetes.md").read_text()
    table = document[document.index("| component | is |") :].split("\n\n")[0]
    listed = re.findall(r"`([\w-]+)`", "".join(row.split("|")[1] for row in table.splitlines()))
    assert listed == list(COMPONENTS)
    assert set(listed) == {path.name for path in (MANIFESTS / "components").iterdir()}
