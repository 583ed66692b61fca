"""The view Generate."""

from __future__ import annotations

from types import SimpleNamespace

from selenium.webdriver import ActionChains

from integration.browser import Browser, Keys
from integration.page.views import MARKS, OBSERVE, generate, sessions_of, show, transcript
from integration.server_process import Server, wait_until

pytestmark = MARKS


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
    browser.script(OBSERVE, "transcript")
    place = browser.id("generate-stop").location["y"]
    generate(browser, "A", 8000)
    browser.wait_for_text("generate-status", "Finished", "8,000 tokens", seconds=300)
    assert browser.id("generate-stop").location["y"] == place, "the button does not move away from the pointer"
    tokens = browser.script("return document.querySelectorAll('.token').length")
    assert tokens > 4000
    lines = browser.script("return document.querySelectorAll('#transcript > div').length")
    # One element for each line and each part of the prompt: what stands is not made again.
    assert browser.script("return window.made") == tokens + lines + 1
    browser.click("generate-new")
    assert transcript(browser) == ""


def test_a_session_is_closed_however_long_a_call_has_it(browser: Browser, page: Server, api: SimpleNamespace) -> None:
    """On a busy machine a call that was stopped may need many seconds until its step ends."""
    show(browser, "generate")
    browser.choose("generate-model", "enwiki")
    generate(browser, "A lighthouse is ", 20)
    browser.wait_for_text("generate-status", "Finished")
    session = {"id": sessions_of(api, page)[0].session_id}
    request = api.inference.GenerateRequest(model={"name": "enwiki"}, max_tokens=60_000, session=session)
    call = api.inference_grpc.InferenceStub(page.channel).GenerateStream(request, timeout=300)
    next(call)

    def asked() -> float:
        return page.metric("longshort_requests_total", rpc="ListSessions", code="OK")

    def refused() -> float:
        return page.metric("longshort_requests_total", rpc="CloseSession", code="ABORTED")

    before, refused_before = asked(), refused()
    browser.click("generate-new")
    wait_until(lambda: asked() >= before + 7)  # more than a page asks that gives up
    assert refused() == refused_before + 1
    call.cancel()
    wait_until(lambda: sessions_of(api, page) == [])
    browser.forget_errors()  # 409, once: the page does not know of the other call


def test_a_refused_text_leaves_no_session_to_close(browser: Browser, page: Server) -> None:
    def closings() -> float:
        return page.metric("longshort_requests_total", rpc="CloseSession")

    show(browser, "generate")
    browser.choose("generate-model", "tiny")
    browser.script("document.getElementById('max-tokens').removeAttribute('max')")
    before = closings()
    generate(browser, "A lighthouse is ", 10**9)
    browser.wait_for_text("generate-status", "max_tokens")
    assert browser.id("prompt").get_attribute("value") == "A lighthouse is ", "to be changed, and said again"
    assert transcript(browser) == ""
    # A session that is closed later is the only one.
    generate(browser, "A lighthouse is ", 10)
    browser.wait_for_text("generate-status", "Finished")
    browser.click("generate-new")
    wait_until(lambda: closings() > before)
    assert closings() == before + 1
    browser.forget_errors()  # 400
