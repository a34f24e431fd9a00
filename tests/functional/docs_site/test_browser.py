# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The site in a real browser: search, a reader's path, phone and desktop."""

from __future__ import annotations

from functools import partial
from urllib.parse import urljoin

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from support.browser import Page
from tools.docs_site.__main__ import SITE

# one worker builds the site once
pytestmark = [pytest.mark.all, pytest.mark.xdist_group("docs-site")]
PHONE, DESKTOP = (390, 844), (1280, 900)
FITS = "return document.documentElement.scrollWidth <= window.innerWidth"


def open_page(page: Page, address: str) -> None:
    page.driver.get(address)
    page.wait(lambda: page.find("article h1").text, f"the heading of {address}")


def follow(link: WebElement) -> None:
    """Follow a link by the keyboard: excerpts and smooth scrolling move links away from a pointer."""
    link.send_keys(Keys.ENTER)


def is_at(page: Page, address: str) -> bool:
    return bool(page.driver.current_url == address)


def assert_loads_only_from(page: Page, address: str) -> None:
    """Check that every file of the open page came from the server of the test, and that no error was reported."""
    names = page.evaluate("return performance.getEntriesByType('resource').map(each => each.name)")
    assert names
    assert [name for name in names if not name.startswith((address, "data:"))] == []
    assert page.errors() == []


def test_no_page_scrolls_sideways_on_a_phone(page: Page, address: str) -> None:
    page.show(*PHONE)
    wide = []
    for name in sorted(file.relative_to(SITE).as_posix() for file in SITE.rglob("*.html")):
        page.driver.get(address + name)
        if not page.evaluate(FITS):
            wide.append(name)
    assert wide == []
    assert page.errors() == []


def test_search_finds_a_word_and_leads_to_it(page: Page, address: str) -> None:
    open_page(page, address)
    field = page.find(".sidebar-search")
    field.send_keys("NotBefore", Keys.ENTER)
    page.wait(lambda: page.find("ul.search li a").is_displayed(), "a result")
    results = page.driver.find_elements(By.CSS_SELECTOR, "ul.search li a")
    assert len(results) >= 5
    title = results[0].text
    follow(results[0])
    page.wait(lambda: page.find("article h1").text == title.partition(" > ")[0], f"the page {title}")
    assert "NotBefore" in page.find("article").text
    assert_loads_only_from(page, address)


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_first_path_leads_through_its_pages(page: Page, address: str, size: tuple[int, int]) -> None:
    page.show(*size)
    open_page(page, address)
    # the rows of the table of paths
    links = page.driver.find_elements(By.CSS_SELECTOR, "section#start tbody tr:first-child a, section#start ol li a")
    targets = [urljoin(address, str(each.get_attribute("href"))) for each in links]
    assert len(targets) >= 3
    for number, target in enumerate(targets):
        link = page.driver.find_elements(
            By.CSS_SELECTOR, "section#start tbody tr:first-child a, section#start ol li a"
        )[number]
        follow(link)
        page.wait(partial(is_at, page, target), target)
        assert page.find("article h1").text
        assert page.evaluate(FITS)
        assert_loads_only_from(page, address)
        page.driver.back()
        page.wait(lambda: page.driver.current_url.rstrip("/") == address.rstrip("/"), "the first page")
