"""What `cmake --install` lays down: it serves wherever it is moved to, without the checkout's .venv."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.server_process import BINARY, ROOT, Server

pytestmark = pytest.mark.not_sanitized("about files and packages; the sanitizers need packages of their own")

BUILD = BINARY.parents[1]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An installed tree that was moved."""
    folder = tmp_path_factory.mktemp("installed")
    for part in ("serve", "train"):
        command = ["cmake", "--install", BUILD, "--component", part, "--prefix", folder / "before", "--strip"]
        subprocess.run(command, check=True, capture_output=True)
    yield (folder / "before").rename(folder / "moved")
    subprocess.run(["rm", "-r", folder], check=True)


def without_venv(program: Path, folder: Path) -> Path:
    """A script that runs the program where .venv is empty."""
    unshare = "unshare --mount" if os.geteuid() == 0 else "unshare --mount --map-root-user"
    script = folder / f"{program.name}-without-venv"
    script.write_text(
        f'#!/bin/sh\nexec {unshare} sh -c \'mount -t tmpfs none "$0" && exec "$@"\' {ROOT}/.venv {program} "$@"\n'
    )
    script.chmod(0o755)
    return script


def test_it_serves_where_it_was_moved_to(tree: Path, repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path / "run", program=without_venv(tree / "bin/longshort-server", tmp_path)) as server:
        maps = Path(f"/proc/{server.process.pid}/maps").read_text()
        assert f"{tree}/lib/longshort/libtorch_cpu.so" in maps
        assert str(ROOT) not in maps
        client = [without_venv(tree / "bin/longshort", tmp_path), f"--server=127.0.0.1:{server.grpc_port}"]
        done = subprocess.run(
            [*client, "generate", "--prompt=x", "--max-tokens=3", "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and '"generated_tokens":"3"' in done.stdout, done.stdout + done.stderr
        server.terminate()
        assert server.wait() == 0


def test_the_trainer_starts_there(tree: Path, tmp_path: Path) -> None:
    command = [without_venv(tree / "bin/longshort-train", tmp_path), "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("longshort-train ")


def test_the_packages_that_it_needs_are_listed(tree: Path) -> None:
    """Each library that the programs name is in lib/longshort or in a package of the list, and no package is idle."""
    needed: set[str] = set()
    for program in (tree / "bin").iterdir():
        dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        needed |= {line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line}
    needed -= {path.name for path in (tree / "lib/longshort").iterdir()}
    command = ["dpkg", "-S", *(f"*-linux-gnu/{library}" for library in needed)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = (ROOT / "deploy/debian-packages-run.txt").read_text().splitlines()
    assert {line.split(":")[0] for line in found.splitlines()} == {line for line in lines if not line.startswith("#")}


def linked_libraries(tree: Path) -> set[Path]:
    """The files that the programs link, directly or through others."""
    listed = subprocess.run(["ldd", *(tree / "bin").iterdir()], capture_output=True, text=True, check=True).stdout
    return {Path(line.split("=> ")[1].split(" (")[0]) for line in listed.splitlines() if "=> " in line}


def test_with_collected_libraries_it_needs_only_glibc(tree: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(tree, whole)
    command = [ROOT / "deploy/collect-libraries", whole, tmp_path / "status.d"]
    subprocess.run(command, capture_output=True, check=True)
    libraries = linked_libraries(whole)
    outside = {path.name.split(".so")[0] for path in libraries if path.parent.resolve() != whole / "lib/longshort"}
    glibc = {"libc", "libm", "libdl", "libpthread", "librt", "libutil", "libresolv"}
    assert outside <= glibc
    assert {path.name for path in (whole / "lib/longshort").iterdir()} == {
        path.name for path in libraries if path.parent.resolve() == whole / "lib/longshort"
    }, "nothing that is not linked"
    packages = {path.name for path in (tmp_path / "status.d").iterdir()}
    assert {"libgrpc29", "libopencv-core406", "libssl3", "libstdc++6"} < packages
    for package in packages:
        assert (whole / "share/doc/longshort" / package / "copyright").read_text()
        assert (tmp_path / "status.d" / package).read_text().startswith(f"Package: {package}\n")
