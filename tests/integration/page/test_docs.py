"""/docs: what /openapi.json says, for people."""

from __future__ import annotations

import json
import urllib.request

from integration.browser import Browser
from integration.page.views import MARKS
from integration.server_process import Server, wait_until

pytestmark = MARKS


def test_every_call_and_object_is_shown_with_its_fields(browser: Browser, page: Server) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{page.http_port}/openapi.json") as answer:
        document = json.load(answer)
    browser.open_path(page.http_port, "docs")
    wait_until(lambda: browser.id("docs-status").text == "" and browser.all("#docs-objects > details") != [])
    calls = [(method, path) for path, methods in document["paths"].items() for method in methods]
    shown = browser.script(
        "return [...document.querySelectorAll('#docs-calls summary code')].map((one) => one.textContent)"
    )
    assert sorted(shown) == sorted(f"{method.upper()} {path}" for method, path in calls)
    assert len(browser.all("#docs-objects > details")) == len(document["components"]["schemas"])
    browser.script("document.getElementById('openai_completions').open = true")
    wait_until(lambda: browser.all("#openai_completions pre") != [])
    text = browser.id("openai_completions").text
    for words in ("prompt (required)", "default 16", "Tokens of a completion.", "OpenAIError", "curl '", '"prompt":'):
        assert words in text, text
    assert browser.serious_problems() == []


def test_a_link_opens_an_object(browser: Browser, page: Server) -> None:
    browser.open_path(page.http_port, "docs#object-CompletionChoice")
    wait_until(lambda: browser.all("#object-CompletionChoice[open] td") != [])
    assert "finish_reason" in browser.id("object-CompletionChoice").text
