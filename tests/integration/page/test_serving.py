"""How the page is sent, with options and tokens and without a server."""

from __future__ import annotations

import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path

from integration import model_directory, tokens
from integration.browser import Browser, Keys
from integration.page.views import MARKS, generate, show, transcript
from integration.server_process import ROOT, Server, wait_until

pytestmark = MARKS


def answer(server: Server, path: str, **fields: str) -> tuple[int, dict[str, str], str]:
    """Status, header fields and body of a GET with these header fields."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"http://127.0.0.1:{server.http_port}{path}", headers=fields)
    try:
        with opener.open(request, timeout=60) as found:
            return found.status, dict(found.headers), found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def test_the_page_is_sent_with_a_strict_policy(page: Server) -> None:
    for path in ("/", "/page.js", "/page.css"):
        status, fields, _ = answer(page, path, Accept="text/html,*/*")
        assert status == 200
        assert "default-src 'none'" in fields["Content-Security-Policy"]
        assert "unsafe" not in fields["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in fields
    assert answer(page, "/")[2].startswith("longshort-server"), "curl gets words, not HTML"


def test_options_switch_the_page_or_all_calls_off(repository: Path, tmp_path: Path) -> None:
    listing = "/longshort.v1.Models/ListModels?encoding=json&message=%7B%7D"
    with Server(repository, tmp_path / "page", "--http-page=false", "--http-cors-origin=https://example.com") as server:
        assert answer(server, "/", Accept="text/html")[0] == 404
        assert answer(server, "/page.js")[0] == 404
        status, fields, body = answer(server, listing, Origin="https://example.com")
        assert status == 200 and "tiny" in body
        assert fields["Access-Control-Allow-Origin"] == "https://example.com"
        assert "Access-Control-Allow-Origin" not in answer(server, listing, Origin="https://example.org")[1]
    with Server(repository, tmp_path / "calls", "--http-inference=false") as server:
        assert answer(server, "/", Accept="text/html")[0] == 404
        status, _, body = answer(server, listing)
        assert status == 404 and "Calls by HTTP are off (--http-inference)." in body
        assert answer(server, "/readyz")[0] == answer(server, "/metrics")[0] == 200


def test_a_token_is_asked_for_and_kept_for_the_tab(repository: Path, tmp_path: Path) -> None:
    lines = [tokens.line("alice", "right", "scopes=infer"), tokens.line("scraper", "metrics", "scopes=infer,observe")]
    file = tokens.write(tmp_path / "tokens", *lines)
    with Server(repository, tmp_path, f"--token-file={file}") as server, Browser(tmp_path) as browser:
        browser.open(server.http_port)
        dialog = browser.id("token-dialog")
        wait_until(dialog.is_displayed)
        assert browser.serious_problems() == []
        browser.press(Keys.ESCAPE)
        browser.wait_for_text("models-status", "The server asks for a token.")
        browser.click("token-button")
        wait_until(dialog.is_displayed)
        browser.write("token", "wrong")
        browser.press(Keys.ENTER)
        browser.wait_for_text("token-reason", "The server asks for a token.")
        browser.write("token", "right")
        browser.press(Keys.ENTER)
        wait_until(lambda: "tiny" in browser.id("models-list").text)
        browser.forget_errors()
        show(browser, "server")
        browser.wait_for_text("server-status", "Your token does not allow this.", "the scope observe")
        # Each refusal would be a red line in the console, so the page asks before it reads.
        for view in ("models", "server", "models", "server"):
            show(browser, view)
            time.sleep(1.2)  # longer than the page's interval
        browser.click("server-again")
        browser.wait_for_text("server-status", "Your token does not allow this.", "the scope observe")
        assert browser.errors() == []
        kept = "return [localStorage.length, document.cookie, Object.values(sessionStorage).join()]"
        assert browser.script(kept) == [0, "", "right"]
        browser.driver.refresh()
        show(browser, "models")
        wait_until(lambda: "tiny" in browser.id("models-list").text)
        assert not browser.id("token-dialog").is_displayed()
        browser.click("token-button")
        browser.write("token", "metrics")
        browser.press(Keys.ENTER)
        show(browser, "server")
        browser.wait_for_text("server-status", "running for")


def test_a_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    """The new server does not have the session, so the page sends the text again."""
    repository = tmp_path / "models"
    shutil.copytree(ROOT / "models/zoo/enwiki/1", repository / "enwiki/1")
    with Browser(tmp_path) as browser:
        with Server(repository, tmp_path / "first") as server:
            port = server.http_port
            browser.open(port, "generate")
            browser.write("seed", "7")
            generate(browser, "The history of ", 40)
            browser.wait_for_text("generate-status", "Finished.")
        before = transcript(browser)
        with Server(repository, tmp_path / "second", f"--http-listen=127.0.0.1:{port}") as server:
            generate(browser, " and then", 40)
            browser.wait_for_text("generate-status", "Finished.", "so the page sent its text again", "40 tokens")
            after = transcript(browser)
            assert after.startswith(before + " and then") and len(after.encode()) == 40 + len(before.encode()) + 9
            assert server.metric("longshort_sessions") == 1
            # The session is whole again: the next turn sends only its own text.
            generate(browser, "", 40)
            message = browser.wait_for_text("generate-status", "Finished.", "from the cache")
            assert "again" not in message
            browser.click("generate-new")
            wait_until(lambda: server.metric("longshort_sessions") == 0)


def test_a_server_that_is_gone_is_said_in_words(repository: Path, tmp_path: Path) -> None:
    with Server(repository, tmp_path) as server, Browser(tmp_path) as browser:
        browser.open(server.http_port, "generate")
        server.terminate()
        server.wait()
        generate(browser, "The ", 10)
        browser.wait_for_text("generate-status", "It does not answer. Is it still running?")
        assert browser.id("prompt").get_attribute("value") == "The ", "the prompt is not lost"
        show(browser, "score")
        browser.click("score-example")
        browser.click("score-start")
        browser.wait_for_text("score-status", "The page tries again in 1 second.")
        browser.click("score-stop")
        browser.wait_for_text("score-status", "Stopped after 0 B.")


def test_versions_that_are_not_served_are_listed_with_the_reason(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    model_directory.write(repository)
    model_directory.write(repository, "other")
    with (
        Server(repository, tmp_path, "--watch-repository=100ms", "--model-control") as server,
        Browser(tmp_path) as browser,
    ):
        broken = model_directory.write(tmp_path / "incoming")
        (broken / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0nonsense")
        broken.rename(repository / "tiny/2")
        unload = urllib.request.Request(
            f"http://127.0.0.1:{server.http_port}/v2/repository/models/other/unload",
            b"{}",
            {"content-type": "application/json"},
        )
        urllib.request.urlopen(unload, timeout=60).close()
        wait_until(lambda: server.metric("longshort_model_load_failures_total") == 1)
        browser.open(server.http_port)
        wait_until(lambda: len(browser.all("#models-list > li")) == 3)
        cards = [card.text.split("\n") for card in browser.all("#models-list > li")]
        assert cards[0][:2] == ["tiny version 1", "ready"]
        assert cards[1] == ["other version 1", "unavailable", "Not loaded."]
        assert cards[2][:2] == ["tiny version 2", "unavailable"]
        assert "model.safetensors" in cards[2][2], cards[2]
        assert browser.serious_problems() == []
