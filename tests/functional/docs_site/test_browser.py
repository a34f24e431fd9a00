# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The site in a real browser: search, a reader's path, phone and desktop, light and dark."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import urljoin

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from support.browser import Page
from tools.docs_site.built_site import BuiltSite

PHONE, DESKTOP = (390, 844), (1280, 900)
SCHEMES = ("light", "dark")
SAMPLE = (
    "index",
    "ansible",
    "salt",
    "hook-runner",
    "simulator/live-page",
    "promises",
    "reference/scheduled-events",
    "roles/hook_runner",
    "collections/azure_imds/scheduled_events/index",
    "collections/azure_imds/scheduled_events/event_approve_module",
    "api/salt/modules",
    "api/helper/document",
    "release-notes",
)
SCRIPTS = Path(__file__).parent
CONTRAST = (SCRIPTS / "contrast.js").read_text(encoding="utf-8")
FITS = "return document.documentElement.scrollWidth <= window.innerWidth"
# WCAG 2 AA: of text, and of text from 24 pixels
LEAST_CONTRAST, LEAST_OF_LARGE = 4.5, 3.0


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


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_page_fits_and_is_legible(page: Page, address: str, name: str, scheme: str, size: tuple[int, int]) -> None:
    page.show(*size, scheme)
    open_page(page, f"{address}{name}.html")
    assert page.evaluate(FITS)
    assert page.evaluate(CONTRAST, LEAST_CONTRAST, LEAST_OF_LARGE) == []
    assert_loads_only_from(page, address)


def test_check_of_contrast_finds_grey_text(page: Page, address: str) -> None:
    open_page(page, address)
    page.evaluate("document.querySelector('article h1').style.color = '#999'")
    page.evaluate("document.querySelector('article p, article li').style.color = '#777a'")
    found = page.evaluate(CONTRAST, LEAST_CONTRAST, LEAST_OF_LARGE)
    assert [line.partition(": ")[0] for line in found] == ["2.85", "2.48"]


def test_no_page_scrolls_sideways_on_a_phone(page: Page, address: str, site: BuiltSite) -> None:
    page.show(*PHONE)
    wide = []
    for name in site.pages:
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


def test_search_finds_a_status_code(page: Page, address: str) -> None:
    page.driver.get(f"{address}search.html?q=429")
    page.wait(lambda: page.find("ul.search li a").is_displayed(), "a result")
    results = [each.text for each in page.driver.find_elements(By.CSS_SELECTOR, "ul.search li a")]
    assert any(result.startswith("Troubleshooting") for result in results), results


def test_search_works_without_a_server(page: Page, site: BuiltSite) -> None:
    page.driver.get(f"file://{site.folder}/search.html?q=haproxy")
    page.wait(lambda: page.find("ul.search li a").is_displayed(), "a result")
    # a browser refuses to read the excerpts from files, which it reports as errors; the list of pages needs none
    assert page.find("ul.search li a").text.startswith("haproxy: ")


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


def test_menu_of_a_phone_leads_to_a_page(page: Page, address: str) -> None:
    page.show(*PHONE)
    open_page(page, address)
    page.find(".nav-overlay-icon").click()
    entry = page.find(".sidebar-tree a[href='salt.html']")
    page.wait(lambda: entry.is_displayed() and entry.rect["x"] >= 0, "the open menu")
    follow(entry)
    page.wait(lambda: page.driver.current_url == f"{address}salt.html", "the page about Salt")
    assert page.evaluate(FITS)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_theme_button_changes_the_colours_and_pages_keep_them(page: Page, address: str, scheme: str) -> None:
    other = "dark" if scheme == "light" else "light"
    page.show(*DESKTOP, scheme)
    open_page(page, address)
    before = page.evaluate("return getComputedStyle(document.body).backgroundColor")
    for _press in range(3):
        if page.evaluate("return document.body.dataset.theme") == other:
            break
        page.find(".content-icon-container .theme-toggle").click()
    assert page.evaluate("return document.body.dataset.theme") == other
    changed = page.evaluate("return getComputedStyle(document.body).backgroundColor")
    assert changed != before
    open_page(page, f"{address}salt.html")
    assert page.evaluate("return getComputedStyle(document.body).backgroundColor") == changed
    assert page.evaluate(CONTRAST, LEAST_CONTRAST, LEAST_OF_LARGE) == []


def test_anchor_of_html_is_shown_below_the_heading_of_a_phone(page: Page, address: str) -> None:
    page.show(*PHONE)
    open_page(page, f"{address}reference/scheduled-events.html#8")
    top = "return document.getElementById('8').getBoundingClientRect().top"
    page.wait(lambda: 0 <= page.evaluate(top) < PHONE[1], "section 8")
