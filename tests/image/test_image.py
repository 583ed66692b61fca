"""The image, run by podman and runc as another user would: what is in it, how it serves, and how it stops."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.certificates import Authority
from integration.server_process import ROOT, wait_until

from image.conftest import IMAGE, Container, can_limit_memory, podman, run_options

USER = 65532


@pytest.fixture(scope="module")
def container(start_container: Callable[..., Container]) -> Container:
    """The demo as it is, with this checkout's photo and texts at /samples."""
    started = start_container(options=(f"--volume={ROOT}/deploy:/samples:ro",))
    started.wait_until_ready()
    return started


def status_of(pid: int, field: str) -> str:
    return re.search(rf"^{field}:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]


def test_it_classifies_an_image(container: Container) -> None:
    done = container.execute("longshort", "--model=flowers", "classify", "--json", "/samples/photo.jpg")
    assert json.loads(done.stdout)["classification"]["classes"][0]["label"] == "sunflower", done.stdout


def test_it_scores_a_text(container: Container) -> None:
    done = container.execute("longshort", "--model=enwiki", "score", "/samples/paragraph.txt")
    assert "bits/byte" in done.stdout


def test_it_streams_a_text(container: Container) -> None:
    command = ["longshort", "--model=enwiki", "generate", "--prompt=A lighthouse", "--max-tokens=20", "--json"]
    lines = [json.loads(line) for line in container.execute(*command).stdout.splitlines()]
    assert sum("delta" in line for line in lines) > 1
    assert lines[-1]["summary"]["usage"]["generated_tokens"] == "20"


def test_it_runs_without_privileges_and_writes_nothing(container: Container) -> None:
    assert status_of(container.pid, "Uid").split() == [str(USER)] * 4
    assert status_of(container.pid, "Gid").split() == [str(USER)] * 4
    assert int(status_of(container.pid, "CapBnd"), 16) == 0
    assert status_of(container.pid, "NoNewPrivs") == "1"
    mounts = Path(f"/proc/{container.pid}/mountinfo").read_text().splitlines()
    root = next(line.split() for line in mounts if line.split()[4] == "/")
    assert "ro" in root[5].split(",")


def test_it_listens_beyond_its_own_loopback(container: Container) -> None:
    lines = Path(f"/proc/{container.pid}/net/tcp").read_text().splitlines()[1:]
    listening = {line.split()[1] for line in lines if line.split()[3] == "0A"}
    assert listening == {f"00000000:{8500:04X}", f"00000000:{8501:04X}"}


def test_its_memory_is_limited(container: Container) -> None:
    if not can_limit_memory():
        pytest.skip("no cgroup can be made here")
    files = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
    read = container.execute("sh", "-c", f"cat {files[0]} || cat {files[1]}").stdout
    assert int(read) == 2 << 30


def test_it_is_made_of_what_serves_and_nothing_else(container: Container) -> None:
    root = Path(f"/proc/{container.pid}/root")
    programs = {path.name for folder in ("usr/bin", "usr/sbin", "usr/local/bin") for path in (root / folder).iterdir()}
    assert {"longshort", "longshort-server", "sh"} < programs
    unwanted = ("cc", "c++*", "*gcc*", "*g++*", "ld", "as", "make", "cmake", "ninja", "python*", "pip*", "curl", "wget")
    assert [name for name in programs if any(fnmatch.fnmatch(name, one) for one in unwanted)] == []
    files = [path for path in (root / "usr").rglob("*") if path.suffix in (".a", ".h", ".hpp", ".py", ".pyc")]
    # Debian's libstdc++ brings a script for debuggers.
    assert [path for path in files if "libstdc" not in str(path)] == []
    # The volumes of tests/image/build leave their empty places.
    places = ("build", "ccache", "deploy", "installed", "longshort")
    left = [path for folder in places for path in (root / folder).rglob("*")]
    assert [path for path in left if path.is_file()] == []
    libraries = set(container.execute("ls", "/usr/local/lib/longshort").stdout.split())
    assert "libtorch_cpu.so" in libraries and "libtorch_cuda.so" not in libraries
    programs_of_it = [f"/usr/local/bin/{name}" for name in ("longshort-server", "longshort")]
    linked = container.execute("ldd", *programs_of_it).stdout
    assert "not found" not in linked
    assert libraries == {line.split()[0] for line in linked.splitlines() if "/longshort/lib" in line}
    assert "Package: libopencv-core406\n" in container.execute("cat", "/var/lib/dpkg/status.d/libopencv-core406").stdout


def test_its_description_is_right(container: Container) -> None:
    [image] = json.loads(podman("image", "inspect", IMAGE).stdout)
    config = image["Config"]
    assert config["User"] == f"{USER}:{USER}"
    assert config["StopSignal"] == "SIGTERM"
    assert set(config["ExposedPorts"]) == {"8500/tcp", "8501/tcp"}
    version = container.execute("longshort-server", "--version").stdout.split()[1]
    prefix = "org.opencontainers.image."
    labels = {name.removeprefix(prefix): value for name, value in config["Labels"].items() if name.startswith(prefix)}
    assert labels["version"] == version and re.fullmatch("[0-9a-f]{40}", labels["revision"])
    assert labels["licenses"] == "Apache-2.0"
    assert image["Size"] < 520e6, "docs/operations/container.md says how large it is"


def test_without_a_decision_it_does_not_start() -> None:
    done = podman("run", "--rm", *run_options(), IMAGE, "--check-config", check=False)
    assert done.returncode == 1
    assert "--listen=0.0.0.0:8500" in done.stderr and "--tls-certificate" in done.stderr and "--insecure" in done.stderr


def test_with_a_certificate_it_is_healthy_too(start_container: Callable[..., Container], tmp_path: Path) -> None:
    Authority("servers").server().write(tmp_path, "server")
    for file in tmp_path.iterdir():
        os.chown(file, USER, USER)
    tmp_path.chmod(0o755)
    options = ("--tls-certificate=/tls/server.pem", "--tls-key=/tls/server.key")
    started = start_container(*options, options=(f"--volume={tmp_path}:/tls:ro",))
    started.wait_until_ready()


def test_it_drains_within_its_grace_period(start_container: Callable[..., Container], tmp_path: Path) -> None:
    container = start_container("--insecure", "--drain-timeout=60s")
    container.wait_until_ready()
    with container.running_stream(tmp_path, tokens=5000):
        podman("stop", "--time=65", container.id)
    state = container.inspect()["State"]
    assert state["ExitCode"] == 0 and not state["OOMKilled"]
    assert "drained calls_cut_off=0" in container.log()


def test_a_container_that_drains_is_not_healthy(start_container: Callable[..., Container], tmp_path: Path) -> None:
    container = start_container("--insecure", "--drain-timeout=60s")
    container.wait_until_ready()
    with container.running_stream(tmp_path, tokens=60000):
        podman("kill", "--signal=TERM", container.id)
        wait_until(lambda: container.execute("longshort", "ready", "--timeout=4s", check=False).returncode == 3)
        assert podman("healthcheck", "run", container.id, check=False).returncode == 1
        podman("kill", "--signal=TERM", container.id)
