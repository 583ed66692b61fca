"""The settings of Generate, and its figures."""

from __future__ import annotations

import re
from types import SimpleNamespace

from integration.browser import Browser, Keys
from integration.page.views import MARKS, generate, sessions_of, show, transcript
from integration.server_process import Server, wait_until

pytestmark = MARKS

SETTINGS = {
    "top-k": "5",
    "top-p": "0.9",
    "min-p": "0.02",
    "repetition-penalty": "1.1",
    "frequency-penalty": "0.2",
    "presence-penalty": "-0.1",
}


def open_settings(browser: Browser) -> None:
    details = browser.all("#generate-settings details")[0]
    if not details.get_attribute("open"):
        browser.all("#generate-settings summary")[0].click()


def switch_off(browser: Browser) -> None:
    open_settings(browser)
    browser.click("generate-reset")
    browser.click("generate-new")


def test_all_settings_reach_the_model(browser: Browser, page: Server, api: SimpleNamespace) -> None:
    """The text is that of a call by gRPC with the same settings, and not that of one without them."""
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    open_settings(browser)
    for name, value in SETTINGS.items():
        browser.write(name, value)
    browser.write("seed", "11")
    generate(browser, "The history of ", 80)
    browser.wait_for_text("generate-status", "Finished.", "80 tokens", "seed 11")
    have = transcript(browser)
    sampling = {name.replace("-", "_"): float(value) for name, value in SETTINGS.items()} | {"top_k": 5}
    want = {}
    for name, more in (("with", sampling), ("without", {})):
        request = api.inference.GenerateRequest(
            model={"name": "enwiki"},
            prompt={"text": "The history of "},
            max_tokens=80,
            sampling={"temperature": 0.7, "seed": 11, **more},
        )
        answer = api.inference_grpc.InferenceStub(page.channel).Generate(request, timeout=60)
        want[name] = "The history of " + answer.completions[0].text
    assert have == want["with"] != want["without"]
    switch_off(browser)
    assert [browser.id(name).get_attribute("value") for name in SETTINGS] == ["0", "1", "0", "1", "0", "0"]
    generate(browser, "The history of ", 80)
    browser.wait_for_text("generate-status", "Finished.")
    assert transcript(browser) == want["without"]
    browser.click("generate-new")
    browser.write("seed", "")


def test_a_stop_string_ends_a_text(browser: Browser) -> None:
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    browser.write("stop-strings", "no such text\n\\n\ne")
    generate(browser, "The history of ", 2000)
    message = browser.wait_for_text("generate-status", "Finished at the stop string")
    assert re.search(r'stop string ("e"|"\\n")\.', message), message
    assert not re.search("[e\n]", transcript(browser).removeprefix("The history of "))
    switch_off(browser)
    assert browser.id("stop-strings").get_attribute("value") == ""


def test_a_wrong_setting_is_shown_and_nothing_is_sent(browser: Browser, page: Server) -> None:
    def calls() -> float:
        return page.metric("longshort_requests_total", rpc="GenerateStream")

    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    before = calls()
    browser.click("generate-start")
    browser.wait_for_text("generate-status", "There is no prompt yet")
    browser.write("seed", "seven")
    generate(browser, "The history of ", 20)
    wait_until(lambda: browser.focused() == "seed")
    assert browser.id("generate-status").text == "", "what was wrong before is no longer said"
    assert "whole number" in browser.id("seed").get_attribute("title")
    browser.write("seed", "")
    open_settings(browser)
    browser.write("top-p", "2")
    browser.all("#generate-settings summary")[0].click()
    browser.click("generate-start")
    wait_until(lambda: browser.focused() == "top-p")
    assert browser.id("top-p").is_displayed(), "its part is opened"
    browser.click("generate-reset")
    assert calls() == before
    browser.script("document.getElementById('prompt').value = ''")


def test_a_rate_is_that_of_the_server(browser: Browser, page: Server) -> None:
    """Messages that arrive together say nothing about the rate: the server's own time does."""
    show(browser, "generate")
    browser.choose("generate-model", "tiny")
    generate(browser, "A", 400)
    message = browser.wait_for_text("generate-status", "Finished.", "tokens/s")
    line = next(line for line in reversed(page.log().splitlines()) if "rpc=GenerateStream" in line)
    decode = float(re.search(r"decode_seconds=([0-9.e-]+)", line)[1])
    rate = float(re.search(r"([0-9,]+) tokens/s", message)[1].replace(",", ""))
    assert 0.98 * 399 / decode < rate <= 1.005 * 399 / decode, (
        message,
        line,
    )  # three digits; the first is the prompt's
    browser.click("generate-new")
    generate(browser, "A", 60_000)
    wait_until(lambda: len(browser.all("#transcript .token")) > 20)
    browser.click("generate-stop")
    assert "tokens/s" not in browser.wait_for_text("generate-status", "Stopped."), "its time is not known"
    browser.click("generate-new")


def test_examples_are_prompts(browser: Browser) -> None:
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    seen = []
    for _ in range(6):
        browser.click("generate-example")
        seen.append(browser.id("prompt").get_attribute("value"))
    assert len(set(seen)) == 5 and seen[5] == seen[0] and "" not in seen
    assert browser.focused() == "prompt"
    browser.write("max-tokens", "10")
    browser.id("prompt").send_keys(Keys.CONTROL, Keys.ENTER)
    browser.wait_for_text("generate-status", "Finished.", "10 tokens")
    assert transcript(browser).startswith(seen[0])
    browser.click("generate-new")


def test_each_setting_sends_by_its_keys(browser: Browser) -> None:
    show(browser, "generate")
    browser.choose("generate-model", "tiny")
    browser.write("max-tokens", "10")
    for field in ("seed", "max-tokens", "stop-strings", "temperature"):
        browser.write("prompt", "A")
        browser.id(field).send_keys(Keys.CONTROL, Keys.ENTER)
        browser.wait_for_text("generate-status", "Finished.", "10 tokens")
        browser.click("generate-new")


def test_a_tab_that_is_closed_in_a_stream_leaves_no_session(
    browser: Browser, page: Server, api: SimpleNamespace
) -> None:
    """More than once, because the call that was stopped may have the session for a moment longer."""
    for _ in range(5):
        browser.open(page.http_port, "generate")
        browser.choose("generate-model", "enwiki")
        generate(browser, "A lighthouse is ", 60_000)
        wait_until(lambda: len(browser.all("#transcript .token")) > 20)
        assert len(sessions_of(api, page)) == 1
        browser.driver.get("about:blank")
        wait_until(lambda: sessions_of(api, page) == [], 20)
    # The same while a text is scored.
    browser.open(page.http_port, "score")
    browser.choose("score-model", "enwiki")
    browser.script("document.getElementById('score-text').value = 'A lighthouse is far. '.repeat(4000)")
    browser.click("score-start")
    browser.wait_for_text("score-totals", "smaller")
    assert len(sessions_of(api, page)) == 1
    browser.driver.get("about:blank")
    wait_until(lambda: sessions_of(api, page) == [], 20)
    browser.open(page.http_port)
    browser.forget_errors()
