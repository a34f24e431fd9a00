# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/simulator.md as printed, by a new user."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.new_user.new_user import NewUser, new_user
from support.new_user.page_reader import PageReader
from support.simulator.report_page import ReportPage

OLDEST_PYTHON = (3, 9)


@pytest.fixture
def user() -> Iterator[NewUser]:
    with new_user(OLDEST_PYTHON) as found:
        yield found


def test_simulator_page_as_printed_ends_with_a_report(user: NewUser) -> None:
    began = time.monotonic()
    reader = PageReader("docs/start/simulator.md", str(user.home))
    with user.shell(network=True) as shell:
        reader.go_on(shell, "pip install")
    with user.shell(network=False) as shell:
        shell.paste("cd azure-handler\n. venv/bin/activate\n")
        reader.go_on(shell, "user-reboot")
        print(f"first result after {time.monotonic() - began:.0f} s")
        reader.go_on(shell)
        print(f"end after {time.monotonic() - began:.0f} s")
    assert reader.is_at_end()
    report = ReportPage.of(user.home / "azure-handler" / "run.html")
    assert {mark.kind for mark in report.marks("vm1")} == {"errors", "seen", "approved"}
