# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/simulator.md as printed, by a user without root and with an empty home directory."""

from __future__ import annotations

import pytest

from support.simulator.report_page import ReportPage
from support.start.new_user import new_user
from support.start.page import follow

pytestmark = pytest.mark.all

PAGE = "docs/start/simulator.md"


def test_page_as_printed_approves_meets_a_fault_and_reports() -> None:
    with new_user("sys.version_info >= (3, 9)") as user, user.terminal() as terminal:
        follow(PAGE, user, terminal)
        report = ReportPage.of(user.home / "azure-handler" / "run.html")
        assert set(report.steps("vm1")) == {"seen", "approved"}
        assert any(answer["vm"] == "vm1" and answer["fault"] for answer in report.data["answers"])
