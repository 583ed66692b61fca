"""deploy/observe: all of it in one command."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import signal
import subprocess
import threading
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
        pages = re.findall(r"(?:alerts|queries): (http://\S+)", text)
        assert pages
        for page in pages:
            assert "Prometheus" in get(page), page
        assert "LongshortDown" in get(next(page for page in pages if page.endswith("/alerts")))
        grafana = re.search(r"^Grafana +(.*)", text, re.MULTILINE)[1]
        if shutil.which("grafana"):
            assert grafana.startswith("http://")
        else:
            assert grafana.startswith("not installed")
            assert text.index("No dashboards: Grafana is not installed") < text.index("gRPC "), "before it starts"
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
    checkout = copy_scripts(tmp_path)
    done = subprocess.run([checkout / "deploy/observe"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "Prometheus is not installed" in done.stderr and "deploy/install --tests" in done.stderr


def copy_scripts(folder: Path) -> Path:
    shutil.copytree(ROOT / "deploy", folder / "checkout/deploy")
    return folder / "checkout"


# What answers 200: Debian's Prometheus, with and without its scripts; one that its authors built; one without pages.
@pytest.mark.parametrize(
    ("served", "said"),
    [
        (["classic/alerts", "classic/graph", "classic/static/jquery/jquery.min.js"],
         "alerts: URL/classic/alerts  queries: URL/classic/graph"),
        (["classic/alerts", "classic/graph"], "alerts: URL/classic/alerts  (for its page of queries"),
        (["alerts", "graph"], "alerts: URL/alerts  queries: URL/graph"),
        ([], "no pages: queries at URL/api/v1/query?query=up"),
    ],
    ids=["Debian's", "Debian's, without scripts", "upstream's", "none"],
)  # fmt: skip
def test_it_names_only_pages_that_answer(tmp_path: Path, served: list[str], said: str) -> None:
    for name in served:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}"
        functions = re.search(r"(?ms)^answers\(\).*?^find_pages\(\).*?^}\n", OBSERVE.read_text())[0]
        script = f'{functions}\nprometheus_url={url}; find_pages; echo "$pages"'
        done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=60, check=True)
        server.shutdown()
    assert done.stdout.strip().startswith(said.replace("URL", url))


def test_it_teaches_itself() -> None:
    done = subprocess.run([OBSERVE, "--help"], capture_output=True, text=True, timeout=60, check=True)
    for word in ("Ctrl-C", "--load", "--free-ports", "--model-repository", "not installed"):
        assert word in done.stdout
    wrong = subprocess.run([OBSERVE, "--lod"], capture_output=True, text=True, timeout=60, check=False)
    assert wrong.returncode == 2 and "--lod" in wrong.stderr
