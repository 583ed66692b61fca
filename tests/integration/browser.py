"""A headless Chromium that uses the page of a server."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from integration.server_process import wait_until

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
MISSING = (
    None
    if CHROMIUM and DRIVER
    else "Debian's packages chromium and chromium-driver are not installed (deploy/install --tests)"
)


class Browser:
    """Use as a context manager. Everything that it finds is found by its id, or by a CSS selector."""

    def __init__(self, downloads: Path, *, dark: bool = False, width: int = 1200, height: int = 900) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        arguments = ["--headless=new", "--no-proxy-server", "--disable-dev-shm-usage", "--hide-scrollbars"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium has none for root
        for argument in arguments:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.resize(width, height)
        self.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
        self._errors: list[str] = []
        self._requests: list[str] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.quit()

    def command(self, name: str, **parameters: Any) -> Any:
        """One of the DevTools' commands."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)

    def open(self, port: int, view: str = "models") -> None:
        """Loads the page and shows a view."""
        self.driver.get("about:blank")
        self._read_logs()
        self._errors.clear()
        self._requests.clear()
        self.driver.get(f"http://127.0.0.1:{port}/#{view}")
        wait_until(lambda: bool(self.all("#score-model option")) or self.id("token-dialog").is_displayed())

    def open_path(self, port: int, path: str) -> None:
        self.driver.get(f"http://127.0.0.1:{port}/{path}")

    def id(self, name: str) -> WebElement:
        return self.driver.find_element(By.ID, name)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, name: str) -> None:
        self.id(name).click()

    def write(self, name: str, text: str) -> None:
        """Puts text into a field, in place of what it has."""
        self.id(name).clear()
        self.id(name).send_keys(text)

    def press(self, *keys: str) -> None:
        """Presses keys where the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self) -> str:
        """The id of the element that has the focus."""
        return self.driver.switch_to.active_element.get_attribute("id")

    def choose(self, name: str, model: str) -> None:
        """Selects a model by its name; the page loads the list of models again now and then."""
        wait_until(lambda: any(option.text == model for option in self.all(f"#{name} option")))
        self.id(name).find_element(By.XPATH, f"./option[.='{model}']").click()

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def wait_for_text(self, name: str, *parts: str, seconds: float = 60.0) -> str:
        """The text of an element, once it has all parts."""
        element = self.id(name)

        def complete() -> bool:
            return all(part in element.text for part in parts)

        try:
            wait_until(complete, seconds)
        except AssertionError as error:
            raise AssertionError(f"#{name} has {element.text!r} and not {parts}") from error
        return element.text

    def serious_problems(self) -> list[str]:
        """What axe-core finds serious or critical in what is shown."""
        found = Axe().run(self.driver)["violations"]
        return [
            f"{one['id']}: {node['html']} {node['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def _read_logs(self) -> None:
        self._errors += [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requests.append(message["params"]["request"]["url"])

    def forget_errors(self) -> None:
        self._read_logs()
        self._errors.clear()

    def errors(self) -> list[str]:
        """The errors of the console since the page was opened."""
        self._read_logs()
        return self._errors

    def hosts(self) -> set[str]:
        """Where requests of the page went since it was opened, other than to its own memory."""
        self._read_logs()
        parts = [urlsplit(url) for url in self._requests]
        return {part.netloc for part in parts if part.scheme not in ("data", "blob", "about")}


__all__ = ["MISSING", "Browser", "Keys"]
