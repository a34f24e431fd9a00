# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The column "problem" of the runner's ``fleet``."""

from __future__ import annotations

from azure_events_engine.status_rows import event_rows, minion_rows
from support.salt_simulation.driver import Driver, event, status

REFUSED = "IMDS at http://169.254.169.254 answered 403 to GET /metadata/instance"


def test_error_of_imds_is_shown_as_the_minion_reports_it() -> None:
    fleet = Driver("vm1", "vm2")
    fleet.poll({"vm1": status("vm1", event("vm1", "vm2")), "vm2": status(None, available=False, reason=REFUSED)})
    assert [row["problem"] for row in minion_rows(fleet.state)] == ["", REFUSED]
    assert [row["why_not"] for row in event_rows(fleet.state)][1] == f"minion vm2: {REFUSED}"
