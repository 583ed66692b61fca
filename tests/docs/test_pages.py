"""The documentation's pages beside their commands: lengths, links, and what a reader sees in examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import longshort
import pytest
from integration.connect_calls import TOKENIZE, post
from integration.server_process import ROOT, Server

from docs.blocks import block_of, blocks_of

PAGES = [ROOT / "clients/python/README.md"]
PAGES += [page for pages in ("*.md", "docs/**/*.md", "models/zoo/**/*.md") for page in ROOT.glob(pages)]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(ROOT / "models/zoo", tmp_path_factory.mktemp("zoo")) as server:
        yield server


def test_the_first_call_is_on_the_first_screen() -> None:
    readme = (ROOT / "README.md").read_text()
    assert blocks_of("README.md")[0].code.startswith("deploy/quickstart --keep  #")
    assert readme[: readme.index("curl 127.0.0.1:8501/longshort.v1.Inference/Generate")].count("\n") < 35
    assert readme.count("\n") <= 120


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


def test_the_error_of_http_is_the_servers(zoo: Server) -> None:
    error = block_of("docs/http.md", '{"code"')
    status, _, body = post(zoo, TOKENIZE, b'{"text":"x"}')
    assert (status, json.loads(body)) == (400, json.loads(error.code))


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
