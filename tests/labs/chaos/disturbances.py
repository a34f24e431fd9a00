# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Performs the disturbances of a plan during the disturbed run, and records them with their times."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from chaos.controller import Controller
from chaos.evidence import PerformedAction, unix_time
from chaos.plan import Disturbance, Event, Moment
from chaos.testbed import Testbed
from support.simulator_process import ControlError

AFTER_THE_NEXT_RUN = "after the next run"
PAUSE = 0.05


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
        self.performed: list[PerformedAction] = []
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
            getattr(self, "do_" + disturbance.verb.replace("-", "_"))(*disturbance.arguments)
            self.done.append(disturbance.verb)
        except Exception:  # the report shows every error
            self.errors.append(traceback.format_exc())

    def _record(self, text: str) -> None:
        self.performed.append(PerformedAction(time.time(), text))

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

    # the controller

    def do_kill_controller(self, how: str) -> None:
        self._record(f"controller: {how}")
        self._run.kill(how)

    def do_second_run(self) -> None:
        self._record("a second run begins")
        self.second_run = self._testbed.run("second-run")

    # VMs

    def do_kill_host(self, name: str, back: Any) -> None:
        self._record(f"{name} dies")
        self._testbed.vms[name].crash()
        if back == AFTER_THE_NEXT_RUN:
            self.vm_kept_down = name
        else:
            self._heal_after(name, back)

    def do_kill_sshd(self, name: str, back: Any) -> None:
        self._record(f"sshd of {name} is killed")
        self._testbed.vms[name].kill_sshd(keep_stopped=back != 0)
        if back != 0:
            self._heal_after(name, back)

    def do_cut(self, name: str, back: Any) -> None:
        self._record(f"all packets of {name} vanish")
        self._testbed.vms[name].link.cut()
        self._heal_after(name, back)

    def do_cut_ssh(self, name: str, back: Any) -> None:
        self._record(f"packets of ssh of {name} vanish")
        self._testbed.vms[name].link.cut_ssh()
        self._heal_after(name, back)

    # Azure

    def do_imds(self, vm: str, kind: str, seconds: float, options: str) -> None:
        self._record(f"IMDS of {vm}: {kind} for {seconds:.0f} s")
        self._testbed.simulator.post(
            "/faults", {"kind": kind, "for": seconds, **self._vm_filter(vm), **json.loads(options)}
        )

    def do_stale_imds(self, vm: str, requests: str) -> None:
        self._record(f"IMDS of {vm}: old documents, requests {requests}")
        body = json.dumps({"DocumentIncarnation": 1, "Events": []})
        for number in requests.split(","):
            fault = {"kind": "body", "method": "GET", "route": "scheduledevents", "requests": number, "body": body}
            self._testbed.simulator.post("/faults", {**fault, **self._vm_filter(vm)})

    def _vm_filter(self, vm: str) -> dict[str, str]:
        return {} if vm == "all" else {"vm": vm}

    def do_announce(self, *event: Any) -> None:
        announced = Event(*event)
        self._record("announced: " + str(announced))
        self._testbed.announce(announced)

    def do_change_event(self, way: str) -> None:
        events = self._testbed.active_events()
        if not events:
            self._record("event changes: no event exists")
            return
        event = events[0]
        others = [name for name in self._testbed.vms if name not in event["resources"]]
        verb, body = {
            "grow": ("change", {"resources": [*event["resources"], *others[:1]]}),
            "extend": ("change", {"notice": 15}),
            "cancel": ("cancel", {}),
            "start": ("approve", {}),
        }[way]
        try:
            self._testbed.simulator.post(f"/events/{event['id']}/{verb}", body)
            self._record(f"event {event['id'][:8]}: {way}")
        except ControlError as error:
            self._record(f"event {event['id'][:8]}: {way} refused, {error.status}")
