"""deploy/observe: all of it in one command."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
from integration import model_directory
from integration.server_process import ROOT, wait_until

OBSERVE = ROOT / "deploy/observe"


def get(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as answer:
        return answer.read().decode()


def test_it_starts_all_says_where_and_ends_all(tmp_path: Path) -> None:
    models = tmp_path / "models"
    model_directory.write(models)
    said = tmp_path / "said"
    with said.open("wb") as out:
        observe = subprocess.Popen([OBSERVE, "--free-ports", f"--model-repository={models}"], stdout=out, stderr=out)

    def ready() -> bool:
        assert observe.poll() is None, said.read_text()
        return "Ctrl-C ends all of it" in said.read_text()

    try:
        wait_until(ready, 120)
        text = said.read_text()
        metrics, prometheus = (
            re.search(rf"^{name} +(http://\S+)", text, re.MULTILINE)[1] for name in ("metrics", "Prometheus")
        )
        assert 'model="tiny"' in get(metrics)
        wait_until(lambda: '"value"' in get(f"{prometheus}/api/v1/query?query=longshort_build_info"))
        assert "LongshortDown" in get(f"{prometheus}/api/v1/rules")
        grafana = re.search(r"^Grafana +(.*)", text, re.MULTILINE)[1]
        assert grafana.startswith("http://" if shutil.which("grafana") else "not installed")
        children = children_of(observe.pid)
        assert {"longshort-serve", "prometheus"} <= set(children.values()), "of a name the system has 15 letters"
        observe.send_signal(signal.SIGINT)
        assert observe.wait(60) == 0, said.read_text()
        assert not any(Path(f"/proc/{child}").exists() for child in children)
    finally:
        observe.send_signal(signal.SIGTERM)  # nothing happens if it has ended
        observe.wait(60)


def children_of(process: int) -> dict[int, str]:
    """The names of the processes that it has started, by their numbers."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, name, parent = re.match(r"(\d+) \((.*)\) \S (\d+)", stat.read_text()).groups()
        except OSError:  # it has ended
            continue
        if int(parent) == process:
            children[int(number)] = name
    return children


@pytest.mark.skipif(shutil.which("prometheus") is not None, reason="it is installed")
def test_it_says_what_is_not_installed(tmp_path: Path) -> None:
    """In a checkout without build/."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "deploy", checkout / "deploy")
    done = subprocess.run([checkout / "deploy/observe"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "Prometheus is not installed" in done.stderr and "deploy/install --tests" in done.stderr


def test_it_teaches_itself() -> None:
    done = subprocess.run([OBSERVE, "--help"], capture_output=True, text=True, timeout=60, check=True)
    for word in ("Ctrl-C", "--load", "--free-ports", "--model-repository", "not installed"):
        assert word in done.stdout
    wrong = subprocess.run([OBSERVE, "--lod"], capture_output=True, text=True, timeout=60, check=False)
    assert wrong.returncode == 2 and "--lod" in wrong.stderr
