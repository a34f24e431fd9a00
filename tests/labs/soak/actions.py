# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Performs the actions of a plan, one after the other, and records them with their times."""

from __future__ import annotations

import json
import time
import urllib.request
from datetime import UTC, datetime
from typing import Any, NamedTuple

from soak.plan import VM, Action
from soak.testbed import Testbed, wait_until
from support.simulator_process import ControlError

# seconds that an action waits for a condition that may never hold
WAIT_TIMEOUT = 1.0
API = "/metadata/scheduledevents?api-version=2020-07-01"


class PerformedAction(NamedTuple):
    """An action that was performed, with Unix times, and its result where that is not obvious."""

    began: float
    ended: float
    action: Action
    result: str = ""

    def __str__(self) -> str:
        clock = datetime.fromtimestamp(self.began, UTC).strftime("%H:%M:%S.%f")[:-3]
        return f"{clock} {self.ended - self.began:5.2f} s  {self.action}{self.result and ': ' + self.result}"


class Stale(NamedTuple):
    """A backend with an old document, which from a time on had these events for this VM."""

    since: float
    keys: frozenset[str]


class Actions:
    """Performs actions: `do_VERB` performs VERB with its arguments, and may return a text as result.

    Attributes:
        performed: the actions so far.
        stale: the old documents that were served.
        deaths: number of times that the daemon had ended by itself before an action.
    """

    def __init__(self, testbed: Testbed) -> None:
        self.testbed, self.azure = testbed, testbed.azure
        self.performed: list[PerformedAction] = []
        self.stale: list[Stale] = []
        self.deaths = 0

    def do(self, action: Action) -> None:
        if not self.testbed.is_running():
            self.deaths += 1
            self.testbed.record_end("died")
            self.testbed.start()
        began = time.time()
        try:
            result = getattr(self, "do_" + action.verb.replace("-", "_"))(*action.arguments) or ""
        except ControlError as error:
            result = f"refused, {error.status}"  # the event was over, or had started, before this action
        self.performed.append(PerformedAction(began, time.time(), action, result))

    # waiting

    def do_polls(self, count: int) -> str:
        """Wait until the daemon has sent so many requests."""
        before = len(self.azure.requests("GET"))
        return (
            ""
            if wait_until(lambda: len(self.azure.requests("GET")) >= before + count, 2 * WAIT_TIMEOUT, 0.05)
            else "fewer requests"
        )

    def do_until_mark(self, what: str, stage: str) -> str:
        """Wait until another hook of the stage begins, or succeeds."""
        before = self._count(what, stage)
        return "" if wait_until(lambda: self._count(what, stage) > before, WAIT_TIMEOUT) else "no mark appeared"

    def do_pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def do_rest(self) -> None:
        """Do nothing: `plan_execution` waits for the end of all events after this action."""

    # events

    def do_announce(self, event_id: str, kind: str, resources: str, notice: int) -> None:
        self.azure.schedule(kind, *resources.split(","), id=event_id, notice=notice, started_for=3600)

    def do_start_unannounced(self, event_id: str, kind: str, resources: str) -> None:
        self.azure.schedule(kind, *resources.split(","), id=event_id, starts="automatic_approval", started_for=3600)

    def do_cancel(self, event_id: str) -> None:
        self.azure.cancel(event_id)

    def do_complete(self, event_id: str) -> None:
        self.azure.complete(event_id)

    def do_release(self, event_id: str) -> None:
        """Let the operator of the platform start the event."""
        self.azure.approve(event_id)

    def do_move(self, event_id: str, notice: int) -> None:
        self.azure.change(event_id, notice=notice)

    def do_retype(self, event_id: str, kind: str) -> None:
        self.azure.change(event_id, type=kind)

    def do_change_resources(self, event_id: str, resources: str) -> None:
        self.azure.change(event_id, resources=resources.split(","))

    # IMDS

    def do_imds(self, kind: str, seconds: float, options: str = "{}") -> None:
        # an earlier fault takes precedence while it lasts
        self.azure.fault(kind, vm=VM, **{"for": seconds}, **json.loads(options))

    def do_imds_for(self, kind: str, requests: str, options: str = "{}") -> None:
        self.azure.fault(kind, vm=VM, requests=requests, **json.loads(options))

    def do_stale(self, what: str, pattern: str) -> None:
        """Answer the requests with these numbers with an old document: an empty one, or the present one."""
        body: dict[str, Any] = {"DocumentIncarnation": 1, "Events": []}
        if what == "this":
            body = json.loads(self._read_as_other_vm())
        keys = frozenset(event["EventId"].casefold() for event in body["Events"] if VM in event["Resources"])
        self.stale.append(Stale(time.time(), keys))
        for number in pattern.split(","):
            self.azure.fault(
                "body", vm=VM, method="GET", route="scheduledevents", requests=number, body=json.dumps(body)
            )

    def do_heal(self) -> None:
        self.azure.heal()

    # the host

    def do_kill(self, pause: float = 0.0) -> None:
        self._restart("kill", pause)

    def do_term(self, pause: float = 0.0) -> None:
        self._restart("term", pause)

    def do_reboot(self, pause: float = 0.0) -> None:
        self._restart("reboot", pause)

    def do_reload(self, history_events: int) -> str:
        if not wait_until(lambda: self.testbed.is_ready, WAIT_TIMEOUT):
            return "the daemon is not ready"
        self.testbed.reload(history_events=history_events)
        return ""

    def do_clock(self, skew: int) -> None:
        self.testbed.host.set_clock(skew)

    def do_disk_full(self, seconds: float) -> None:
        self.testbed.records.fill(seconds)

    def do_records_removed(self) -> None:
        self.testbed.records.remove()

    def do_records_overwritten(self) -> str:
        return "" if self.testbed.records.overwrite(b"junk" * 256) else "there are no records"

    def do_records_emptied(self) -> str:
        return "" if self.testbed.records.overwrite(b"") else "there are no records"

    def do_killed_and_records_removed(self) -> None:
        self.testbed.end("kill")
        self.testbed.records.remove()
        self.testbed.start()

    def _restart(self, how: str, pause: float) -> None:
        self.testbed.end(how)
        time.sleep(pause)
        self.testbed.start()

    def _count(self, what: str, stage: str) -> int:
        return sum(mark.what == what and mark.hook.startswith(stage) for mark in self.testbed.marks())

    def _read_as_other_vm(self) -> bytes:
        """Return the true document, which a VM without faults gets."""
        request = urllib.request.Request(self.azure.simulator.endpoints["vm3"] + API, headers={"Metadata": "true"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            body: bytes = answer.read()
        return body
