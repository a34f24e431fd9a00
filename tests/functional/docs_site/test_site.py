# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The site as `make docs` builds it: it is complete, without a warning; in a browser its search and first path work."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple
from urllib.parse import urljoin

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from support.browser import Page, page_or_skip
from support.repository import REPOSITORY
from tools.docs_site.__main__ import CACHE, SITE
from tools.docs_site.serving import served
from tools.repository.collection_tree import only_one_at_a_time

# one worker builds the site once
pytestmark = [pytest.mark.all, pytest.mark.xdist_group("docs-site")]

# the environment of the running test: make must not change it
INSTALLED = ".venv/for-tests"
PHONE, DESKTOP = (390, 844), (1280, 900)
FITS = "return document.documentElement.scrollWidth <= window.innerWidth"


class Build(NamedTuple):
    """The end of a build: its exit status, and its output with all warnings."""

    status: int
    output: str


def without_network() -> list[str]:
    """Return the command that runs another one without a network, if this user may do so."""
    return ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []


@pytest.fixture(scope="session")
def build() -> Build:
    with only_one_at_a_time(CACHE / "docs-lock"):
        ended = subprocess.run(
            [*without_network(), "make", "--no-print-directory", f"--assume-old={INSTALLED}", "docs"],
            cwd=REPOSITORY,
            env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
    return Build(ended.returncode, ended.stdout)


@pytest.fixture(scope="session")
def address(build: Build) -> Iterator[str]:
    assert build.status == 0, build.output
    with served(SITE) as found:
        yield found


@pytest.fixture(scope="session")
def _one_page() -> Iterator[Page]:
    with page_or_skip() as opened:
        yield opened


@pytest.fixture
def page(_one_page: Page) -> Iterator[Page]:
    """Return a page of a desktop in light colours, without the settings of another test."""
    _one_page.show()
    _one_page.errors()
    yield _one_page
    _one_page.evaluate("window.localStorage.clear()")
    _one_page.driver.get("about:blank")


def test_build_of_the_checkout_reports_no_warning(build: Build) -> None:
    assert build.status == 0, build.output
    assert build.output.splitlines() == [str(SITE / "index.html")]


def test_each_page_plugin_and_role_is_a_page_of_the_site(build: Build) -> None:
    assert build.status == 0, build.output
    pages = {file.relative_to(SITE).with_suffix("").as_posix() for file in SITE.rglob("*.html")}
    documents = (REPOSITORY / "docs").rglob("*.md")
    wanted = {path.relative_to(REPOSITORY / "docs").with_suffix("").as_posix() for path in documents}
    wanted |= {f"roles/{path.name}" for path in (REPOSITORY / "roles").iterdir()}
    wanted |= {
        f"collections/azure_imds/scheduled_events/{path.stem}_{kind}"
        for folder, kind in (("modules", "module"), ("filter", "filter"), ("test", "test"))
        for path in (REPOSITORY / "plugins" / folder).glob("*.py")
        if "DOCUMENTATION = " in path.read_text(encoding="utf-8")
    }
    assert {name.replace("README", "index") for name in wanted} - pages == set()


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
