# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A simulator and a browser with its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support import simulator_process
from support.browser import Page, page_or_skip

SCENARIO = {
    "title": "a small one",
    "groups": {
        "web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}},
        "db": {"kind": "standalone", "vms": {"db1": {}}},
    },
}


@pytest.fixture(scope="session")
def _one_page() -> Iterator[Page]:
    with page_or_skip() as opened:
        yield opened


@pytest.fixture
def page(_one_page: Page) -> Iterator[Page]:
    """Return the page of a desktop in light colours; no other page is open."""
    _one_page.show()
    yield _one_page
    _one_page.driver.get("about:blank")


@pytest.fixture
def start(_one_page: Page) -> Iterator[Callable[..., simulator_process.Simulator]]:
    """Return a function that starts a simulator, by default with a small scenario and a manual clock."""
    with ExitStack() as running:

        def begin(scenario: Any = SCENARIO, args: Any = ("--clock", "manual"), **more: Any) -> Any:
            return running.enter_context(simulator_process.start(scenario, args=[*args, "--quiet"], **more))

        yield begin
