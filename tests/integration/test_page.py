"""The page at /, in a real browser, with real models."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from selenium.webdriver import ActionChains

from integration import classifier_directory, model_directory, tokens
from integration.browser import MISSING, Browser, Keys
from integration.server_process import ROOT, Server, wait_until

pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.cpu_only("the page does not know where models run"),
    pytest.mark.not_sanitized("most of it is the browser's work; the tests of Connect make its calls"),
]

ZOO = ROOT / "models/zoo"
PHOTO = ROOT / "deploy/photo.jpg"
TABS = ("models", "score", "generate", "classify", "server")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo models, tiny and fast language models of bytes and of characters, and a tiny classifier of pairs."""
    repository = tmp_path_factory.mktemp("models")
    for name in ("enwiki", "flowers", "movie_reviews"):
        shutil.copytree(ZOO / name / "1", repository / name / "1")
    model_directory.write(repository)
    characters = model_directory.write(repository, "characters")
    config = json.loads((characters / "config.json").read_text())
    (characters / "config.json").write_text(json.dumps(config | {"tokenizer": "fairseq_characters"}))
    symbols = ["_", *(chr(code) for code in (*range(33, 95), *range(96, 127), *range(161, 322)))]
    (characters / "vocabulary.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols[:255]))
    classifier_directory.write_text(repository, "pairs", documents=2)
    return repository


@pytest.fixture(scope="module")
def page(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(models, tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("downloads")) as browser:
        yield browser


@pytest.fixture
def browser(shared: Browser, page: Server) -> Iterator[Browser]:
    """A browser on the page, which must neither report an error nor ask another host for anything."""
    shared.open(page.http_port)
    yield shared
    assert shared.errors() == []
    assert shared.hosts() <= {f"127.0.0.1:{page.http_port}"}


def show(browser: Browser, view: str) -> None:
    browser.click(f"tab-{view}")
    assert browser.id(f"panel-{view}").is_displayed()


def test_models_are_listed_with_what_they_take(browser: Browser) -> None:
    wait_until(lambda: len(browser.all("#models-list > li")) == 6)
    cards = {card.text.split()[0]: card.text for card in browser.all("#models-list > li")}
    assert "2.65 million parameters" in cards["enwiki"] and "Text: up to 8,388,608 bytes" in cards["enwiki"]
    assert "Image classifier" in cards["flowers"] and "daisy, dandelion, rose, sunflower, tulip" in cards["flowers"]
    assert "Two texts, compared" in cards["pairs"]
    assert all("ready" in text for text in cards.values())
    browser.all("[aria-label='Classify with movie_reviews, version 1']")[0].click()
    assert browser.focused() == "tab-classify"
    assert browser.id("classify-model").get_attribute("value") == "movie_reviews/1"


def scored(browser: Browser, downloads: Path) -> dict[str, Any]:
    """What "Download as JSON" saves."""
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
    file = downloads / "scores.json"
    file.unlink(missing_ok=True)
    browser.click("score-download")
    wait_until(file.exists)
    return json.loads(file.read_text())


def sessions_of(api: SimpleNamespace, page: Server) -> list[Any]:
    """The sessions that the server holds."""
    request = api.sessions.ListSessionsRequest(model={"name": "enwiki"})
    return list(api.sessions_grpc.SessionsStub(page.channel).ListSessions(request).sessions)


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
    browser.wait_for_text("score-detail", "At byte 1")
    assert len(browser.all("#score-view .cursor")) == 1


# Notes the longest time for which the page did not answer, in milliseconds.
OBSERVE = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
}).observe({type: "longtask"});
"""


def test_a_megabyte_stays_smooth(browser: Browser, tmp_path: Path) -> None:
    line = "".join(chr(33 + index % 90) for index in range(61))
    content = "".join(f"{number:08d} {line[number % 50 :]}\n" for number in range(30_000)).encode()[:1_000_000]
    (tmp_path / "large.txt").write_bytes(content)
    show(browser, "score")
    browser.choose("score-model", "tiny")
    browser.script(OBSERVE)
    browser.id("score-file").send_keys(str(tmp_path / "large.txt"))
    browser.wait_for_text("score-chip", "large.txt", "1 MB")
    browser.click("score-start")
    browser.wait_for_text("score-totals", "1,000,000")
    seen = 0
    while browser.id("score-status").text == "Scoring …":
        # A person reads meanwhile.
        browser.script("document.getElementById('score-view').scrollTop += 9000")
        seen = max(seen, browser.script("return document.querySelectorAll('#score-view *').length"))
    assert browser.id("score-status").text.startswith("Scored 1 MB in")
    assert 500 < seen < 12_000, "only lines in sight are in the document"
    # The machine has much else to do: with nothing else it is 100.
    assert browser.script("return window.longest") < 4000
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


# A file, or several, that a person drops on an element.
DROP = """
const [target, files] = arguments, transfer = new DataTransfer();
for (const [name, content] of files) transfer.items.add(new File([content], name));
for (const type of ["dragenter", "dragover", "drop"]) {
  target.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: transfer}));
}
"""
PASTE = """
const [target, text] = arguments, transfer = new DataTransfer();
transfer.setData("text", text);
target.dispatchEvent(new ClipboardEvent("paste", {bubbles: true, cancelable: true, clipboardData: transfer}));
"""


def test_texts_are_dropped_and_pasted(browser: Browser) -> None:
    show(browser, "score")
    form, field = browser.id("score-form"), browser.id("score-text")
    browser.script(DROP, form, [["short.txt", "A dropped text."]])
    wait_until(lambda: field.get_attribute("value") == "A dropped text.")
    browser.script(PASTE, field, "long " * 30_000)
    browser.wait_for_text("score-chip", "Pasted text, 150 kB")
    assert not field.is_displayed()
    browser.all("#score-chip button")[0].click()
    assert field.is_displayed() and browser.focused() == "score-text"
    show(browser, "classify")
    browser.choose("classify-model", "movie_reviews")
    browser.script(DROP, browser.id("classify-form"), [["one.txt", "A fine film."], ["two.txt", "A dull film."]])
    wait_until(lambda: len(browser.all("#classify-results > li .bar")) == 4)
    assert [card.text.split("\n")[0] for card in browser.all("#classify-results > li")] == ["one.txt", "two.txt"]


def test_scoring_can_be_stopped(browser: Browser, page: Server, api: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("The same again and again. " * 20_000)
    show(browser, "score")
    browser.choose("score-model", "enwiki")
    browser.id("score-file").send_keys(str(tmp_path / "large.txt"))
    browser.click("score-start")
    browser.wait_for_text("score-totals", "smaller")
    browser.click("score-stop")
    browser.wait_for_text("score-status", "Stopped after")
    assert browser.id("score-start").is_enabled()
    wait_until(lambda: sessions_of(api, page) == [])
    browser.forget_errors()  # the session may have been in use for a moment longer, which the page's first try reports


def generate(browser: Browser, prompt: str, most: int) -> None:
    browser.write("prompt", prompt)
    browser.write("max-tokens", str(most))
    browser.click("generate-start")


def transcript(browser: Browser) -> str:
    return browser.id("transcript").get_attribute("textContent")


def test_a_seed_repeats_a_text_and_tokens_have_alternatives(browser: Browser) -> None:
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    browser.write("seed", "7")
    texts = []
    for _ in range(2):
        generate(browser, "The history of ", 60)
        browser.wait_for_text("generate-status", "Finished", "60 tokens", "seed 7")
        texts.append(transcript(browser))
        browser.click("generate-new")
    assert texts[0] == texts[1] and len(texts[0]) == len("The history of ") + 60
    assert transcript(browser) == ""
    generate(browser, "The history of ", 60)
    browser.wait_for_text("generate-status", "Finished")
    popup = browser.id("popup")
    made = browser.all("#transcript .token")
    ActionChains(browser.driver).move_to_element(made[20]).perform()
    wait_until(popup.is_displayed)
    assert "%" in popup.text and len(browser.all("#popup .bar")) == 5
    assert made[20].get_attribute("aria-describedby") == "popup"
    browser.id("prompt").send_keys(Keys.ESCAPE)
    assert not popup.is_displayed()
    browser.script("document.getElementById('transcript').focus()")
    browser.press(Keys.END)
    wait_until(popup.is_displayed)
    assert browser.script("return document.activeElement === [...document.querySelectorAll('.token')].at(-1)")
    browser.press(Keys.ESCAPE)
    assert not popup.is_displayed()
    browser.click("generate-new")


def test_a_stopped_stream_goes_on_where_it_ended(browser: Browser, page: Server, api: SimpleNamespace) -> None:
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    generate(browser, "A lighthouse is ", 60_000)
    wait_until(lambda: len(browser.all("#transcript .token")) > 20)
    browser.click("generate-stop")
    browser.wait_for_text("generate-status", "Stopped.", "tokens")
    before = transcript(browser)
    assert before.startswith("A lighthouse is ")
    generate(browser, " And then ", 20)
    browser.wait_for_text("generate-status", "Finished", "20 tokens")
    after = transcript(browser)
    assert after.startswith(before + " And then ")
    assert [one.session_tokens for one in sessions_of(api, page)] == [len(after.encode())], (
        "the session holds what the page shows"
    )
    browser.click("generate-new")
    wait_until(lambda: sessions_of(api, page) == [])
    # A tab that is closed leaves no session either.
    generate(browser, "A lighthouse is ", 20)
    browser.wait_for_text("generate-status", "Finished")
    assert len(sessions_of(api, page)) == 1
    browser.driver.get("about:blank")
    wait_until(lambda: sessions_of(api, page) == [])


def test_a_long_text_streams_smoothly(browser: Browser) -> None:
    show(browser, "generate")
    browser.choose("generate-model", "tiny")
    browser.script(OBSERVE)
    generate(browser, "A", 8000)
    browser.wait_for_text("generate-status", "Finished", "8,000 tokens", seconds=300)
    assert browser.script("return document.querySelectorAll('.token').length") > 4000
    assert browser.script("return window.longest") < 4000
    browser.click("generate-new")
    assert transcript(browser) == ""


def test_many_images_are_classified_and_errors_are_words(browser: Browser, tmp_path: Path) -> None:
    files = [tmp_path / f"photo{number}.jpg" for number in range(20)]
    for file in files:
        shutil.copy(PHOTO, file)
    wrong = tmp_path / "notes.jpg"
    wrong.write_text("not an image")
    show(browser, "classify")
    browser.choose("classify-model", "flowers")
    browser.id("classify-file").send_keys("\n".join(map(str, [*files, wrong])))
    browser.wait_for_text("classify-status", "All are classified.")
    cards = browser.all("#classify-results > li")
    assert len(cards) == 21
    assert all("sunflower" in card.text and "%" in card.text for card in cards[:20])
    assert "photo0.jpg" in cards[0].text
    assert "The bytes are not a JPEG, PNG or WebP image." in cards[20].text
    browser.click("classify-clear")
    assert browser.all("#classify-results > li") == []


def test_texts_and_pairs_are_classified(browser: Browser) -> None:
    show(browser, "classify")
    browser.choose("classify-model", "movie_reviews")
    browser.write("classify-text", (ROOT / "deploy/review.txt").read_text())
    browser.all("#classify-texts button")[0].click()
    browser.wait_for_text("classify-status", "All are classified.")
    assert browser.all("#classify-results .bar")[0].text.startswith("pos")
    browser.choose("classify-model", "pairs")
    browser.write("classify-text", "one")
    browser.all("#classify-texts button")[0].click()
    browser.wait_for_text("classify-status", "There is no text yet")
    browser.write("classify-text-2", "two")
    browser.all("#classify-texts button")[0].click()
    browser.wait_for_text("classify-status", "All are classified.")
    assert len(browser.all("#classify-results > li")) == 2


def test_the_server_view_follows_the_metrics(browser: Browser, page: Server, api: SimpleNamespace) -> None:
    show(browser, "server")
    browser.wait_for_text("server-status", "Version", "running for")
    stub = api.inference_grpc.InferenceStub(page.channel)
    request = api.inference.TokenizeRequest(model={"name": "tiny"}, input={"text": "hello"})

    def row() -> list[str]:
        rows = browser.script(
            "return [...document.querySelectorAll('#server-calls tr')].map((row) => row.innerText.split(/\\s+/))"
        )
        return next((cells for cells in rows if cells[:2] == ["Tokenize", "tiny"]), [])

    for _ in range(5):
        stub.Tokenize(request)
    wait_until(lambda: row()[2:5] == ["5", "0", "5"] or row()[2:5] == ["5", "0", "0"])
    for _ in range(3):
        stub.Tokenize(request)
    wait_until(lambda: row()[2:3] == ["8"] and int(row()[4]) >= 3)
    assert row()[6] in ("µs", "ms", "s"), "the median has a unit"
    latency = browser.all("#server-cards > li")[3]
    assert latency.text.startswith("Latency of calls")
    wait_until(lambda: "–" not in latency.text)


def test_tabs_follow_the_keyboard(browser: Browser) -> None:
    browser.script("document.getElementById('tab-models').focus()")
    for key, view in (
        (Keys.ARROW_RIGHT, "score"),
        (Keys.END, "server"),
        (Keys.ARROW_RIGHT, "models"),
        (Keys.ARROW_LEFT, "server"),
        (Keys.HOME, "models"),
        (Keys.ARROW_RIGHT, "score"),
    ):
        browser.press(key)
        assert browser.focused() == f"tab-{view}"
        assert [one for one in TABS if browser.id(f"panel-{one}").is_displayed()] == [view]
        chosen = [tab.get_attribute("id") for tab in browser.all("[role=tab][aria-selected=true]")]
        assert chosen == [f"tab-{view}"]
    browser.press(Keys.TAB)
    assert browser.focused() == "panel-score", "the next stop is the panel, not another tab"
    browser.driver.get(browser.driver.current_url)
    assert browser.id("panel-score").is_displayed(), "the address keeps the view"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(page: Server, tmp_path: Path, dark: bool) -> None:
    with Browser(tmp_path, dark=dark) as browser:
        browser.open(page.http_port)
        show(browser, "score")
        browser.choose("score-model", "enwiki")
        browser.click("score-example")
        browser.click("score-start")
        browser.wait_for_text("score-status", "Scored")
        browser.id("score-view").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        show(browser, "generate")
        browser.choose("generate-model", "enwiki")
        generate(browser, "The history of ", 80)
        browser.wait_for_text("generate-status", "Finished")
        browser.click("generate-colour")
        show(browser, "classify")
        browser.choose("classify-model", "flowers")
        browser.id("classify-file").send_keys(f"{PHOTO}\n{ROOT / 'README.md'}")
        browser.wait_for_text("classify-status", "All are classified.")
        show(browser, "server")
        wait_until(lambda: len(browser.all("#server-calls tr")) > 2)
        for view in TABS:
            show(browser, view)
            if view == "generate":
                browser.script("document.querySelectorAll('.token')[5].focus()")
            assert browser.serious_problems() == [], view
        browser.resize(390, 800)
        for view in TABS:
            show(browser, view)
            assert browser.serious_problems() == [], view
            wide = browser.script("return document.documentElement.scrollWidth")
            assert wide <= 390, f"{view} is wider than a telephone"
        browser.click("tab-generate")
        assert browser.errors() == []


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
        show(browser, "server")
        browser.wait_for_text("server-status", "Your token does not allow this.")
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
