# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What happens to the events of some VMs, as hypothesis draws it: announcements, changes, and who sees them when."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hypothesis import strategies as st

from fleet_simulation.frontends.backend import View
from maintenance_world.azure import SCHEDULED, STARTED

MOST_VMS = 4
# virtual seconds of a run
HORIZON = 120.0
# seconds until a backend has a change; it never has some of them
_LAGS = (0.0, 0.0, 0.0, 1.0, 4.0, 15.0, math.inf)

Lags = tuple[float, ...]


class Announcement(NamedTuple):
    """An event that Azure announces; ``vms`` are numbers, ``lags`` is as in `Change`."""

    kind: str
    vms: frozenset[int]
    lags: Lags


class Change(NamedTuple):
    """A change of an event.

    Attributes:
        at: virtual second.
        event: number of the event.
        what: one of CHANGES.
        vm: number of the VM that joins or leaves.
        lags: seconds until each backend has it; numbers 2n and 2n + 1 are the backends of VM n.
    """

    at: float
    event: int
    what: str
    vm: int
    lags: Lags


class Scenario(NamedTuple):
    """One run; ``seed`` is for spellings, the backend of each answer, and what a frontend is delayed by."""

    vms: int
    events: tuple[Announcement, ...]
    changes: tuple[Change, ...]
    seed: int


CHANGES: Mapping[str, Callable[[View, str], View]] = {
    "join": lambda view, vm: view._replace(vms=view.vms | {vm}),
    "leave": lambda view, vm: view._replace(vms=view.vms - {vm} or view.vms),
    "vanish": lambda view, vm: view._replace(is_listed=False),
    "return": lambda view, vm: view._replace(is_listed=True),
    "become a Freeze": lambda view, vm: view._replace(kind="Freeze"),
    "become a Redeploy": lambda view, vm: view._replace(kind="Redeploy"),
    "become unreadable": lambda view, vm: view._replace(is_readable=False),
    "become readable": lambda view, vm: view._replace(is_readable=True),
    "get an unknown type": lambda view, vm: view._replace(kind="Hibernate"),
    "get an unknown source": lambda view, vm: view._replace(source="Autoscaler"),
    "get an unknown status": lambda view, vm: view._replace(status="Paused"),
    "be Scheduled": lambda view, vm: view._replace(status=SCHEDULED),
    "start": lambda view, vm: view._replace(status=STARTED),
}
# those that an approval must take notice of come more often
_WHAT = (*("join", "leave") * 3, *("become a Redeploy",) * 3, "vanish", "return", *CHANGES)

_each = st.lists(st.sampled_from(_LAGS), min_size=2 * MOST_VMS, max_size=2 * MOST_VMS).map(tuple)
_all_at_once = st.just((0.0,) * (2 * MOST_VMS))
_one_backend = st.integers(0, 2 * MOST_VMS - 1).map(
    lambda one: tuple(0.0 if number == one else math.inf for number in range(2 * MOST_VMS))
)
_one_vm = st.integers(0, MOST_VMS - 1).map(
    lambda vm: tuple(0.0 if number // 2 == vm else math.inf for number in range(2 * MOST_VMS))
)

SCENARIOS: st.SearchStrategy[Scenario] = st.builds(
    Scenario,
    vms=st.integers(2, MOST_VMS),
    events=st.lists(
        st.builds(
            Announcement,
            kind=st.sampled_from(("Freeze", "Freeze", "Reboot", "Redeploy")),
            vms=st.frozensets(st.integers(0, MOST_VMS - 1), min_size=1, max_size=3),
            lags=_all_at_once | _all_at_once | _all_at_once | _each,
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
    changes=st.lists(
        st.builds(
            Change,
            at=st.integers(0, int(HORIZON) - 20).map(float),
            event=st.integers(0, 1),
            what=st.sampled_from(_WHAT),
            vm=st.integers(0, MOST_VMS - 1),
            lags=_all_at_once | _each | _one_backend | _one_vm,
        ),
        max_size=5,
    ).map(tuple),
    seed=st.integers(0, 2**32),
)

# an event becomes more severe for vm2 at once, and for vm1 later, or with one of its backends only
ESCALATIONS: st.SearchStrategy[Scenario] = st.builds(
    Scenario,
    vms=st.just(2),
    events=st.just((Announcement("Freeze", frozenset((0, 1)), (0.0,) * (2 * MOST_VMS)),)),
    changes=st.sampled_from(((15.0, 15.0), (math.inf, 0.0))).map(
        lambda lags: (Change(0.0, 0, "become a Redeploy", 0, (*lags, *(0.0,) * (2 * MOST_VMS - 2))),)
    ),
    seed=st.integers(0, 2**32),
)
