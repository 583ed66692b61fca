"""What tests of the page do with its views."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from integration.browser import Browser
from integration.server_process import ROOT, Server

# Each module of tests has them.
MARKS = [
    pytest.mark.cpu_only("the page does not know where models run"),
    pytest.mark.not_sanitized("most of it is the browser's work; the tests of Connect make its calls"),
]
PHOTO = ROOT / "deploy/photo.jpg"
TABS = ("models", "score", "generate", "classify", "server")
# Notes the longest time for which the page did not answer, in milliseconds.
OBSERVE = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
}).observe({type: "longtask"});
"""


def show(browser: Browser, view: str) -> None:
    browser.click(f"tab-{view}")
    assert browser.id(f"panel-{view}").is_displayed()


def sessions_of(api: SimpleNamespace, page: Server) -> list[Any]:
    """The sessions that the server holds."""
    request = api.sessions.ListSessionsRequest(model={"name": "enwiki"})
    return list(api.sessions_grpc.SessionsStub(page.channel).ListSessions(request).sessions)


def generate(browser: Browser, prompt: str, most: int) -> None:
    browser.write("prompt", prompt)
    browser.write("max-tokens", str(most))
    browser.click("generate-start")


def transcript(browser: Browser) -> str:
    return browser.id("transcript").get_attribute("textContent")
