"""The views Models, Classify and Server, and what is common to all."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from integration.browser import Browser, Keys
from integration.page.views import MARKS, PASTE, PHOTO, TABS, generate, show
from integration.server_process import ROOT, Server, wait_until

pytestmark = MARKS


def test_models_are_listed_with_what_they_take(browser: Browser) -> None:
    wait_until(lambda: len(browser.all("#models-list > li")) == 7)
    cards = {card.text.split()[0]: card.text for card in browser.all("#models-list > li")}
    assert "5.61 million parameters" in cards["enwiki"] and "Text: up to 8,388,608 bytes" in cards["enwiki"]
    assert "Image classifier" in cards["flowers"] and "daisy, dandelion, rose, sunflower, tulip" in cards["flowers"]
    assert "Two texts, compared, read" in cards["pairs"]
    assert "Two texts, compared, or one, read" in cards["text_or_pair"]
    assert all("ready" in text for text in cards.values())
    browser.all("[aria-label='Classify with languages, version 1']")[0].click()
    assert browser.focused() == "tab-classify"
    assert browser.id("classify-model").get_attribute("value") == "languages/1"


DROP = """
const [target, files] = arguments, transfer = new DataTransfer();
for (const [name, content] of files) transfer.items.add(new File([content], name));
for (const type of ["dragenter", "dragover", "drop"]) {
  target.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: transfer}));
}
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
    browser.choose("classify-model", "languages")
    browser.script(DROP, browser.id("classify-form"), [["one.txt", "A fine day."], ["two.txt", "Guten Tag!"]])
    wait_until(lambda: len(browser.all("#classify-results > li .bar")) == 10)
    assert [card.text.split("\n")[0] for card in browser.all("#classify-results > li")] == ["one.txt", "two.txt"]


def test_many_images_are_classified_and_errors_are_words(browser: Browser, tmp_path: Path) -> None:
    files = [tmp_path / f"photo{number}.jpg" for number in range(20)]
    for file in files:
        shutil.copy(PHOTO, file)
    wrong = tmp_path / "notes.jpg"
    wrong.write_text("not an image")
    show(browser, "classify")
    browser.choose("classify-model", "flowers")
    browser.id("classify-file").send_keys("\n".join(map(str, [*files, wrong])))
    browser.wait_for_text("classify-status", "20 of 21 are classified.")
    cards = browser.all("#classify-results > li")
    assert len(cards) == 21
    assert all("sunflower" in card.text and "%" in card.text for card in cards[:20])
    assert "photo0.jpg" in cards[0].text
    assert "The bytes are not a JPEG, PNG or WebP image." in cards[20].text
    browser.click("classify-clear")
    assert browser.all("#classify-results > li") == []


def test_texts_and_pairs_are_classified(browser: Browser) -> None:
    show(browser, "classify")
    browser.choose("classify-model", "languages")
    browser.write("classify-text", (ROOT / "deploy/letter.txt").read_text())
    browser.all("#classify-texts button")[0].click()
    browser.wait_for_text("classify-status", "All are classified.")
    assert browser.all("#classify-results .bar")[0].text.startswith("German")
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


def test_back_returns_to_the_view_before(browser: Browser) -> None:
    for view in ("score", "generate"):
        show(browser, view)
    browser.write("prompt", "A lighthouse is ")
    browser.driver.back()
    wait_until(browser.id("panel-score").is_displayed)
    browser.driver.forward()
    wait_until(browser.id("panel-generate").is_displayed)
    assert browser.id("prompt").get_attribute("value") == "A lighthouse is ", "the page was not left"


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
        browser.wait_for_text("classify-status", "1 of 2 is classified.")
        browser.script("for (const one of document.querySelectorAll('details')) one.open = true")
        show(browser, "embed")
        browser.choose("embed-model", "languages")
        browser.click("embed-example")
        browser.click("embed-start")
        browser.wait_for_text("embed-status", "The texts are embedded.")
        show(browser, "server")
        wait_until(lambda: len(browser.all("#server-calls tr")) > 2)
        for view in TABS:
            show(browser, view)
            if view == "generate":
                browser.script("document.querySelectorAll('.token')[5].focus()")
            assert browser.serious_problems() == [], view
        for width in (320, 390):
            browser.resize(width, 800)
            for view in TABS:
                show(browser, view)
                wide = browser.script("return document.documentElement.scrollWidth")
                assert wide <= width, f"{view} is wider than a telephone"
        for view in TABS:
            show(browser, view)
            assert browser.serious_problems() == [], view
        assert "scroll it sideways" in browser.id("server-table-note").text
        assert "more-right" in browser.id("server-table").get_attribute("class")
        browser.script("document.getElementById('server-table').scrollLeft = 9999")
        wait_until(lambda: "more-right" not in browser.id("server-table").get_attribute("class"))
        browser.resize(1200, 900)
        wait_until(lambda: not browser.id("server-table-note").is_displayed())
        browser.resize(390, 800)
        browser.click("tab-generate")
        assert browser.errors() == []
