# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role `maintenance` with `maintenance_leader: external` for one group, in virtual time.

The decisions, the state of the run, the parser of `status --json` and the plan of an approval are the
real ones. The work of Ansible between them is simulated: reads that wait, get lost, and end a round.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._hook_runner_status import (
    has_reached,
    parse_status,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.approval_attempts import (
    with_approvals,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.coordination import (
    Limits,
    first_state,
    next_state,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import hosts_of

from azure_scheduled_events.approval_plan import APPROVE, APPROVED, ApprovalCriteria, plan_approvals
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.receipts import Receipts
from azure_scheduled_events.selection import Selection
from azure_scheduled_events.tracking import Tracker
from fleet_simulation.agenda import Agenda
from fleet_simulation.azure_model import Event, Group
from fleet_simulation.host import Host

COORDINATOR = "the coordinator"
LIMITS = Limits(patience=900.0, within=1800.0)
# seconds between two looks for events, and between two reads of a host that waits
INTERVAL, READ_INTERVAL = 10.0, 10.0
# most seconds between the reads and the decision, and between the decision and the approval
DELAY = 2.0

Variables = dict[str, Any]


class Decision(NamedTuple):
    """An approval as the run decided it.

    Attributes:
        evidence: for each VM that reported that it has prepared: why that is wrong, or "".
        read_at: when the VMs were read last.
    """

    event_id: str
    resources: tuple[str, ...]
    evidence: Mapping[str, str]
    read_at: float


class Coordinator:
    """Runs the role for one group whenever Azure lists an event of several of its VMs.

    ``loss`` is the share of the reads and requests that are lost; ``approve`` takes a decision.
    """

    def __init__(
        self,
        group: Group,
        hosts: Mapping[str, Host],
        agenda: Agenda,
        chance: random.Random,
        loss: float,
        approve: Callable[[Decision], None],
    ) -> None:
        self._group, self._hosts, self._agenda, self._chance, self._loss = group, hosts, agenda, chance, loss
        self._approve = approve
        self._state: Variables = {}
        self._results: dict[str, Variables] = {}
        # of the latest read of each host: why its report about an event is wrong, or ""
        self._evidence: dict[tuple[str, str], str] = {}
        self._read_at = 0.0

    def begin(self) -> None:
        """Begin a run if there is an event for it, and look again later."""
        if any(_is_for_coordinator(event) for event in self._group.events):
            self._state = first_state(self._group.vms, self._agenda.now)
            self._begin_round()
        else:
            self._agenda.after(INTERVAL * self._chance.uniform(0.5, 1.5), self.begin)

    def _begin_round(self) -> None:
        self._results = {}
        self._agenda.after(self._state["pause"], self._read)

    def _read(self) -> None:
        """Read the hosts that have not reached their goal; decide when none is left."""
        now = self._read_at = self._agenda.now
        wanted = self._state["read"]
        for name, read in wanted.items():
            if name in self._results and self._results[name].get("reached"):
                continue
            result = self.result_of(name)
            goal, keys = read["wait_for"], read["event_ids"]
            is_read = result.get("available", False)
            result["reached"] = goal == "nothing" or (is_read and has_reached(goal, keys, result, []))
            self._results[name] = result
        has_all = all(result["reached"] for result in self._results.values())
        if has_all or now >= max((read["until"] for read in wanted.values()), default=now):
            self._agenda.after(self._chance.uniform(0.05, DELAY), self._decide)
        else:
            self._agenda.after(READ_INTERVAL, self._read)

    def result_of(self, name: str) -> Variables:
        """Return the result of module hook_runner_info; nothing of a host that cannot be reached."""
        host = self._hosts[name]
        for index in [index for index in self._evidence if index[0] == name]:
            del self._evidence[index]
        if not host.is_up or self._chance.random() < self._loss:
            return {}
        if host.daemon is None:
            return {"available": False, "state": "not_running", "reason": "the daemon does not run", "events": []}
        status = parse_status(0, json.dumps(host.daemon.status()), "")
        for event in status["events"]:
            if event["prepared_state"] == "ok":
                self._evidence[name, event["key"]] = host.ledger.reports_prepared(event["key"])
        return dict(status, available=True, state="running", history=[])

    def _decide(self) -> None:
        now = self._agenda.now
        self._state = next_state(self._state, self._results, now, LIMITS)
        if self._state["decisions"]:
            self._agenda.after(self._chance.uniform(0.05, DELAY), self._approve_all)
        else:
            self._end_round()

    def _approve_all(self) -> None:
        results: dict[str, list[Variables]] = {}
        for decision in self._state["decisions"]:
            result = {"item": {"event_id": decision["event_id"]}, **self.approved(decision)}
            results.setdefault(decision["by"], []).append(result)
        variables = {name: {"maintenance__approvals": {"results": results.get(name, [])}} for name in self._group.vms}
        self._state = with_approvals(self._state, hosts_of(self._group.vms, variables), self._agenda.now)
        self._end_round()

    def approved(self, decision: Mapping[str, Any]) -> Variables:
        """Return the result of module event_approve on the host that approves."""
        host = self._hosts[decision["by"]]
        if not host.is_up or self._agenda.now < host.outage_until or self._chance.random() < self._loss / 2:
            return {"failed": True, "msg": "no answer"}
        document = self._group.document(self._agenda.now, self._chance.random() < 0.5)
        rules = [{"name": "all", "when": {"resources": {"all": decision["resources"]}}, "approve": "now"}]
        criteria = ApprovalCriteria.parse(
            Selection(event_ids=(decision["event_id"],)), Policy.from_mapping({"rules": rules}), "none", {}, True
        )
        criteria = criteria._replace(own_name=host.name)
        (outcome,) = plan_approvals(Tracker().observe(document), criteria, Receipts("/nonexistent", ""))
        if outcome.outcome == APPROVE:
            evidence = {vm: text for (vm, key), text in self._evidence.items() if key == decision["key"]}
            self._approve(Decision(decision["event_id"], tuple(decision["resources"]), evidence, self._read_at))
            if self._chance.random() < self._loss / 2:
                return {"failed": True, "msg": "the answer was lost"}
        name = APPROVED if outcome.outcome == APPROVE else outcome.outcome
        return {"approvals": [{"outcome": name, "reason": outcome.reason}]}

    def _end_round(self) -> None:
        if self._state["over"]:
            self._agenda.after(INTERVAL * self._chance.uniform(0.5, 1.5), self.begin)
        else:
            self._begin_round()


def _is_for_coordinator(event: Event) -> bool:
    return event.is_listed and len(event.vms) > 1
