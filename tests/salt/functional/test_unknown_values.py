# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The engine and a minion, for an event with a value that this version does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.salt.loaded import CountingMinion
from support.salt.scripted import ScriptedImds
from support.salt_simulation.driver import Driver


class PreparedSite:
    """An engine whose only minion has prepared for the event with the ID ``A``, as far as its IMDS permits."""

    def __init__(self, minion: CountingMinion) -> None:
        self._minion = minion
        self.fleet = Driver("vm1")
        self.fleet.poll({"vm1": minion.call("status")})
        self._run("prepare")

    def approve_what_is_due(self) -> None:
        """Have the minion do what the engine requests within 20 seconds."""
        self.fleet.wait(1)
        self.fleet.poll({"vm1": self._minion.call("status")})
        self.fleet.wait(20)
        self._run("approve_prepared")

    def _run(self, function: str) -> None:
        for job in self.fleet.pending(function)[-1:]:
            self.fleet.answer(function, {"vm1": self._minion.call(function, **job.kwargs)})


@pytest.mark.parametrize(
    ("field", "value"),
    [("EventType", "Melt"), ("EventSource", "Neighbour"), ("ResourceType", "Disk"), ("EventStatus", "Paused")],
)
def test_unknown_value_is_approved_by_no_rule(tmp_path: Path, scripted: ScriptedImds, field: str, value: str) -> None:
    scripted.events = [{**scripted.event("A", "vm1"), field: value}]
    site = PreparedSite(CountingMinion(tmp_path, scripted.endpoint))
    site.approve_what_is_due()
    assert scripted.approved == []
    if field != "EventStatus":
        # a person can; a minion does not prepare for an event that may be over
        site.fleet.request("approve", "A", force=True)
        site.approve_what_is_due()
        assert scripted.approved == ["A"]
