"""The calls that the page shows as programs are programs that give the same answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from integration.browser import Browser
from integration.page.views import MARKS, PASTE, PHOTO, same_call, show
from integration.server_process import ROOT, Server

pytestmark = MARKS


def run(page: Server, kind: str, program: str, folder: Path) -> str:
    """What the program writes. The page cannot know the port of gRPC, and shows the default."""
    file = folder / "program"
    file.write_text(program.replace("127.0.0.1:8500", page.address))
    command = ["bash", "-euo", "pipefail", file] if kind == "curl" else [sys.executable, file]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "clients/python"), "NO_PROXY": "*"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{program}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("kind", ["curl", "python", "openai"])
def test_generate(browser: Browser, page: Server, tmp_path: Path, kind: str) -> None:
    prompt = 'It\'s "so" \\ 100%\nand 日本 '
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    browser.script("document.getElementById('prompt').value = arguments[0]", prompt)
    browser.write("max-tokens", "40")
    browser.write("seed", "5")
    browser.write("stop-strings", "no such\\nstop")
    browser.script("document.getElementById('top-p').value = 0.8")
    browser.script("document.getElementById('top-k').value = 5")
    program = same_call(browser, "generate", kind)
    browser.click("generate-start")
    browser.wait_for_text("generate-status", "Finished.")
    made = browser.id("transcript").get_attribute("textContent").removeprefix(prompt)
    browser.click("generate-new")
    browser.script("document.getElementById('top-p').value = 1")
    browser.script("document.getElementById('top-k').value = 0")
    browser.write("stop-strings", "")
    browser.write("seed", "")
    found = run(page, kind, program, tmp_path)
    if kind == "curl":
        assert made[:20] in found.encode().decode("unicode_escape", "replace") or made[:10] in found, (made, found)
    else:
        assert found == made


@pytest.mark.parametrize("kind", ["curl", "python", "openai"])
@pytest.mark.parametrize("crlf", [False, True], ids=["typed", "file"])
def test_score(browser: Browser, page: Server, tmp_path: Path, kind: str, crlf: bool) -> None:
    show(browser, "score")
    browser.choose("score-model", "enwiki")
    if crlf:
        (tmp_path / "it's.txt").write_bytes(b"A tide rises.\r\n" * 20)
        browser.id("score-file").send_keys(str(tmp_path / "it's.txt"))
        browser.wait_for_text("score-chip", "it's.txt")
    else:
        browser.write("score-text", "A 'tide' rises.")
    program = same_call(browser, "score", kind)
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")
    nats = browser.script("return document.querySelectorAll('#score-totals dd')[3].textContent").split()[0]
    found = run(page, kind, program, tmp_path)
    number = found.split('"logLikelihood":')[1].split(",")[0] if kind == "curl" else found.split()[0]
    assert round(float(number)) == pytest.approx(int(nats.replace(",", "")), abs=1)
    if crlf:
        browser.all("#score-chip button")[0].click()


@pytest.mark.parametrize("kind", ["curl", "python", "openai"])
def test_score_of_a_long_text(browser: Browser, page: Server, tmp_path: Path, kind: str) -> None:
    """It is pasted, so there is no file of it, and it does not fit into an argument of a program."""
    show(browser, "score")
    browser.choose("score-model", "tiny")
    browser.script(PASTE, browser.id("score-text"), 'It\'s "long".\n' * 8500)
    browser.wait_for_text("score-chip", "Pasted text, 111 kB")
    found = run(page, kind, same_call(browser, "score", kind), tmp_path)
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")
    nats = browser.script("return document.querySelectorAll('#score-totals dd')[3].textContent").split()[0]
    number = found.split('"logLikelihood":')[1].split(",")[0] if kind == "curl" else found.split()[0]
    assert float(number) == pytest.approx(int(nats.replace(",", "")), abs=2)
    browser.all("#score-chip button")[0].click()


@pytest.mark.parametrize("kind", ["curl", "python"])
@pytest.mark.parametrize(("model", "likeliest"), [("languages", "German"), ("flowers", "sunflower")])
def test_classify(browser: Browser, page: Server, tmp_path: Path, kind: str, model: str, likeliest: str) -> None:
    (tmp_path / "photo.jpg").write_bytes(PHOTO.read_bytes())
    show(browser, "classify")
    browser.choose("classify-model", model)
    if model == "languages":
        browser.write("classify-text", "Wohin fährt dieser Zug, und wann kommt er in Berlin an?")
    found = run(page, kind, same_call(browser, "classify", kind), tmp_path)
    assert likeliest in (found.split('"label":')[1] if kind == "curl" else found.split("\n")[0])
    assert "no call that classifies" in same_call(browser, "classify", "openai")


@pytest.mark.parametrize("kind", ["curl", "python", "openai"])
def test_embed(browser: Browser, page: Server, tmp_path: Path, kind: str) -> None:
    show(browser, "embed")
    browser.choose("embed-model", "languages")
    browser.write("embed-text-1", "Das Wetter ist heute schön.")
    browser.write("embed-text-2", "Bonjour à tous les amis !")
    browser.click("embed-start")
    browser.wait_for_text("embed-status", "The texts are embedded.")
    cosine = browser.all("#embed-totals dd")[0].text
    found = run(page, kind, same_call(browser, "embed", kind), tmp_path)
    if kind == "curl":
        assert found.count('"values"') == 2
    else:
        assert f"{float(found):.3f}" == f"{float(cosine):.3f}"
