# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Sizes and chances of one simulated fleet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Plan:
    """One run; the same plan gives the same run.

    Attributes:
        group_sizes: VMs of a group, drawn for each group.
        events_per_vm_hour: how often an event affects a VM.
        faults: faults of hosts for each event: kills, reboots, outages of IMDS.
        failing_hooks: share of the hook runs that fail; half of them hang until their time limit.
        lost_requests: share of the approvals of which the request or the answer is lost.
        by_user: share of the events that another client approves.
        changes: share of the events that are cancelled, moved, changed, or missing for a moment.
        changes_at_approval: share of the decisions of a daemon to approve, after which the event changes at once.
        longest_lag: seconds by which the second backend is late at most.
    """

    seed: int
    vms: int = 40
    events: int = 200
    events_per_vm_hour: float = 4.0
    group_sizes: tuple[int, ...] = (1, 1, 2, 2, 3, 3, 5, 5, 8, 20)
    faults: float = 0.4
    failing_hooks: float = 0.05
    lost_requests: float = 0.1
    by_user: float = 0.02
    changes: float = 0.2
    changes_at_approval: float = 0.05
    longest_lag: float = 8.0


def without_faults(seed: int, vms: int = 40, events: int = 200) -> Plan:
    """Return a plan in which nothing fails and both backends agree."""
    return Plan(
        seed,
        vms,
        events,
        faults=0,
        failing_hooks=0,
        lost_requests=0,
        by_user=0,
        changes=0,
        changes_at_approval=0,
        longest_lag=0.0,
    )
