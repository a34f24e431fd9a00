# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Does what a plan says to the disturbed run, each at its moment, and notes what was done when."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from chaos.controller import Controller
from chaos.evidence import Deed, unix
from chaos.plan import Disturbance, Event, Moment
from chaos.site import Site
from support.simulator_process import ControlError

AFTER_THE_NEXT_RUN = "after the next run"
PAUSE = 0.05


class Disturbances:
    """The verbs of a plan; each thing that is wanted is done at its moment while the run lives.

    Attributes:
        deeds: what was done so far.
        stays_down: the VM that is down until the next run is over.
        second_run: the other controller, if there was one.
        errors: what went wrong in here.
    """

    def __init__(self, site: Site, run: Controller, wanted: Sequence[Disturbance]) -> None:
        self._site, self._run = site, run
        self.deeds: list[Deed] = []
        self.stays_down: str | None = None
        self.second_run: Controller | None = None
        self.errors: list[str] = []
        self.done: list[str] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._go, args=(each,), daemon=True) for each in wanted]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """The disturbed run is over: nothing more is done."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _go(self, disturbance: Disturbance) -> None:
        try:
            if not self._wait_for(disturbance.moment):
                self._note(f"{disturbance.verb}: the moment did not come")
                return
            getattr(self, "do_" + disturbance.verb.replace("-", "_"))(*disturbance.arguments)
            self.done.append(disturbance.verb)
        except Exception:  # whatever it is, the report has to have it
            self.errors.append(traceback.format_exc())

    def _note(self, text: str) -> None:
        self.deeds.append(Deed(time.time(), text))

    def _wait_for(self, moment: Moment) -> bool:
        """Whether it came while the run was under way."""
        if moment.what == "mark":
            step, word = moment.name.split()[::-1]
            came = self._wait(
                lambda: any(mark[2:] == (step, word, self._run.name) for mark in self._site.vms[moment.vm].marks())
            )
        elif moment.what == "azure":
            came = self._wait(
                lambda: any(
                    line["what"] == moment.name and unix(line["time"]) > self._run.began
                    for line in self._site.azure_log()
                )
            )
        else:
            came = True
        return came and not self._over.wait(moment.delay) and self._run.is_running

    def _wait(self, is_so: Callable[[], bool]) -> bool:
        while not is_so():
            if self._over.wait(PAUSE) or not self._run.is_running:
                return False
        return True

    def _then_heal(self, name: str, after: Any) -> None:
        if after is not None and not self._over.wait(after):
            self._site.vms[name].heal()
            self._note(f"{name} is well again")

    # the controller

    def do_kill_controller(self, how: str) -> None:
        self._note(f"controller: {how}")
        self._run.kill(how)

    def do_second_run(self) -> None:
        self._note("a second run begins")
        self.second_run = self._site.run("second-run")

    # VMs

    def do_kill_host(self, name: str, back: Any) -> None:
        self._note(f"{name} dies")
        self._site.vms[name].die()
        if back == AFTER_THE_NEXT_RUN:
            self.stays_down = name
        else:
            self._then_heal(name, back)

    def do_kill_sshd(self, name: str, back: Any) -> None:
        self._note(f"sshd of {name} is killed")
        self._site.vms[name].kill_sshd(stay_away=back != 0)
        if back != 0:
            self._then_heal(name, back)

    def do_cut(self, name: str, back: Any) -> None:
        self._note(f"all packets of {name} vanish")
        self._site.vms[name].wire.cut()
        self._then_heal(name, back)

    def do_cut_ssh(self, name: str, back: Any) -> None:
        self._note(f"packets of ssh of {name} vanish")
        self._site.vms[name].wire.cut_ssh()
        self._then_heal(name, back)

    # Azure

    def do_imds(self, vm: str, kind: str, seconds: float, options: str) -> None:
        self._note(f"IMDS of {vm}: {kind} for {seconds:.0f} s")
        self._site.simulator.post("/faults", {"kind": kind, "for": seconds, **self._whose(vm), **json.loads(options)})

    def do_stale_imds(self, vm: str, requests: str) -> None:
        self._note(f"IMDS of {vm}: old documents, requests {requests}")
        body = json.dumps({"DocumentIncarnation": 1, "Events": []})
        for place in requests.split(","):
            fault = {"kind": "body", "method": "GET", "route": "scheduledevents", "requests": place, "body": body}
            self._site.simulator.post("/faults", {**fault, **self._whose(vm)})

    def _whose(self, vm: str) -> dict[str, str]:
        return {} if vm == "all" else {"vm": vm}

    def do_announce(self, *event: Any) -> None:
        announced = Event(*event)
        self._note("announced: " + str(announced))
        self._site.announce(announced)

    def do_change_event(self, way: str) -> None:
        events = self._site.living()
        if not events:
            self._note("event changes: there is none")
            return
        event = events[0]
        others = [name for name in self._site.vms if name not in event["resources"]]
        verb, body = {
            "grow": ("change", {"resources": [*event["resources"], *others[:1]]}),
            "extend": ("change", {"notice": 15}),
            "cancel": ("cancel", {}),
            "start": ("approve", {}),
        }[way]
        try:
            self._site.simulator.post(f"/events/{event['id']}/{verb}", body)
            self._note(f"event {event['id'][:8]}: {way}")
        except ControlError as error:
            self._note(f"event {event['id'][:8]}: {way} refused, {error.status}")
