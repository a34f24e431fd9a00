# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The world of one scenario in virtual time: VMs with two backends each, IMDS, and the approvals that arrive."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from email.utils import format_datetime
from functools import partial
from typing import Any

from azure_scheduled_events.transport import Request, Response
from fleet_simulation.agenda import Agenda
from fleet_simulation.azure_model import date_at
from fleet_simulation.frontends.backend import Backend, Document, View
from fleet_simulation.frontends.evidence import Finding, Grounds, Preparations, Reads, objections
from fleet_simulation.frontends.scenario import CHANGES, Announcement, Change, Scenario

# share of the answers that come from the second backend, and of those that are errors
SECOND_BACKEND, FAILURES = 0.4, 0.02


class World:
    """The VMs of a scenario.

    Attributes:
        grounds: returns what an approval of an event, by key, rests on that a VM sends; the frontend sets it.
        findings: what was wrong with approvals so far.
        approvals: how many arrived.
    """

    grounds: Callable[[str, str], Grounds]

    def __init__(self, scenario: Scenario) -> None:
        self.chance = random.Random(scenario.seed)
        self.agenda = Agenda()
        self.vms = tuple(f"vm{number}" for number in range(1, scenario.vms + 1))
        self.event_ids = [f"E{number}" for number in range(len(scenario.events))]
        self.reads = Reads()
        self.preparations = Preparations()
        self.findings: list[Finding] = []
        self.approvals = 0
        self._backends = {vm: (Backend(self.chance), Backend(self.chance)) for vm in self.vms}
        for event_id, announcement in zip(self.event_ids, scenario.events):
            self._announce(event_id, announcement)
        for change in scenario.changes:
            self.agenda.at(change.at, partial(self._change, change))

    @property
    def now(self) -> float:
        return self.agenda.now

    def pass_time(self, seconds: float) -> None:
        self.agenda.run_until(self.agenda.now + seconds)

    def document(self, vm: str, from_second: bool, reporter: str) -> Document:
        """Return the document that one of a VM's backends has now; this reporter reads it."""
        document = self._backends[vm][from_second].document()
        self.reads.note(reporter, document.views)
        return document

    def approve(self, vm: str, event_id: str) -> None:
        """Take an approval that a VM sends."""
        self.approvals += 1
        key = event_id.casefold()
        self.findings += objections(key, vm, self.grounds(vm, key))

    def session(
        self, vm: str, make: Callable[..., Any], options: Any, interval: float = 1.0, reporter: str = ""
    ) -> Any:
        """Return a session with the IMDS of a VM, read by this reporter; by default that is the VM.

        ``make`` is ImdsSession of the helper that the caller imports: plugins and programs have two copies of it.
        """
        return make(options, interval, lambda: self.now, self.pass_time, self.transport(vm, reporter or vm))

    def transport(self, vm: str, reporter: str) -> Callable[..., Any]:
        """Return the TransportFactory of a client that reads the IMDS of a VM for a reporter."""
        return lambda endpoint, max_bytes, connect_timeout, clock: _Transport(partial(self._answer, vm, reporter))

    def _answer(self, vm: str, reporter: str, request: Request) -> Response:
        headers = {"Date": format_datetime(date_at(self.now), usegmt=True)}
        if "/instance" in request.path:
            return Response(200, headers, json.dumps({"compute": {"name": vm}}).encode())
        if self.chance.random() < FAILURES:
            return Response(500, headers, b"")
        if request.body is not None:
            for each in json.loads(request.body)["StartRequests"]:
                self.approve(vm, each["EventId"])
            return Response(200, headers, b"{}")
        body = self.document(vm, self.chance.random() < SECOND_BACKEND, reporter).body
        return Response(200, headers, body.encode())

    def _announce(self, event_id: str, announcement: Announcement) -> None:
        vms = frozenset(self.vms[number % len(self.vms)] for number in announcement.vms)
        view = View(vms, announcement.kind)
        for backend, lag in zip(self._all_backends(), announcement.lags):
            if lag < math.inf:
                self.agenda.at(lag, partial(backend.show, event_id, view))

    def _change(self, change: Change) -> None:
        event_id = self.event_ids[change.event % len(self.event_ids)]
        vm = self.vms[change.vm % len(self.vms)]

        def changed(view: View) -> View:
            return CHANGES[change.what](view, vm)

        for backend, lag in zip(self._all_backends(), change.lags):
            if lag < math.inf:
                self.agenda.after(lag, partial(backend.change, event_id, changed))

    def _all_backends(self) -> list[Backend]:
        return [backend for backends in self._backends.values() for backend in backends]


class _Transport:
    """The transport of the helper's client, into the world."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self.requests_sent = 0
        self._answer = answer

    def exchange(self, request: Request, total: float, rest: float) -> Response:
        self.requests_sent += 1
        return self._answer(request)

    def close(self) -> None:
        """Keep nothing."""
