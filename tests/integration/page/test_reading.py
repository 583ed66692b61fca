"""What a person does with a text that was scored or generated: reading, selecting and copying it."""

from __future__ import annotations

from pathlib import Path

from selenium.webdriver import ActionChains

from integration.browser import Browser, Keys
from integration.page.views import MARKS, clipboard, generate, press_copy, scored, show
from integration.server_process import wait_until

pytestmark = MARKS

HEBREW = "שלום עולם, הספר הזה מספר על הים!"


def score(browser: Browser, text: str, model: str = "tiny") -> None:
    show(browser, "score")
    browser.choose("score-model", model)
    browser.script("document.getElementById('score-text').value = arguments[0]", text)
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")


def test_the_whole_scored_text_can_be_selected(browser: Browser) -> None:
    """Only the lines in sight are in the document, so the page has a selection of its own."""
    text = "".join(f"Line {number} of a text,\twith a tab.\n" for number in range(400))
    score(browser, text)
    view = browser.id("score-view")
    view.send_keys(Keys.CONTROL, "a")
    browser.wait_for_text("score-detail", f"{len(text):,} characters selected.")
    assert len(browser.all("#score-view .text-row")) < 100
    assert len(browser.all("#score-view .picked")) == len(browser.all("#score-view .text-row span"))
    view.send_keys(Keys.CONTROL, "c")
    wait_until(lambda: clipboard(browser) == text)
    view.send_keys(Keys.ESCAPE)
    assert browser.all("#score-view .picked") == []
    view.send_keys(Keys.CONTROL, Keys.HOME)
    view.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    view.send_keys(Keys.CONTROL, "c")
    wait_until(lambda: clipboard(browser) == "Line")
    view.send_keys(Keys.ARROW_LEFT)
    assert browser.all("#score-view .picked") == []
    assert press_copy(browser, "#score-copy") == text


def test_the_pointer_selects(browser: Browser) -> None:
    score(browser, "One two three.\nFour five six.\n" * 300)
    browser.script("document.getElementById('score-view').scrollIntoView()")
    letters = browser.all("#score-view .text-row span")
    ActionChains(browser.driver).click_and_hold(letters[4]).move_to_element(letters[17]).release().perform()
    browser.id("score-view").send_keys(Keys.CONTROL, "c")
    wait_until(lambda: clipboard(browser) == "two three.\nFou")
    # A click moves the cursor, and nothing is selected any more.
    browser.all("#score-view .text-row span")[2].click()
    assert browser.all("#score-view .picked") == [] and len(browser.all("#score-view .cursor")) == 1
    # At the lower edge the text scrolls on, and so does the selection.
    first = browser.all("#score-view [data-at='0']")[0]
    height = browser.id("score-view").size["height"]
    ActionChains(browser.driver).click_and_hold(first).move_by_offset(30, height - 20).perform()
    lines = int(height / 20)
    wait_until(lambda: browser.script("return document.getElementById('score-view').scrollTop") > 2 * height)
    ActionChains(browser.driver).release().perform()
    browser.id("score-view").send_keys(Keys.CONTROL, "c")
    wait_until(lambda: clipboard(browser).count("\n") > lines)
    assert clipboard(browser).startswith("One two three.\nFour")


def test_text_from_right_to_left_is_read_so(browser: Browser, tmp_path: Path) -> None:
    score(browser, f"{HEBREW}\nLeft to right.\n", "enwiki")
    rows = "return [...document.querySelectorAll('#score-view .text-row')].map((row) => [row.dir, row.textContent])"
    shown = browser.script(rows)
    assert ("rtl", "Left to right.↵") not in [tuple(row) for row in shown]
    assert [row[0] for row in shown] == ["rtl", "ltr"]
    left = """const view = document.getElementById("score-view").getBoundingClientRect();
        const box = document.querySelector("#score-view [data-at='0']").getBoundingClientRect();
        return [box.left - view.left, view.right - box.right];"""
    from_left, from_right = browser.script(left)
    assert from_right < 10 < from_left, "the first letter is at the right"
    # The left arrow goes on in the text.
    browser.id("score-view").send_keys(Keys.HOME, Keys.ARROW_LEFT)
    browser.wait_for_text("score-detail", "At byte 2.")
    assert scored(browser, tmp_path)["bytes"] == len(f"{HEBREW}\nLeft to right.\n".encode())
    for name in ("score-text", "prompt", "classify-text", "classify-text-2", "embed-text-1", "embed-text-2"):
        direction = "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
        direction += "const found = getComputedStyle(field).direction; field.value = ''; return found;"
        assert browser.script(direction, name, HEBREW) == "rtl", name
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    browser.script("document.getElementById('prompt').value = arguments[0]", HEBREW)
    browser.click("generate-start")
    browser.wait_for_text("generate-status", "Finished")
    of_transcript = "return getComputedStyle(document.querySelector('#transcript div')).direction"
    assert browser.script(of_transcript) == "rtl"
    browser.click("generate-new")


def test_a_generated_text_is_copied(browser: Browser) -> None:
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    generate(browser, "The history of ", 30)
    browser.wait_for_text("generate-status", "Finished")
    copied = press_copy(browser, "#generate-copy")
    assert copied.startswith("The history of ") and len(copied.encode()) == len("The history of ") + 30
    assert "Copied" not in browser.id("announcement").text
    assert browser.id("announcement").get_attribute("textContent") == "The text was copied."
    browser.click("generate-new")
    assert not browser.id("generate-copy").is_enabled()


def test_a_page_without_a_clipboard_copies_too(browser: Browser) -> None:
    """A browser gives no navigator.clipboard to pages by plain HTTP from other machines."""
    browser.script("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
    show(browser, "score")
    browser.choose("score-model", "tiny")
    browser.script("document.getElementById('score-text').value = 'A text.'")
    browser.click("score-start")
    browser.wait_for_text("score-status", "Scored")
    browser.click("score-copy")
    wait_until(lambda: browser.id("score-copy").text == "Copied")
    browser.script("delete navigator.clipboard")
    assert clipboard(browser) == "A text."
