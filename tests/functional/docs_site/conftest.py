# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The site as `make docs` builds it, an HTTP server on loopback for it, and a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from support.browser import Page, page_or_skip
from support.repository import REPOSITORY
from tools.docs_site.__main__ import CACHE, SITE
from tools.docs_site.serving import served
from tools.repository.collection_tree import only_one_at_a_time

# `make docs` sets the same
SOURCES = ("plugins/module_utils", "salt/_utils", "tests", ".")


# the environment of the running test: make must not change it
INSTALLED = ".venv/for-tests"


class Build(NamedTuple):
    """The end of a build: its exit status, and its output with all warnings."""

    status: int
    output: str


def environment() -> dict[str, str]:
    paths = os.pathsep.join(str(REPOSITORY / path) for path in SOURCES)
    return {**os.environ, "PYTHONPATH": paths, "ANSIBLE_HOME": str(CACHE / "home" / ".ansible"), "LC_ALL": "C.UTF-8"}


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
