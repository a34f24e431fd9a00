# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role `maintenance` that prepares and approves by module: its real reads, notes, plan, decisions and approvals.

A rulebook starts runs of it: its real event source and event filter.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from ansible_collections.azure_imds.scheduled_events.plugins.filter.maintenance_approvals import maintenance_approvals
from ansible_collections.azure_imds.scheduled_events.plugins.filter.maintenance_plan import maintenance_plan
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note import NoteFile
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._maintenance_note_states import set_note
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.imds import Imds
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.session import (
    ImdsSession,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven import imds_watch
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import (
    NO_HOST,
    EventFilter,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.source_options import (
    parse_arguments,
)

from fleet_simulation.azure_model import date_at
from fleet_simulation.frontends.backend import NOT_BEFORE
from fleet_simulation.frontends.event_modules import Connect, Variables, event_approve, read_maintenance
from fleet_simulation.frontends.evidence import Grounds, Views
from fleet_simulation.frontends.scenario import HORIZON
from fleet_simulation.frontends.world import World
from maintenance_world.azure import STARTED

# chances of a host: its preparation fails, it is lost before that ends, and it recovers at the end of a run
FAILS, IS_LOST, RECOVERS = 0.1, 0.03, 0.6
# most decisions of a run
ROUNDS = 5
SOURCE = "the event source"


class Role:
    """Runs of the role, one after the other; the hosts have the names of their VMs."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._folder = folder
        self._runs = 0

    def run(self) -> None:
        """Maintain all VMs again and again."""
        while self._world.now < HORIZON:
            self.maintain(self._world.vms)
            self._world.pass_time(self._world.chance.uniform(1.0, 20.0))

    def maintain(self, hosts: Sequence[str], announced: Sequence[Variables] = (), *sources: str) -> None:
        """Run the entry point prepare_and_approve for these hosts; some of them recover afterwards.

        ``sources`` are reporters that have started the run, and ``announced`` are their changes.
        """
        world = self._world
        self._runs += 1
        for name in hosts:
            world.reads.forget(name)
        check = {"prepare": {"tasks": "drain.yml", "role": ""}, "approve_by": "module", "at": time.time()}
        variables: dict[str, Variables] = {
            name: {"maintenance__check": check, "maintenance__info": self._read(name)} for name in hosts
        }
        plan = maintenance_plan(hosts, variables, {})
        for name in hosts:
            variables[name]["maintenance__plan"] = plan
            self._begin(name, variables[name])
        world.pass_time(world.chance.uniform(0.0, 15.0))
        for name in hosts:
            self._prepare(name, variables[name])
        self._decide(variables, announced, sources)
        for name in hosts:
            if world.chance.random() < RECOVERS:
                world.preparations.undone(name)
                self._note(name).remove(self._run_id)

    def _read(self, name: str) -> Variables:
        """Return the result of the module that reads the events and the note."""
        self._world.pass_time(self._world.chance.uniform(0.0, 0.5))
        return read_maintenance(self._connect(name), notes=str(self._folder / f"notes-{name}"), within=NOT_BEFORE)

    def _begin(self, name: str, variables: Variables) -> None:
        """Write the note, as prepare.yml does."""
        info = variables["maintenance__info"]
        events = self._events(name, variables)
        if not info["available"] or not (events or info["note"]):
            return
        # the earlier runs have ended
        options = {"state": "present", "run": {"id": self._run_id}, "events": events, "expires": 0.0}
        variables["maintenance__note"] = set_note(
            self._note(name), {**options, "replaces": None, "take_over": True}, check_mode=False
        )

    def _prepare(self, name: str, variables: Variables) -> None:
        """Prepare a host, or fail, or lose it."""
        own = variables["maintenance__plan"]["hosts"][name]
        chance = self._world.chance.random()
        if "note" not in variables.get("maintenance__note", {}) or not own["prepares_for"] or chance < IS_LOST:
            return
        if chance < IS_LOST + FAILS:
            variables["maintenance__prepared"] = {"why_not": "no luck"}
            return
        at, boot = date_at(self._world.now).isoformat(), variables["maintenance__info"]["boot"]
        variables["maintenance__prepared"] = {"at": at, "boot": boot, "types": own["types"]}
        for event in self._events(name, variables):
            if event["status"] != STARTED:
                self._world.preparations.succeeded(name, event["event_type"])

    def _decide(
        self, variables: Mapping[str, Variables], announced: Sequence[Variables], sources: tuple[str, ...]
    ) -> None:
        """Read the prepared hosts, decide, and approve, in rounds, as approve_round.yml does."""
        world, hosts = self._world, list(variables)
        decided: Variables = {}
        for _round in range(ROUNDS):
            awaited = {name for names in (decided.get("open") or {}).values() for name in names}
            for name, own in variables.items():
                is_read = "at" in own.get("maintenance__prepared", {}) and (not decided or name in awaited)
                own["maintenance__seen"] = self._read(name) if is_read else {"skipped": True}
            decided = maintenance_approvals(hosts, variables, "read", world.now, decided, announced=announced)
            reports = world.reads.of(*hosts, *sources)
            results: dict[str, list[Variables]] = {}
            for decision in decided["decisions"]:
                if decision["approve"]:
                    results.setdefault(decision["by"], []).append(self._approve(decision, reports, sources))
            for name, own in variables.items():
                own["maintenance__approvals"] = {"results": results.get(name, [])}
            if results:
                decided = maintenance_approvals(hosts, variables, "approve", world.now, decided)
            if not decided["open"]:
                return
            world.pass_time(5.0)

    def _approve(
        self, decision: Mapping[str, Any], reports: Mapping[str, tuple[Views, ...]], sources: tuple[str, ...]
    ) -> Variables:
        """Approve by module; ``reports`` is what the decision rests on, and the module reads the events again.

        What the module reads is a report on the event that it approves, and on no other one: its result has no other.
        """
        world, by = self._world, decision["by"]
        module = f"event_approve of {by}"
        world.reads.forget(module)
        world.grounds = lambda vm, key: Grounds(
            {**reports, by: (*reports[by], *world.reads.of(module)[module])[-2:]},
            world.preparations.has,
            (),
            decision["resources"],
            sources,
        )
        connect = partial(world.session, by, ImdsSession, reporter=module)
        return event_approve(decision, connect, str(self._folder / f"receipts-{by}"))

    @staticmethod
    def _events(name: str, variables: Variables) -> list[dict[str, Any]]:
        keys = variables["maintenance__plan"]["hosts"][name]["events"]
        return [event for event in variables["maintenance__info"]["events"] if event["key"] in keys]

    @property
    def _run_id(self) -> str:
        return f"run-{self._runs}"

    def _note(self, name: str) -> NoteFile:
        return NoteFile(str(self._folder / f"notes-{name}"))

    def _connect(self, name: str) -> Connect:
        return partial(self._world.session, name, ImdsSession)


class Rulebook:
    """The event source runs on the first VM."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._role = Role(world, folder)
        self._filter = EventFilter()
        client = partial(Imds, transport=world.transport(world.vms[0], SOURCE))
        with mock.patch.object(imds_watch, "Imds", client):
            self._watch = imds_watch.ImdsWatch(
                parse_arguments({}), lambda: world.now, lambda: date_at(world.now), world.pass_time
            )

    def run(self) -> None:
        """Poll, and run the role for each report that is news."""
        while self._world.now < HORIZON:
            changes, pause = self._watch.poll()
            for change in changes:
                # names in Resources may be in other letter cases than those of hosts
                options = {"host_table": {vm: vm for vm in self._world.vms}}
                event = self._filter.apply({"scheduled_event": change}, options)
                assert isinstance(event, dict)
                if _starts_a_run(event["scheduled_event"]):
                    self._role.maintain(event["scheduled_event"]["hosts"], [event["scheduled_event"]], SOURCE)
            self._world.pass_time(pause)


def _starts_a_run(report: Mapping[str, Any]) -> bool:
    """Return True if the condition of the rule that maintains hosts holds."""
    is_about_hosts = report["limit"] != NO_HOST and report["nature"] != "advises"
    return report["is_news"] is True and report["change"] != "gone" and is_about_hosts
