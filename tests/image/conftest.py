"""Containers of the images that tests/image/build has made."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from integration.server_process import ROOT, wait_until

IMAGE = "localhost/longshort:demo"
BATCH_IMAGE = "localhost/longshort-batch"
PYTHON_IMAGE = "localhost/longshort-python"
# A cgroup tree that can be written: v2's, or v1's of memory.
CGROUPS = [Path("/sys/fs/cgroup/cgroup.subtree_control"), Path("/sys/fs/cgroup/memory")]


def podman(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "tests/image/containers", "podman", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@cache
def can_limit_memory() -> bool:
    for path in CGROUPS:
        try:
            # Other processes of the tests probe at the same time, so each has a name of its own.
            probe = tempfile.mkdtemp(prefix="longshort-probe-", dir=path if path.is_dir() else path.parent)
        except OSError:
            continue
        os.rmdir(probe)
        return True
    return False


def run_options() -> list[str]:
    """What a careful operator gives, and what a machine that is itself a container needs."""
    # The default asks for more descriptors than this process may hand on.
    options = ["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096", "--network=none"]
    options += ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]
    return [*options, "--memory=2g"] if can_limit_memory() else [*options, "--cgroups=disabled"]


class Container:
    """A running container; its network is its own loopback."""

    def __init__(self, *arguments: str, options: tuple[str, ...] = (), image: str = IMAGE) -> None:
        self.id = podman("run", "--detach", *run_options(), *options, image, *arguments).stdout.strip()
        self.pid: int = self.inspect()["State"]["Pid"]

    def inspect(self) -> dict[str, Any]:
        return json.loads(podman("container", "inspect", self.id).stdout)[0]

    def execute(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return podman("exec", self.id, *command, check=check)

    @contextmanager
    def running_stream(self, folder: Path, tokens: int) -> Iterator[None]:
        """While a client in the container reads a stream."""
        command = ["longshort", "--model=enwiki", "generate", "--prompt=A", f"--max-tokens={tokens}", "--json"]
        whole = [ROOT / "tests/image/containers", "podman", "exec", self.id, *command]
        output = folder / "stream.jsonl"
        with output.open("wb") as file, subprocess.Popen(whole, stdout=file, stderr=subprocess.STDOUT) as client:
            wait_until(lambda: "delta" in output.read_text())
            yield
            client.wait(60)

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            assert self.inspect()["State"]["Running"], f"the container has ended:\n{self.log()}"
            return podman("healthcheck", "run", self.id, check=False).returncode == 0

        wait_until(ready)

    def log(self) -> str:
        done = podman("logs", self.id)
        return done.stdout + done.stderr

    def remove(self) -> None:
        podman("rm", "--force", "--time=0", self.id)


@pytest.fixture(scope="session")
def start_container() -> Iterator[Callable[..., Container]]:
    """Starts containers, which end with the tests."""
    started: list[Container] = []

    def start(*arguments: str, options: tuple[str, ...] = (), image: str = IMAGE) -> Container:
        started.append(Container(*arguments, options=options, image=image))
        return started[-1]

    yield start
    for container in started:
        container.remove()
