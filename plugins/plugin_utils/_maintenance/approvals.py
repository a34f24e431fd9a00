# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which events the hosts of a maintenance run may approve, why not the others, and what is decided again.

Pure. A run decides in rounds. Each round reads the prepared hosts again, because an approval releases all VMs of its
event, and a host that was prepared some time ago may have restarted since, or be lost.
"""

from __future__ import annotations

import typing as t

from ...module_utils.azure_scheduled_events.release import STARTED, Obstacle, Report, obstacles, release_set
from ...module_utils.azure_scheduled_events.tracking import Sighting
from .approval_attempts import NOT_KNOWN, Decision, State, decision, no_attempts, senders, with_approvals, withheld_by
from .hosts import Event, MaintenanceHost
from .vm_hosts import hosts_by_vm, reports_by_vm, sighting_of

# the hosts of an event send its approval in turn, each time after a new reading; all other hosts wait meanwhile
MOST_ATTEMPTS = 3
RESTARTED = "restarted"
# the host does not answer, or prepares again: another round may find these obstacles gone
_MAY_PASS = (NOT_KNOWN, RESTARTED)


def decide_approvals(
    hosts: t.Sequence[MaintenanceHost],
    before: State | None,
    now: float,
    patience: float,
    of_caller: t.Mapping[str, t.Sequence[Event]] | None = None,
) -> State:
    """Return the state after the reads of a round, with one decision for each event for which a host is prepared.

    An event is approved if each VM that a host or the caller lists in its Resources is one host that is prepared for
    it, and that has answered in this round. The hosts that read the events themselves send it, in the order of the
    names of their VMs. In addition to the members of `no_attempts` the state has

    - ``open``: for each event about which the next round decides, the hosts that can send its approval;
    - ``prepare_again``: the hosts that have restarted, and prepare again before the next round; ``restarted`` has those
      of all rounds, because each host does so once;
    - ``released``: for each event, the VMs that a report of any round names;
    - ``lost``: the hosts that did not answer when their event was decided last; ``lost_since``;
    - ``round``: the number of decisions.

    Args:
        hosts: all hosts of the play, or of its batch.
        before: the last state, or None in the first round.
        now: Unix time.
        patience: seconds for which events wait for hosts that are lost.
        of_caller: the events as the caller of the run lists them, as `listings_of` returns them.
    """
    known = before or dict(no_attempts(), open=None, restarted=[], released={}, lost=[], lost_since=None, round=0)
    owners = hosts_by_vm({host.name: host.approval_vm for host in hosts})
    further = of_caller or {}
    decisions = [
        _decision(event, hosts, owners, known, sighting_of(further.get(event["key"], ())))
        for event in _events_to_approve(hosts)
        if known["open"] is None or event["key"] in known["open"]
    ]
    keys = {each["key"] for each in decisions}
    involved = {name for each in decisions for name in each["senders"]}
    waiting = {each["key"]: each["senders"] for each in decisions if each["waits"]}
    lost = [host.name for host in hosts if host.is_lost and _has(waiting, host)]
    lost_since = None if not lost else now if known["lost_since"] is None else known["lost_since"]
    if lost_since is not None and now - lost_since >= patience:
        waiting = {key: names for key, names in waiting.items() if not set(lost).intersection(names)}
    restarted = known["restarted"]
    prepare_again = [
        host.name for host in hosts if host.has_restarted and host.name not in restarted and _has(waiting, host)
    ]
    return dict(
        known,
        round=known["round"] + 1,
        decisions=decisions,
        withheld=withheld_by(known["withheld"], decisions),
        refusals={key: refusal for key, refusal in known["refusals"].items() if key not in keys},
        open=waiting,
        prepare_again=prepare_again,
        restarted=[*restarted, *prepare_again],
        released={**known["released"], **{each["key"]: each["resources"] for each in decisions}},
        lost=[name for name in known["lost"] if name not in involved] + lost,
        lost_since=lost_since,
    )


def after_approvals(before: State, hosts: t.Sequence[MaintenanceHost], now: float) -> State:
    """Return the state after the approvals of a round; one that did not succeed is decided again after a reading."""
    state = with_approvals(before, hosts, now)
    again = {
        each["key"]: each["senders"]
        for each in before["decisions"]
        if state["refusals"].get(each["key"], {}).get("code") not in (None, STARTED.code)
        and state["attempts"][each["key"]] < MOST_ATTEMPTS
    }
    return dict(state, open={**before["open"], **again})


def _has(events: t.Mapping[str, t.Sequence[str]], host: MaintenanceHost) -> bool:
    return any(host.name in names for names in events.values())


def _events_to_approve(hosts: t.Sequence[MaintenanceHost]) -> list[Event]:
    events: dict[str, Event] = {}
    for host in hosts:
        for event in host.events_to_approve():
            events.setdefault(event["key"], event)
    return list(events.values())


def _decision(
    event: Event,
    hosts: t.Sequence[MaintenanceHost],
    owners: t.Mapping[str, t.Sequence[str]],
    state: State,
    of_caller: Sighting | None,
) -> Decision:
    by_name = {host.name: host for host in hosts}
    report_of = {host.name: _report(host, event["key"], state) for host in hosts}
    reports, hosts_of = reports_by_vm(owners, report_of, of_caller)
    nameless = [host.name for host in hosts if not host.approval_vm]
    known_by = " by its maintenance_arm_resource_id" if any(host.arm_vm for host in hosts) else ""
    hint = known_by + (f" (not known: {', '.join(nameless)})" if nameless else "")
    found = obstacles(reports, f"no host of this play, or of its batch, is known to be this VM{hint}")
    # all hosts have the same plan, except those that were lost before it was made
    waits_because = next((host.waits_because(event["key"]) for host in hosts if host.has_plan), "")
    if waits_because:
        found = [Obstacle("waiting", f"it waits for a later run: {waits_because}")]
    names = senders(reports, hosts_of)
    readers = [name for name in names if by_name[name].reads_events]
    if names and not readers and not by_name[names[0]].approves_by_arm:
        found.append(Obstacle("no_reader", "no host of the event reads IMDS; set maintenance_approve_by to arm"))
    resources = release_set(reports.values()).values()
    # the type may have changed since the first read; without an obstacle all hosts list the same one
    event_type = next(report.sighting.event.event_type for report in reports.values() if report.sighting is not None)
    waits = bool(found) and all(obstacle.code in _MAY_PASS for obstacle in found)
    now = dict(event, event_type=event_type)
    return dict(decision(state, now, resources, readers or names, found), waits=waits)


def _report(host: MaintenanceHost, key: str, state: State) -> Report:
    """Return what the host says about the event of this key; each VM that an earlier round has named counts."""
    sighting = sighting_of(host.listings(key), state["released"].get(key, ()))
    obstacle = _not_prepared(host, state["restarted"])
    if sighting is None:
        return Report(None, False, obstacle)
    event_type = sighting.event.event_type
    if obstacle is None and host.prepared_at(event_type) is None:
        done = ", ".join(host.prepared_types) or "another type"
        obstacle = Obstacle("not_prepared", f"its preparation for {done} does not count for {event_type}")
    return Report(sighting, any(event["key"] == key for event in host.events_to_approve()), obstacle)


def _not_prepared(host: MaintenanceHost, restarted: t.Collection[str]) -> Obstacle | None:
    """Return why the host is not prepared now, or None if it is; ``restarted`` are those that have prepared again."""
    if not host.is_prepared:
        return Obstacle("not_prepared", host.not_prepared_because() or "the host is not prepared")
    if host.is_lost:
        return Obstacle(NOT_KNOWN, f"it could not be read since it has prepared: {host.lost_because}")
    if host.has_restarted and host.name in restarted:
        return Obstacle("not_prepared", "it has restarted again since it has prepared")
    if host.has_restarted:
        return Obstacle(RESTARTED, "it has restarted since it has prepared, and prepares again")
    return None
