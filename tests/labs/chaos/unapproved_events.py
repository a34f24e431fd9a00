# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts events that are not approved as soon as a run can only wait for NotBefore.

The duration of a seed therefore does not depend on the notice of its events.
"""

from __future__ import annotations

import collections
import contextlib
import threading

from chaos.testbed import Testbed
from support.simulator_process import ControlError

# requests since the last step on any VM; a run that waits polls once a second
POLLS = 8
PAUSE = 0.5


class UnapprovedEventStarter:
    """Watches the VMs' requests in a thread until it is stopped."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self._over = threading.Event()
        self._last = 0
        self._polls: dict[str, list[float]] = collections.defaultdict(list)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(60)

    def _watch(self) -> None:
        while not self._over.wait(PAUSE):
            with contextlib.suppress(ControlError):  # an event has started since then
                self._let_start()

    def _let_start(self) -> None:
        for request in self._testbed.simulator.get(f"/requests?after={self._last}")["requests"]:
            self._last = request["number"]
            if (request["method"], request["route"]) == ("GET", "scheduledevents"):
                self._polls[request["vm"]].append(request["moment"])
        for event in self._testbed.active_events():
            if event["status"] != "Scheduled" or event["approved"]:
                continue
            quiet_since = max([self._testbed.announced_at(event["id"]), *(mark.at for mark in self._testbed.marks())])
            if any(sum(at > quiet_since for at in self._polls[vm]) >= POLLS for vm in event["resources"]):
                self._testbed.simulator.post(f"/events/{event['id']}/approve")
