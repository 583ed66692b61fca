"""The README's commands: each line runs as it stands there, except that ports and folders are replaced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import longshort
import pytest

from integration.server_process import BINARY, ROOT, Server

pytestmark = pytest.mark.not_sanitized("about the words of the README")

README = (ROOT / "README.md").read_text()
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "models/zoo").rglob("*.md")]


def blocks(heading: str, language: str) -> list[str]:
    """The blocks of code in this language below a heading."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(ROOT / "models/zoo", tmp_path_factory.mktemp("zoo")) as server:
        yield server


def client_line(line: str, server: Server) -> str:
    """A line of the README that calls this server, and this build's client."""
    line = line.replace("build/release/bin/longshort ", f"{BINARY.with_name('longshort')} --server=127.0.0.1:8500 ")
    return line.replace(":8500", f":{server.grpc_port}").replace(":8501", f":{server.http_port}")


def run(command: str, **environment: str) -> str:
    """Standard output of a shell's command that ends well."""
    names = {**os.environ, "no_proxy": "127.0.0.1", **environment}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=ROOT,
        env=names,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_first_call_is_on_the_first_screen() -> None:
    assert blocks("The first call", "sh")[0].startswith("deploy/quickstart --keep  #")
    assert README[: README.index("curl 127.0.0.1:8501/longshort.v1.Inference/Generate")].count("\n") < 35
    assert README.count("\n") <= 120


@pytest.mark.parametrize(
    ("page", "text", "label"),
    [
        ("README.md", "deploy/letter.txt", "German"),
        ("clients/python/README.md", "Wohin fährt dieser Zug, und wann kommt er an?", "German"),
        ("docs/other_languages.md", "Wohin fährt dieser Zug, und wann kommt er an?", "German"),
        ("docs/operations/open_inference.md", "Wohin fährt dieser Zug, und wann kommt er an?", "German"),
        ("docs/operations/open_inference.md", "Où va ce train, et à quelle heure arrive-t-il ?", "French"),
        ("docs/operations/openai.md", "Das Wetter ist heute schön.", "German"),
        ("docs/operations/openai.md", "Bonjour à tous les amis !", "French"),
    ],
)
def test_a_text_on_a_page_is_in_the_language_that_a_reader_sees(zoo: Server, page: str, text: str, label: str) -> None:
    assert text in (ROOT / page).read_text()
    file = ROOT / text if text.startswith("deploy/") else None
    with longshort.Client(f"127.0.0.1:{zoo.grpc_port}", model="languages") as client:
        (answer,) = client.classify(file.read_text() if file else text)
    assert answer.top.label == label


def test_the_server_is_started_so() -> None:
    (command,) = blocks("Your own server", "sh")
    run(command.strip().replace("build/release/bin/longshort-server", str(BINARY)) + " --check-config")


def test_the_python_client_generates(zoo: Server, tmp_path: Path) -> None:
    install = blocks("The first call", "sh")[2]
    assert install == ".venv/bin/pip install ./clients/python\n"  # deploy/install --tests did
    (program,) = blocks("The first call", "python")
    assert ":8500" in program
    (tmp_path / "client.py").write_text(program.replace(":8500", f":{zoo.grpc_port}"))
    before = zoo.metric("longshort_generated_tokens_total", model="enwiki")
    text = run(f"{sys.executable} {tmp_path}/client.py")
    assert len(text.encode()) > 100
    assert zoo.metric("longshort_generated_tokens_total", model="enwiki") - before == 200


@pytest.mark.parametrize(("heading", "number"), [("The first call", 1), ("More calls", 0)])
def test_the_command_line_answers(zoo: Server, heading: str, number: int) -> None:
    lines = blocks(heading, "sh")[number].splitlines()
    assert lines
    for line in lines:
        assert run(client_line(line, zoo)) != ""


def test_a_client_on_another_machine_is_let_in(tmp_path: Path) -> None:
    server_lines, client_lines = blocks("From other machines", "sh")
    set_up, command = server_lines.split("build/release/bin/longshort-server ")
    paths = {"build/tls": str(tmp_path), "build/release/bin/longshort ": f"{BINARY.with_name('longshort')} "}

    def here(text: str) -> str:
        for written, path in paths.items():
            text = text.replace(written, path)
        return text

    run(here(set_up))
    arguments = here(command).replace("\\\n", " ").split()
    options = [word for word in arguments if not re.match("--(model-repository|(http-)?listen)=", word)]
    assert arguments[:3] == ["--model-repository=models/zoo", "--listen=0.0.0.0:8600", "--http-listen=0.0.0.0:8601"]
    with Server(ROOT / "models/zoo", tmp_path, "--listen=0.0.0.0:0", *options) as server:
        lines = here(client_lines).replace(":8600", f":{server.grpc_port}").replace(":8601", f":{server.http_port}")
        by_grpc, by_http = lines.split("curl ")
        assert "enwiki" in run(by_grpc)
        assert '"name":"enwiki"' in run(f"curl --noproxy '*' {by_http}", no_proxy="*")


def test_lines_of_prose_have_100_columns() -> None:
    for page in PAGES:
        prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        lines = [line for line in prose.splitlines() if not line.lstrip().startswith(("|", "!["))]
        assert [line for line in lines if len(line) > 100 and "://" not in line] == [], page


def test_links_lead_somewhere() -> None:
    """Relative links of all pages, with the headings that they name."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            found = page.parent / path if path else page
            assert found.exists(), f"{page}: {target}"
            if anchor:
                titles = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
                anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
                assert anchor in anchors, f"{page}: {target}"
