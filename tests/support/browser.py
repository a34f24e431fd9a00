# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Debian's Chromium without a window, and the live page in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from support.wait import wait_until

T = TypeVar("T")

# the browser of Debian, and that of the hosts of GitHub, whose chromium is a snap
_BROWSERS = ("chromium", "google-chrome")
_DRIVER = "chromedriver"
INSTALL = "on Debian: apt-get install chromium chromium-driver"
_OPTIONS = (
    "--headless=new",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--no-proxy-server",
    # the page must need no other host
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--force-color-profile=srgb",
    "--lang=en",
)

_BROKEN_WORDS = """
const found = [], range = document.createRange();
const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode;
  if (!text.parentElement.offsetParent) continue;
  for (const word of text.data.matchAll(/[^\\s-]+/g)) {
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) found.push(word[0]);
  }
}
return found;
"""


def find_browser() -> tuple[str, str] | None:
    """Return the paths of the browser and of its driver, or None if one is missing."""
    driver = shutil.which(_DRIVER)
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    return (browser, driver) if browser and driver else None


def packages() -> dict[str, str]:
    """Return program -> package of Debian, for the programs that this machine needs."""
    return {} if find_browser() else {"chromium": "chromium", _DRIVER: "chromium-driver"}


@contextlib.contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    found = find_browser()
    if found is None:
        raise FileNotFoundError(f"there is no {' or '.join(_BROWSERS)}, or no {_DRIVER}; {INSTALL}")
    options = webdriver.ChromeOptions()
    options.binary_location, driver_path = found
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        for each in (*_OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(each)
        if os.geteuid() == 0:
            # Chromium refuses its sandbox as root
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(driver_path))
        try:
            yield driver
        finally:
            driver.quit()


@contextlib.contextmanager
def page_or_skip() -> Iterator[Page]:
    """Open a browser for a test, which is skipped on a machine without one."""
    if find_browser() is None:
        pytest.skip(f"needs Chromium and its driver; {INSTALL}")
    with chromium() as driver:
        yield Page(driver)


class Page:
    """The live page in a browser. ``wait`` repeats a check until it holds, because the page changes by itself."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Open the page and wait for its data."""
        self.errors()
        self.driver.get(url)
        self.wait_for("#connection", "open")

    def show(self, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Set the size of the view in pixels, and the colour scheme that the user prefers."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def find(self, selector: str) -> WebElement:
        """Return the first element of a CSS selector."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.find(selector).text

    def card(self, name: str) -> WebElement:
        """Return the card of an event."""
        for each in self.find_all(".event"):
            if each.find_element(By.CSS_SELECTOR, ".name").text == name:
                return each
        raise NoSuchElementException(name)

    def part(self, name: str, selector: str) -> WebElement:
        """Return an element of the card of an event."""
        return self.card(name).find_element(By.CSS_SELECTOR, selector)

    def wait(self, check: Callable[[], T], what: str) -> T:
        """Return the first true result of ``check``; elements that are missing or replaced count as false."""

        def tolerant() -> T | None:
            try:
                return check()
            except (NoSuchElementException, StaleElementReferenceException):
                return None

        found = wait_until(tolerant, what, lambda: self.driver.find_element(By.TAG_NAME, "body").text)
        assert found is not None
        return found

    def wait_for(self, selector: str, text: str) -> None:
        self.wait(lambda: text in self.text(selector), f"{text!r} in {selector}")

    def wait_for_part(self, name: str, selector: str, text: str) -> None:
        self.wait(lambda: text in self.part(name, selector).text, f"{text!r} in {selector} of {name}")

    def fill(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text or Keys.DELETE)

    def choose(self, field: WebElement, text: str) -> None:
        Select(field).select_by_visible_text(text)

    def evaluate(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def broken_words(self) -> list[str]:
        """Return the words that take more than one line; a word may break after a hyphen."""
        found: list[str] = self.evaluate(_BROKEN_WORDS)
        return found

    def errors(self) -> list[str]:
        """Return what the browser has reported as an error since the page was opened."""
        entries = self.driver.execute("getLog", {"type": "browser"})["value"]
        return [each["message"] for each in entries if each["level"] == "SEVERE"]
