"""The wheel of deploy/wheel, installed by a user without root and without a network on Debian 12 and 13.

They have Python, and none of the libraries that the programs link."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.server_process import ROOT

from image.conftest import PYTHON_IMAGE, Container, podman, run_options

USER = 65532
GLIBC = {"ld-linux-x86-64.so.2", *(f"lib{name}.so" for name in ("c", "dl", "m", "pthread", "resolv", "rt", "util"))}


@pytest.fixture(scope="module")
def wheel() -> Path:
    [path] = (ROOT / "build/wheel").glob("*.whl")
    return path


class Machine:
    """A fresh Debian with the wheel at /wheels; what its user writes stays at /home/user."""

    def __init__(self, suite: str, wheel: Path, home: Path) -> None:
        home.chmod(0o755)
        os.chown(home, USER, USER)
        self.home = home
        self.image = f"{PYTHON_IMAGE}:{suite}"
        self.wheel = f"/wheels/{wheel.name}"
        volumes = (f"{home}:/home/user", f"{wheel.parent}:/wheels:ro", f"{ROOT}/deploy:/samples:ro")
        self.options = (f"--user={USER}:{USER}", "--env=HOME=/home/user", *(f"--volume={volume}" for volume in volumes))

    def run(self, *command: str) -> str:
        return podman("run", "--rm", *run_options(), *self.options, self.image, *command).stdout


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One with the wheel in a fresh environment, /home/user/new."""
    made = Machine(request.param, wheel, tmp_path_factory.mktemp(request.param))
    made.run("python3", "-m", "venv", "/home/user/new")
    made.run("/home/user/new/bin/pip", "install", "--no-index", made.wheel)
    yield made
    subprocess.run(["rm", "-r", made.home], check=True)


@pytest.fixture(scope="module")
def server(machine: Machine, start_container: Callable[..., Container]) -> Container:
    new = "/home/user/new"
    check = f"--health-cmd={new}/bin/longshort ready --timeout=4s"
    command = f"{new}/bin/longshort-server", f"--model-repository={new}/share/longshort/models"
    started = start_container(*command, options=(*machine.options, check), image=machine.image)
    started.wait_until_ready()
    return started


def client(server: Container, *arguments: str) -> str:
    return server.execute("/home/user/new/bin/longshort", *arguments).stdout


def test_it_serves_the_demo_models_and_stops(server: Container) -> None:
    listed = client(server, "models")
    assert all(name in listed for name in ("enwiki", "flowers", "languages", "listops")), listed
    photo = client(server, "--model=flowers", "classify", "--json", "/samples/photo.jpg")
    assert json.loads(photo)["classification"]["classes"][0]["label"] == "sunflower"
    assert "bits/byte" in client(server, "--model=enwiki", "score", "/samples/paragraph.txt")
    podman("stop", "--time=40", server.id)
    assert server.inspect()["State"]["ExitCode"] == 0


def test_only_glibc_is_the_machines_own(machine: Machine) -> None:
    linked = machine.run("sh", "-c", "ldd /home/user/new/bin/longshort /home/user/new/bin/longshort-server")
    assert "libtorch_cpu.so" in linked and "not found" not in linked
    paths = [Path(path) for path in re.findall(r"(/\S+) \(0x", linked)]
    outside = {path.name for path in paths if not path.is_relative_to("/home/user/new")}
    assert {name if name in GLIBC else name.rsplit(".", 1)[0] for name in outside} <= GLIBC


def test_its_name_and_size_are_true(wheel: Path, machine: Machine) -> None:
    glibc = re.fullmatch(r"longshort_server-0\.1\.0-py3-none-manylinux_(\d+)_(\d+)_x86_64\.whl", wheel.name)
    assert glibc, wheel.name
    new = machine.home / "new"
    files = [*(new / "bin").glob("longshort*"), *(new / "lib/longshort").iterdir()]
    versions = subprocess.run(["readelf", "--version-info", *files], capture_output=True, text=True, check=True).stdout
    needed = {(int(major), int(minor)) for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", versions)}
    assert (int(glibc[1]), int(glibc[2])) == max(needed)
    assert wheel.stat().st_size < 155e6, "docs/operations/wheel.md says 150 MB"


def test_its_licences_are_there(machine: Machine) -> None:
    [licences] = machine.home.glob("new/lib/python3*/site-packages/longshort_server-*.dist-info/licenses")
    packages = ("libgrpc29", "libopencv-core406", "libstdc++6", "libgcc-s1")
    for name in ("LICENSE", "NOTICE", "torch-*/LICENSE", *(f"{package}/copyright" for package in packages)):
        [path] = licences.glob(name)
        assert path.read_text()


def test_pip_removes_all_its_files(machine: Machine) -> None:
    machine.run("/home/user/new/bin/pip", "uninstall", "--yes", "longshort-server")
    left = [path.relative_to(machine.home) for path in (machine.home / "new").rglob("*") if path.is_file()]
    assert left and not [path for path in left if "longshort" in str(path)]
