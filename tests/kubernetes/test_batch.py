"""deploy/kubernetes/batch: the Jobs are valid, and their parts come to what one run comes to."""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import longshort.batch
import pytest
import yaml
from integration import model_directory
from integration.server_process import BINARY, ROOT, Server, wait_until
from longshort.batch.inputs.shards import Part
from longshort.batch.run.program import make_parser, run

from kubernetes.rendered import MANIFESTS, Rendered, commands_of, render
from kubernetes.test_manifests import USER, kubernetes_validate

BATCH = MANIFESTS / "batch"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@pytest.fixture(scope="module", params=["shared", "sidecar"])
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return render(BATCH / request.param)


def pod_of(rendered: Rendered) -> dict[str, Any]:
    return rendered.one("Job")["spec"]["template"]["spec"]


def arguments_of(rendered: Rendered, index: int) -> list[str]:
    """Of the pod with this index, as Kubernetes fills them in."""
    (container,) = pod_of(rendered)["containers"]
    (variable,) = container["env"]
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == INDEX
    return [argument.replace(f"$({variable['name']})", str(index)) for argument in container["args"]]


def test_the_jobs_are_valid(rendered: Rendered, tmp_path: Path) -> None:
    done = kubernetes_validate(rendered.manifests, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = copy.deepcopy(rendered.manifests)
    next(each for each in wrong if each["kind"] == "Job")["spec"]["completion"] = 2
    assert kubernetes_validate(wrong, tmp_path).returncode != 0, "it sees a field that there is not"


def test_pods_keep_to_the_restricted_standard_and_have_no_token(rendered: Rendered) -> None:
    pod = pod_of(rendered)
    assert {each["metadata"]["namespace"] for each in rendered.manifests} == {"longshort"}
    security = pod["securityContext"]
    assert security["runAsNonRoot"] and security["runAsUser"] == security["runAsGroup"] == USER
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == rendered.one("ServiceAccount")["metadata"]["name"]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = [mount for one in (*pod["containers"], *pod.get("initContainers", [])) for mount in one["volumeMounts"]]
    assert {mount["name"] for mount in mounts} == volumes


def test_a_pod_is_replaced_when_it_has_ended_and_what_is_wrong_for_all_ends_the_job(rendered: Rendered) -> None:
    job = rendered.one("Job")["spec"]
    assert job["podReplacementPolicy"] == "Failed" and job["template"]["spec"]["restartPolicy"] == "Never"
    ignored, failed, failed_index = job["podFailurePolicy"]["rules"]
    assert ignored["action"] == "Ignore"
    assert (failed["action"], failed["onExitCodes"]["values"]) == ("FailJob", [1, 2]), "docs/batch.md, exit codes"
    assert (failed_index["action"], failed_index["onExitCodes"]["values"]) == ("FailIndex", [6])


def test_a_job_that_has_ended_can_be_applied_again(rendered: Rendered) -> None:
    """Kubernetes changes no Job's pods, and applying one that has ended does nothing: it must be gone."""
    assert rendered.one("Job")["spec"]["ttlSecondsAfterFinished"] > 0
    words = commands_of("docs/batch.md")
    assert ["kubectl", "-n", "longshort", "delete", "job", rendered.one("Job")["metadata"]["name"]] in words


def test_pods_go_to_nodes_of_their_images_and_tell_why_they_end(rendered: Rendered) -> None:
    pod = pod_of(rendered)
    assert pod["nodeSelector"]["kubernetes.io/arch"] == "amd64"
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_every_shard_is_had_by_exactly_one_index(rendered: Rendered) -> None:
    job = rendered.one("Job")["spec"]
    assert job["completionMode"] == "Indexed"
    options = [make_parser().parse_args(arguments_of(rendered, index)) for index in range(job["completions"])]
    assert {each.parts for each in options} == {job["completions"]}
    check_parts([Part(each.part, each.parts) for each in options])


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 8, 100, 1000])
def test_every_shard_is_had_once_however_many_parts_there_are(parts: int) -> None:
    check_parts([Part(index, parts) for index in range(parts)])


def check_parts(parts: list[Part]) -> None:
    """Of one large file, of many small ones, and of both."""
    for shards in ([3 * len(parts) + 1], [1] * (2 * len(parts)), [5, 0, 1, 17, 2]):
        had = [sum(part.has(source, shard) for part in parts) for source, n in enumerate(shards) for shard in range(n)]
        assert had == [1] * sum(shards)
        shares = [sum(part.has(s, shard) for s, n in enumerate(shards) for shard in range(n)) for part in parts]
        if len(shards) != 5:
            assert max(shares) - min(shares) <= 1


def test_the_shared_servers_let_the_pods_in_and_each_is_found() -> None:
    rendered, servers = render(BATCH / "shared"), render(MANIFESTS / "overlays/cpu")
    labels = rendered.one("Job")["spec"]["template"]["metadata"]["labels"]
    for rule in servers.one("NetworkPolicy")["spec"]["ingress"]:
        for source in rule["from"]:
            if "podSelector" in source:
                assert source["podSelector"]["matchLabels"].items() <= labels.items()
    # No Service selects them as servers.
    for service in servers.of_kind("Service"):
        assert not service["spec"]["selector"].items() <= labels.items()
    (server,) = make_parser().parse_args(arguments_of(rendered, 0)).server
    name, _, port = server.partition(":")
    service = servers.one("Service", name)["spec"]
    assert service["clusterIP"] == "None" and int(port) in {each["port"] for each in service["ports"]}


def test_the_sidecar_is_what_the_program_asks_for_by_itself(tmp_path: Path) -> None:
    rendered = render(BATCH / "sidecar")
    (server,) = pod_of(rendered)["initContainers"]
    assert server["restartPolicy"] == "Always", "a sidecar"
    assert make_parser().parse_args(arguments_of(rendered, 0)).server is None
    assert "--listen=127.0.0.1:8500" in server["args"], "the program's default"
    model_directory.write(tmp_path)
    (cpus,) = server["env"]
    assert cpus["valueFrom"]["resourceFieldRef"] == {"resource": "requests.cpu", "divisor": "1"}
    here = [argument.replace("/models", str(tmp_path)) for argument in server["args"]]
    here = [argument.replace(f"$({cpus['name']})", server["resources"]["requests"]["cpu"]) for argument in here]
    command = [BINARY, *here, "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--check-config"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    claims = {each["claimName"] for each in (v["persistentVolumeClaim"] for v in pod_of(rendered)["volumes"])}
    own = {each["metadata"]["name"] for each in rendered.of_kind("PersistentVolumeClaim")}
    servers = {each["metadata"]["name"] for each in render(MANIFESTS / "base").of_kind("PersistentVolumeClaim")}
    assert claims == own | servers


ROWS = 400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Of the model that the Jobs name, one document after the other: the same bits every time."""
    repository = tmp_path_factory.mktemp("repository")
    model_directory.write(repository, "enwiki")
    with Server(repository, tmp_path_factory.mktemp("server"), "--max-streams=1", "--threads=1") as running:
        yield running


def test_the_parts_come_to_what_one_run_comes_to_though_a_pod_is_killed(server: Server, tmp_path: Path) -> None:
    rendered = render(BATCH / "shared")
    folder = tmp_path / "corpus"
    (folder / "documents").mkdir(parents=True)
    make_parquet(folder / "documents/a.parquet")
    where = f"127.0.0.1:{server.grpc_port}"
    own = ["--shard-rows=10", "--quiet"]

    def arguments(index: int) -> list[str]:
        given = [each.replace("/corpus/", f"{folder}/") for each in arguments_of(rendered, index)]
        return [each.replace("longshort-servers:8500", where) for each in given if each != "--json"] + own

    killed = subprocess.Popen([sys.executable, "-m", "longshort.batch", *arguments(0)], stderr=subprocess.DEVNULL)
    done = folder / "scored/manifest"
    wait_until(lambda: any(done.glob("shard-*")) or killed.poll() is not None)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    for index in reversed(range(rendered.one("Job")["spec"]["completions"])):
        assert run(arguments(index)) == 0
    # The same command without parts finds nothing left to do.
    documents = str(folder / "documents/*.parquet")
    options: dict[str, Any] = {"server": where, "model": "enwiki", "shard_rows": 10}
    whole = longshort.batch.score(documents, str(folder / "scored"), **options)
    assert (whole.all_rows, whole.all_errors, whole.shards, whole.shards_before) == (ROWS, 0, 0, ROWS // 10)
    longshort.batch.score(documents, str(tmp_path / "alone"), **options)
    for path in sorted((tmp_path / "alone/rows").iterdir()):
        assert path.read_bytes() == (folder / "scored/rows" / path.name).read_bytes()


def make_parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": [f"document {i} " * (1 + i % 7) for i in range(ROWS)]}), path)


def test_the_page_names_what_there_is() -> None:
    page = (ROOT / "docs/batch.md").read_text()
    for folder in ("shared", "sidecar"):
        assert f"kubectl apply -k deploy/kubernetes/batch/{folder}" in page
    assert "deploy/kubernetes/batch/Dockerfile" in page and (BATCH / "Dockerfile").exists()
    options = yaml.safe_load((BATCH / "base/job.yaml").read_text())["spec"]
    assert json.dumps(options["completions"]) in page
