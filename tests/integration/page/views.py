"""What tests of the page do with its views."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from integration.browser import Browser
from integration.server_process import ROOT, Server, wait_until

# Each module of tests has them.
MARKS = [
    pytest.mark.cpu_only("the page does not know where models run"),
    pytest.mark.not_sanitized("most of it is the browser's work; the tests of Connect make its calls"),
]
PHOTO = ROOT / "deploy/photo.jpg"
TABS = ("models", "score", "generate", "classify", "embed", "server")
# Pastes a text into a field.
PASTE = """
const [target, text] = arguments, transfer = new DataTransfer();
transfer.setData("text", text);
target.dispatchEvent(new ClipboardEvent("paste", {bubbles: true, cancelable: true, clipboardData: transfer}));
"""
# Counts the elements that the page makes below one with a given id: all of them, and the most from one frame to the
# next. Notes the size of the largest body that it sends.
OBSERVE = """
window.made = window.mostInFrame = window.largestCall = 0;
let inFrame = 0;
const counted = new WeakSet();
new MutationObserver((changes) => {
  for (const node of changes.flatMap((change) => [...change.addedNodes])) {
    for (const element of node.nodeType === Node.ELEMENT_NODE ? [node, ...node.querySelectorAll("*")] : []) {
      if (counted.has(element)) continue;
      counted.add(element);
      ++window.made;
      ++inFrame;
    }
  }
  window.mostInFrame = Math.max(window.mostInFrame, inFrame);
}).observe(document.getElementById(arguments[0]), {childList: true, subtree: true});
const frame = () => {
  inFrame = 0;
  requestAnimationFrame(frame);
};
frame();
const send = window.fetch;
window.fetch = (resource, options) => {
  window.largestCall = Math.max(window.largestCall, options?.body?.length ?? 0);
  return send(resource, options);
};
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


def scored(browser: Browser, downloads: Path) -> dict[str, Any]:
    """What "Download as JSON" saves."""
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
    file = downloads / "scores.json"
    file.unlink(missing_ok=True)
    browser.click("score-download")
    wait_until(file.exists)
    return json.loads(file.read_text())


def press_copy(browser: Browser, selector: str) -> str:
    """Presses a button that copies, and returns what is in the clipboard then."""
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.all(selector)[0].click()
    wait_until(lambda: browser.all(selector)[0].text == "Copied")
    return clipboard(browser)


def clipboard(browser: Browser) -> str:
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    return browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")


def same_call(browser: Browser, view: str, kind: str) -> str:
    """The call of a view as a program, as the button copies it."""
    details = f"#{view}-call details"
    if not browser.all(details)[0].get_attribute("open"):
        browser.all(f"{details} > summary")[0].click()
    browser.all(f"{details} input[value={kind}]")[0].click()
    return press_copy(browser, f"{details} button")
