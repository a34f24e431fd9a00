# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Performs the disturbances of a plan during the disturbed run, and records them with their times."""

from __future__ import annotations

import collections
import contextlib
import json
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from chaos.controller import Controller
from chaos.evidence import unix_time
from chaos.plan import Disturbance, Event, Moment
from chaos.testbed import Testbed
from support.simulator_process import ControlError

AFTER_THE_NEXT_RUN = "after the next run"
PAUSE = 0.05
# requests since the last step on any VM; a run that waits polls once a second
POLLS = 8
STARTER_PAUSE = 0.5


class Disturbances:
    """Performs each disturbance in a thread at its moment, while the run lasts; `do_VERB` performs VERB.

    Attributes:
        performed: the actions so far.
        done: their verbs.
        vm_kept_down: the VM that is down until the next run is over.
        second_run: the other controller, if there was one.
        errors: tracebacks of this class.
    """

    def __init__(self, testbed: Testbed, run: Controller, disturbances: Sequence[Disturbance]) -> None:
        self._testbed, self._run = testbed, run
        self.performed: list[tuple[float, str]] = []
        self.vm_kept_down: str | None = None
        self.second_run: Controller | None = None
        self.errors: list[str] = []
        self.done: list[str] = []
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run_disturbance, args=(each,), daemon=True) for each in disturbances
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads: the disturbed run is over."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _run_disturbance(self, disturbance: Disturbance) -> None:
        try:
            if not self._wait_for(disturbance.moment):
                self._record(f"{disturbance.verb}: its moment did not come")
                return
            self._record(f"{disturbance.verb} {disturbance.arguments}")
            getattr(self, "do_" + disturbance.verb.replace("-", "_"))(*disturbance.arguments)
            self.done.append(disturbance.verb)
        except Exception:  # the report shows every error
            self.errors.append(traceback.format_exc())

    def _record(self, text: str) -> None:
        self.performed.append((time.time(), text))

    def _wait_for(self, moment: Moment) -> bool:
        """Return True if the moment came during the run."""
        if moment.what == "mark":
            step, what = moment.name.split()[::-1]
            came = self._wait(
                lambda: any(mark[2:] == (step, what, self._run.name) for mark in self._testbed.vms[moment.vm].marks())
            )
        elif moment.what == "azure":
            came = self._wait(
                lambda: any(
                    line["what"] == moment.name and unix_time(line["time"]) > self._run.began
                    for line in self._testbed.azure_log()
                )
            )
        else:
            came = True
        return came and not self._over.wait(moment.delay) and self._run.is_running

    def _wait(self, condition: Callable[[], bool]) -> bool:
        while not condition():
            if self._over.wait(PAUSE) or not self._run.is_running:
                return False
        return True

    def _heal_after(self, name: str, after: Any) -> None:
        if after is not None and not self._over.wait(after):
            self._testbed.vms[name].heal()
            self._record(f"{name} is healed")

    def do_kill_controller(self, how: str) -> None:
        self._run.kill(how)

    def do_second_run(self) -> None:
        self.second_run = self._testbed.run("second-run")

    def do_kill_host(self, name: str, back: Any) -> None:
        self._testbed.vms[name].crash()
        if back == AFTER_THE_NEXT_RUN:
            self.vm_kept_down = name
        else:
            self._heal_after(name, back)

    def do_kill_sshd(self, name: str, back: Any) -> None:
        self._testbed.vms[name].kill_sshd(keep_stopped=back != 0)
        if back != 0:
            self._heal_after(name, back)

    def do_cut(self, name: str, back: Any) -> None:
        self._testbed.vms[name].link.cut()
        self._heal_after(name, back)

    def do_cut_ssh(self, name: str, back: Any) -> None:
        self._testbed.vms[name].link.cut_ssh()
        self._heal_after(name, back)

    def do_imds(self, vm: str, kind: str, options: dict[str, Any]) -> None:
        self._testbed.simulator.post("/faults", {"kind": kind, **({} if vm == "all" else {"vm": vm}), **options})

    def do_stale_imds(self, vm: str, requests: str) -> None:
        body = json.dumps({"DocumentIncarnation": 1, "Events": []})
        for number in requests.split(","):
            wanted = {"method": "GET", "route": "scheduledevents", "requests": number}
            self.do_imds(vm, "body", {**wanted, "body": body})

    def do_announce(self, *event: Any) -> None:
        self._testbed.announce(Event(*event))

    def do_change_event(self, way: str) -> None:
        for event in self._testbed.active_events()[:1]:
            others = [name for name in self._testbed.vms if name not in event["resources"]]
            verb, body = {
                "grow": ("change", {"resources": [*event["resources"], *others[:1]]}),
                "extend": ("change", {"notice": 15}),
                "cancel": ("cancel", {}),
                "start": ("approve", {}),
            }[way]
            try:
                self._testbed.simulator.post(f"/events/{event['id']}/{verb}", body)
            except ControlError as error:
                self._record(f"event {event['id'][:8]}: {way} refused, {error.status}")


class UnapprovedEventStarter:
    """Starts events that are not approved as soon as a run can only wait for NotBefore, until it is stopped.

    The duration of a seed therefore does not depend on the notice of its events.
    """

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
        while not self._over.wait(STARTER_PAUSE):
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
