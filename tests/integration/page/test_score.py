"""The view Score."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from selenium.webdriver import ActionChains

from integration.browser import Browser, Keys
from integration.page.views import MARKS, OBSERVE, scored, sessions_of, show
from integration.server_process import Server, wait_until

pytestmark = MARKS


def test_a_text_has_the_scores_of_the_rpc(browser: Browser, page: Server, api: SimpleNamespace, tmp_path: Path) -> None:
    text = "A '''tide''' rises, é and 日本 too.\n" * 120  # several pieces, cut between characters
    show(browser, "score")
    browser.choose("score-model", "enwiki")
    browser.script("document.getElementById('score-text').value = arguments[0]", text)
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")
    request = api.inference.ScoreTextRequest(model={"name": "enwiki"}, inputs=[{"text": text}])
    request.token_log_probabilities = True
    want = api.inference_grpc.InferenceStub(page.channel).ScoreText(request, timeout=60).scores[0]
    have = scored(browser, tmp_path)
    assert have["scored_tokens"] == want.scored_token_count == len(text.encode()) - 1
    assert have["log_likelihood"] == pytest.approx(want.log_likelihood, rel=1e-5)
    assert have["bits_per_byte"] == pytest.approx(want.bits_per_byte, rel=1e-5)
    assert have["log_probabilities"][0] is None
    expected = [token.log_probability for token in want.tokens]
    assert have["log_probabilities"][1:] == pytest.approx(expected, abs=1e-3)
    assert f"{want.bits_per_byte:.4g}" in browser.id("score-totals").text
    wait_until(lambda: sessions_of(api, page) == [])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"one two three", ["one two ", "three"]),
        # Each of these takes two columns, also behind a space at which a line ends.
        ("日本語 日本語日".encode(), ["日本語 ", "日本語日"]),
        ("한글 한글한글한글한".encode(), ["한글 ", "한글한글한", "글한"]),
        # A byte that is no character is shown as 0xe9.
        (b"caf\xe9 caf\xe9 caf\xe9", ["caf\\xe9 ", "caf\\xe9 ", "caf\\xe9"]),
        (b"\xff\xfe\xfd", ["\\xff\\xfe", "\\xfd"]),
    ],
)
def test_lines_have_at_most_their_columns(browser: Browser, text: bytes, lines: list[str]) -> None:
    show(browser, "score")
    program = """const done = arguments[1];
        import("/surprise.js").then(({ScoredText}) => {
          const text = new ScoredText(Uint8Array.from(arguments[0]), false);
          done(Array.from(text.lines(10), (one) => text.starts[one]));
        });"""
    starts = browser.driver.execute_async_script(program, list(text))
    found = [text[begin:end].decode(errors="backslashreplace") for begin, end in itertools.pairwise(starts)]
    assert found == lines


def test_a_character_shows_what_was_expected(browser: Browser) -> None:
    show(browser, "score")
    browser.choose("score-model", "enwiki")
    browser.click("score-example")
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")
    characters = browser.all("#score-view .text-row span")
    assert "".join(one.text for one in characters[:12]) == "The '''Moon'"
    assert {one.get_attribute("class") for one in characters} > {"unscored", "s0", "s7"}
    ActionChains(browser.driver).move_to_element(characters[9]).perform()
    browser.wait_for_text("score-detail", "At byte 9", "“o”", "bits, probability", "expected")
    browser.id("score-view").send_keys(Keys.HOME)
    browser.wait_for_text("score-detail", "At byte 0", "has no score")
    browser.press(Keys.ARROW_RIGHT)
    browser.wait_for_text("score-detail", "At byte 1.", "“h”")
    browser.press(Keys.ARROW_DOWN)
    wait_until(lambda: len(browser.all("#score-view .cursor")) == 1)


def test_the_time_left_follows_long_pieces(browser: Browser) -> None:
    """Pieces grow while the server gets faster. The page must not begin with an estimate of hours."""
    program = """const done = arguments[1];
        import("/regions.js").then(({TimeLeft}) => {
          const left = new TimeLeft(3_000_000);
          done(arguments[0].map(([tokens, seconds]) => left.after(tokens, seconds)));
        });"""
    pieces = [(1024, 3.5), *((256 << step, 0.6) for step in range(6)), *[(8192, 0.8)] * 10]
    places = [(sum(size for size, _ in pieces[:end]), sum(took for _, took in pieces[:end])) for end in range(1, 18)]
    words = browser.driver.execute_async_script(program, places)
    assert words[0] == words[6] == ""
    seen = [int(re.fullmatch("about ([0-9]+) minutes left", one)[1]) for one in words if one]
    assert len(seen) >= 9 and all(4 <= minutes <= 8 for minutes in seen), (
        "3 MB at 10,240 tokens a second take 5 minutes"
    )


def test_a_megabyte_stays_smooth(browser: Browser, tmp_path: Path) -> None:
    line = "".join(chr(33 + index % 90) for index in range(61))
    content = "".join(f"{number:08d} {line[number % 50 :]}\n" for number in range(30_000)).encode()[:1_000_000]
    (tmp_path / "large.txt").write_bytes(content)
    show(browser, "score")
    browser.choose("score-model", "tiny")
    browser.script(OBSERVE, "score-view")
    browser.id("score-file").send_keys(str(tmp_path / "large.txt"))
    browser.wait_for_text("score-chip", "large.txt", "1 MB")
    browser.click("score-start")
    browser.wait_for_text("score-totals", "1,000,000")
    seen = 0
    left = set()
    while browser.id("score-status").text == "Scoring …":
        # A person reads meanwhile.
        browser.script("document.getElementById('score-view').scrollTop += 9000")
        left.add(browser.id("score-left").text)
        seen = max(seen, browser.script("return document.querySelectorAll('#score-view *').length"))
    assert browser.id("score-status").text.startswith("Scored 1 MB in")
    assert any(re.fullmatch("a few seconds left|about [0-9]+ (seconds|minutes?) left", words) for words in left), left
    assert browser.id("score-left").text == ""
    assert 500 < seen < 12_000, "only lines in sight are in the document"
    # What keeps the page from answering: the elements that it makes for a frame, and the bytes of an answer.
    assert browser.script("return window.mostInFrame") <= 12_000
    assert browser.script("return window.largestCall") < 16_384 * 4 / 3 + 1000, "base64 of at most 16,384 bytes"
    # Its last line can be reached, by the curve and by the keyboard.
    browser.id("score-curve").send_keys(Keys.END)
    last = content.decode().rsplit("\n", 1)[1]
    wait_until(lambda: last in browser.id("score-view").text.replace("\n", ""))
    browser.id("score-view").send_keys(Keys.CONTROL, Keys.HOME)
    wait_until(lambda: "00000000" in browser.id("score-view").text.replace("\n", ""))
    assert scored(browser, tmp_path)["scored_bytes"] == 999_999


def test_a_model_of_characters_scores_characters(browser: Browser, page: Server, api: SimpleNamespace) -> None:
    text = "Grüße, ½ ± x.\n" * 150
    show(browser, "score")
    browser.choose("score-model", "characters")
    browser.script("document.getElementById('score-text').value = arguments[0]", text)
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")
    request = api.inference.ScoreTextRequest(model={"name": "characters"}, inputs=[{"text": text}])
    want = api.inference_grpc.InferenceStub(page.channel).ScoreText(request, timeout=60).scores[0]
    totals = browser.id("score-totals").text
    assert f"Bits per character\n{want.bits_per_character:.4g}" in totals
    assert f"{len(text.encode()) - 1:,} of {len(text.encode()):,} bytes" in totals
    browser.id("score-view").send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    browser.wait_for_text("score-detail", "At byte 2.", "“ü”: ")
    browser.script("document.getElementById('score-text').value = 'Not in its vocabulary: 日'")
    browser.click("score-start")
    message = browser.wait_for_text("score-status", "The server does not accept this.", "not in the model's vocabulary")
    assert message.endswith(".")
    browser.forget_errors()  # the browser reports the status 400, too


def test_scoring_can_be_stopped(browser: Browser, page: Server, api: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("The same again and again. " * 20_000)
    show(browser, "score")
    browser.choose("score-model", "enwiki")
    browser.id("score-file").send_keys(str(tmp_path / "large.txt"))
    for _ in range(3):
        browser.click("score-start")
        browser.wait_for_text("score-totals", "smaller")
        browser.click("score-stop")
        browser.wait_for_text("score-status", "Stopped after")
        assert browser.id("score-start").is_enabled()
        wait_until(lambda: sessions_of(api, page) == [])
    assert browser.errors() == [], "the session was in use for a moment longer, or was never made"
