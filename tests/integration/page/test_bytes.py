"""Texts are scored and classified as the bytes of the file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from integration.browser import Browser
from integration.page.views import MARKS, scored, show
from integration.server_process import ROOT, Server, wait_until

pytestmark = MARKS

MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"A tide rises.\r\nAnother one falls.\r\n" * 50, "with its own line ends"),
        (b"One line\rand another\r", "with its own line ends"),
        (MARK + b"A tide rises.\n", "with its byte order mark"),
        (b"caf\xe9 and caf\xe9", "not UTF-8"),
        ("A tide rises.\n".encode("utf-16"), "not UTF-8"),
        ("Ein schöner Tag.\n".encode(), None),
    ],
    ids=["crlf", "cr", "bom", "latin-1", "utf-16", "plain"],
)
def test_a_file_is_scored_as_its_bytes(
    browser: Browser, page: Server, api: SimpleNamespace, tmp_path: Path, content: bytes, why: str | None
) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    show(browser, "score")
    browser.choose("score-model", "enwiki")
    browser.id("score-file").send_keys(str(file))
    if why is None:
        wait_until(lambda: browser.id("score-text").get_attribute("value") == content.decode())
    else:
        browser.wait_for_text("score-chip", "notes.txt", why)
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")
    request = api.inference.ScoreTextRequest(model={"name": "enwiki"}, inputs=[{"raw": content}])
    want = api.inference_grpc.InferenceStub(page.channel).ScoreText(request, timeout=60).scores[0]
    have = scored(browser, tmp_path)
    assert have["bytes"] == len(content) and have["scored_bytes"] == len(content) - 1
    assert have["bits_per_byte"] == pytest.approx(want.bits_per_byte, rel=1e-5)


@pytest.mark.parametrize(
    "content",
    [
        MARK + (ROOT / "deploy/letter.txt").read_bytes(),
        (ROOT / "deploy/letter.txt").read_bytes().replace(b". ", b".\r\n"),
        (ROOT / "deploy/letter.txt").read_text().encode("latin-1"),
        (ROOT / "deploy/letter.txt").read_text().encode("utf-16"),
    ],
    ids=["bom", "crlf", "latin-1", "utf-16"],
)
def test_a_file_is_classified_as_its_bytes(
    browser: Browser, page: Server, api: SimpleNamespace, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "letter.txt"
    file.write_bytes(content)
    show(browser, "classify")
    browser.choose("classify-model", "languages")
    browser.id("classify-file").send_keys(str(file))
    browser.wait_for_text("classify-status", "All are classified.")
    request = api.inference.ScoreTextRequest(model={"name": "languages"}, inputs=[{"raw": content}], truncate=True)
    answer = api.inference_grpc.InferenceStub(page.channel).ScoreText(request, timeout=60)
    best = answer.classifications[0].classification.classes[0]
    assert browser.all("#classify-results .bar")[0].text.split("\n") == [best.label, f"{best.probability * 100:.1f} %"]
    note = browser.all("#classify-results .note")[0].text
    assert ("not UTF-8" in note) == (content.decode(errors="replace").count("\ufffd") > 0)
    browser.click("classify-clear")


def test_an_empty_file_is_named(browser: Browser, tmp_path: Path) -> None:
    empty, letter = tmp_path / "empty.txt", ROOT / "deploy/letter.txt"
    empty.touch()
    show(browser, "score")
    browser.id("score-file").send_keys(str(empty))
    browser.wait_for_text("score-status", "empty.txt is empty.")
    show(browser, "classify")
    browser.choose("classify-model", "languages")
    browser.id("classify-file").send_keys(f"{empty}\n{letter}")
    browser.wait_for_text("classify-status", "1 of 2 is classified.")
    assert [card.text for card in browser.all("#classify-results > li")][0].split("\n")[-1] == "It is empty."
    browser.click("classify-clear")
