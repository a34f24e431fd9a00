# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Performs the actions of a plan, one after the other, and records them with their times."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from seed_campaign import clock_time
from soak.plan import VM, Action
from soak.testbed import Testbed, holds_within
from support.simulator_process import ControlError

# seconds that an action waits for a condition that may never hold
WAIT_TIMEOUT = 1.0
API = "/metadata/scheduledevents?api-version=2020-07-01"


class Actions:
    """Performs actions: `do_VERB` performs VERB with its arguments, and may return a text as result.

    Attributes:
        performed: a line of text for each action so far.
    """

    def __init__(self, testbed: Testbed) -> None:
        self.testbed, self.azure = testbed, testbed.azure
        self.performed: list[str] = []

    def do(self, action: Action) -> None:
        if not self.testbed.is_running():
            self.testbed.record_end("died")
            self.testbed.start()
        began = time.time()
        try:
            result = getattr(self, "do_" + action.verb.replace("-", "_"))(*action.arguments) or ""
        except ControlError as error:
            result = f"refused, {error.status}"  # the event was over, or had started, before this action
        self.performed.append(f"{clock_time(began)} {time.time() - began:5.2f} s  {action} {result}")

    # waiting

    def do_polls(self, count: int) -> str:
        """Wait until the daemon has sent so many requests."""
        before = len(self.azure.requests("GET"))
        came = holds_within(lambda: len(self.azure.requests("GET")) >= before + count, 2 * WAIT_TIMEOUT)
        return "" if came else "fewer requests"

    def do_until_mark(self, what: str, stage: str) -> str:
        """Wait until another hook of the stage begins, or succeeds (end)."""
        before = self._count(what, stage)
        return "" if holds_within(lambda: self._count(what, stage) > before, WAIT_TIMEOUT) else "no mark appeared"

    def do_pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def do_rest(self) -> None:
        """Do nothing: `plan_execution` waits for the end of all events after this action."""

    # events

    def do_announce(self, event_id: str, kind: str, resources: str, options: dict[str, Any]) -> None:
        # also a VM that was evicted returns
        self.azure.schedule(kind, *resources.split(","), id=event_id, started_for=3600, impact_for=0, **options)

    def do_event(self, event_id: str, verb: str, body: dict[str, Any]) -> None:
        """Let Azure cancel, complete, approve or change an event."""
        self.azure.simulator.post(f"/events/{event_id}/{verb}", body)

    # IMDS

    def do_imds(self, kind: str, options: dict[str, Any]) -> None:
        # an earlier fault takes precedence while it lasts
        self.azure.fault(kind, vm=VM, **options)

    def do_stale(self, what: str, pattern: str) -> None:
        """Answer the requests with these numbers with an old document: an empty one, or the present one."""
        body = json.dumps({"DocumentIncarnation": 1, "Events": []})
        if what == "this":  # the true document, which a VM without faults gets
            request = urllib.request.Request(self.azure.simulator.endpoints["vm3"] + API, headers={"Metadata": "true"})
            with urllib.request.urlopen(request, timeout=10) as answer:
                body = answer.read().decode()
        for number in pattern.split(","):
            self.azure.fault("body", vm=VM, method="GET", route="scheduledevents", requests=number, body=body)

    # the host

    def do_restart(self, how: str, pause: float) -> None:
        self.testbed.end(how)
        time.sleep(pause)
        self.testbed.start()

    def do_reload(self, history_events: int) -> str:
        if not holds_within(lambda: self.testbed.is_ready, WAIT_TIMEOUT):
            return "the daemon is not ready"
        self.testbed.reload(history_events=history_events)
        return ""

    def do_clock(self, skew: int) -> None:
        self.testbed.host.set_clock(skew)

    def _count(self, what: str, stage: str) -> int:
        return sum(mark.what == what and mark.hook.startswith(stage) for mark in self.testbed.harness.marks())
