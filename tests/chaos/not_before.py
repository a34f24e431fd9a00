# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Lets events start that are not approved, when the run can only wait for that: how long it takes so far does not matter."""

from __future__ import annotations

import collections
import contextlib
import threading

from chaos.site import Site
from support.simulator_process import ControlError

# looks at the document since the last step on any VM: a run that waits looks each second
LOOKS = 8
PAUSE = 0.5


class NotBefore:
    """Watches the VMs' requests in a thread until it is stopped."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._over = threading.Event()
        self._last = 0
        self._looks: dict[str, list[float]] = collections.defaultdict(list)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(60)

    def _watch(self) -> None:
        while not self._over.wait(PAUSE):
            with contextlib.suppress(ControlError):  # an event has just started
                self._let_start()

    def _let_start(self) -> None:
        for request in self._site.simulator.get(f"/requests?after={self._last}")["requests"]:
            self._last = request["number"]
            if (request["method"], request["route"]) == ("GET", "scheduledevents"):
                self._looks[request["vm"]].append(request["moment"])
        for event in self._site.living():
            if event["status"] != "Scheduled" or event["approved"]:
                continue
            quiet_since = max([self._site.announced_at(event["id"]), *(mark.at for mark in self._site.marks())])
            if any(sum(at > quiet_since for at in self._looks[vm]) >= LOOKS for vm in event["resources"]):
                self._site.simulator.post(f"/events/{event['id']}/approve")
