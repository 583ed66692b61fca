"""The dashboards as ConfigMaps, as Grafana's sidecar finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.server_process import ROOT

from kubernetes.rendered import Rendered, render_with_components
from kubernetes.test_manifests import kubernetes_validate

# kubectl apply keeps a copy of what it applied in an annotation, and an annotation has at most this many bytes.
MAX_BYTES = 256 << 10


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    return render_with_components(tmp_path_factory.mktemp("kustomize") / "own", "dashboards")


def test_each_dashboard_is_a_map_that_the_sidecar_finds(rendered: Rendered, tmp_path: Path) -> None:
    maps = [each for each in rendered.of_kind("ConfigMap") if "grafana_dashboard" in each["metadata"].get("labels", {})]
    files = {path.name: path.read_text() for path in (ROOT / "deploy/grafana/dashboards").iterdir()}
    assert {name: text for each in maps for name, text in each["data"].items()} == files
    for each in maps:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"]["grafana_folder"] == "Longshort"
        (file,) = each["data"]
        assert file == f"{each['metadata']['name']}.json", "a name that stays, so that no old map is left behind"
        assert len(each["data"][file]) < MAX_BYTES
    done = kubernetes_validate(maps, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_servers_own_map_is_none_of_them(rendered: Rendered) -> None:
    (options,) = [each for each in rendered.of_kind("ConfigMap") if "server.flags" in each["data"]]
    assert "grafana_dashboard" not in options["metadata"].get("labels", {})
