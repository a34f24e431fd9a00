# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Carries out the actions of a plan, one after the other, and notes what was done when."""

from __future__ import annotations

import json
import time
import urllib.request
from datetime import UTC, datetime
from typing import Any, NamedTuple

from soak.plan import VM, Action
from soak.testbed import Testbed, wait_until
from support.simulator_process import ControlError

# how long an action waits for what may never come
PROCESS_TIMEOUT = 1.0
API = "/metadata/scheduledevents?api-version=2020-07-01"


class PerformedAction(NamedTuple):
    """What was done: Unix times, the action, and what came of it where that is not plain."""

    began: float
    ended: float
    action: Action
    result: str = ""

    def __str__(self) -> str:
        clock = datetime.fromtimestamp(self.began, UTC).strftime("%H:%M:%S.%f")[:-3]
        return f"{clock} {self.ended - self.began:5.2f} s  {self.action}{self.result and ': ' + self.result}"


class Stale(NamedTuple):
    """From that time on a backend with an old document had these events for this VM."""

    since: float
    keys: frozenset[str]


class Actions:
    """The verbs of plans. Each takes the arguments of its action, and returns a word on what came of it or nothing.

    Attributes:
        performed: what was done so far.
        stale: the old documents that were served.
        deaths: how often the daemon had ended by itself before an action.
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
            result = f"refused, {error.status}"  # it was over, or had started, before its turn came
        self.performed.append(PerformedAction(began, time.time(), action, result))

    # waiting

    def do_polls(self, count: int) -> str:
        """Wait until the daemon has asked so often."""
        before = len(self.azure.requests("GET"))
        return (
            ""
            if wait_until(lambda: len(self.azure.requests("GET")) >= before + count, 2 * PROCESS_TIMEOUT, 0.05)
            else "not all came"
        )

    def do_until_mark(self, what: str, stage: str) -> str:
        """Wait until a hook of the stage has begun, or has ended well, from now on."""
        before = self._count(what, stage)
        return "" if wait_until(lambda: self._count(what, stage) > before, PROCESS_TIMEOUT) else "none came"

    def do_pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def do_rest(self) -> None:
        """Wait until nothing is left to do: `life` does it, which knows how long that may take."""

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
        """The operator of the platform lets it start."""
        self.azure.approve(event_id)

    def do_move(self, event_id: str, notice: int) -> None:
        self.azure.change(event_id, notice=notice)

    def do_retype(self, event_id: str, kind: str) -> None:
        self.azure.change(event_id, type=kind)

    def do_change_resources(self, event_id: str, resources: str) -> None:
        self.azure.change(event_id, resources=resources.split(","))

    # IMDS

    def do_imds(self, kind: str, seconds: float, options: str = "{}") -> None:
        # a fault that was injected earlier comes first as long as it lasts
        self.azure.fault(kind, vm=VM, **{"for": seconds}, **json.loads(options))

    def do_imds_for(self, kind: str, requests: str, options: str = "{}") -> None:
        self.azure.fault(kind, vm=VM, requests=requests, **json.loads(options))

    def do_stale(self, what: str, pattern: str) -> None:
        """Requests at these places of the order get an old document: an empty one, or the one of this moment."""
        body: dict[str, Any] = {"DocumentIncarnation": 1, "Events": []}
        if what == "this":
            body = json.loads(self._ask_as_other())
        keys = frozenset(event["EventId"].casefold() for event in body["Events"] if VM in event["Resources"])
        self.stale.append(Stale(time.time(), keys))
        for place in pattern.split(","):
            self.azure.fault(
                "body", vm=VM, method="GET", route="scheduledevents", requests=place, body=json.dumps(body)
            )

    def do_heal(self) -> None:
        """IMDS is well again."""
        self.azure.heal()

    # the host

    def do_kill(self, pause: float = 0.0) -> None:
        self._restart("kill", pause)

    def do_term(self, pause: float = 0.0) -> None:
        self._restart("term", pause)

    def do_reboot(self, pause: float = 0.0) -> None:
        self._restart("reboot", pause)

    def do_reload(self, output_tail: int) -> str:
        if not wait_until(lambda: self.testbed.is_ready, PROCESS_TIMEOUT):
            return "the daemon is not ready"
        self.testbed.reload(output_tail=output_tail)
        return ""

    def do_clock(self, skew: int) -> None:
        self.testbed.host.set_clock(skew)

    def do_journal_locked(self, seconds: float) -> str:
        return "" if self.testbed.journal.lock(seconds) else "it could not be locked"

    def do_journal_removed(self) -> None:
        self.testbed.journal.remove()

    def do_journal_overwritten(self) -> str:
        return "" if self.testbed.journal.overwrite(b"junk" * 256) else "there is none"

    def do_journal_emptied(self) -> str:
        return "" if self.testbed.journal.overwrite(b"") else "there is none"

    def do_killed_and_journal_removed(self) -> None:
        self.testbed.end("kill")
        self.testbed.journal.remove()
        self.testbed.start()

    def _restart(self, how: str, pause: float) -> None:
        self.testbed.end(how)
        time.sleep(pause)
        self.testbed.start()

    def _count(self, what: str, stage: str) -> int:
        return sum(mark.what == what and mark.hook.startswith(stage) for mark in self.testbed.marks())

    def _ask_as_other(self) -> bytes:
        """The true document, as a VM gets it whose answers have no faults."""
        request = urllib.request.Request(self.azure.simulator.endpoints["vm3"] + API, headers={"Metadata": "true"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            body: bytes = answer.read()
        return body
