# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What a frontend was shown, which VMs have really prepared, and whether an approval was permitted by that.

Nothing here comes from a frontend, except the release set that it claims.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from azure_scheduled_events.document import EVENT_SOURCES, EVENT_STATUSES
from azure_scheduled_events.event_types import EVENT_TYPES
from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.urgency import counts_for
from fleet_simulation.frontends.backend import View

UNPREPARED = "an approval releases a VM that is not prepared"
INCOMPLETE = "a release set lacks a VM"
UNKNOWN_VALUE = "an approval of an unknown value"

Views = Mapping[str, View]


class Word(NamedTuple):
    """What a rule or a person has said.

    Attributes:
        own: it speaks for the VM that approves.
        others: it speaks for the other VMs.
        unknown: it speaks for unknown values.
        kinds: the types of the event, if it ends when the event gets another one.
        vms: the VMs of the event, if it ends when another one joins.
    """

    own: bool = False
    others: bool = False
    unknown: bool = False
    kinds: frozenset[str] | None = None
    vms: frozenset[str] | None = None


class Grounds(NamedTuple):
    """What an approval rests on.

    Attributes:
        reports: the last two documents of each reporter.
        is_prepared: takes VM and type; returns whether the VM was really prepared when that was asked last.
        words: of rules and persons.
        released: the VMs that the frontend releases by its own account, in any spelling.
        always: reporters that are not VMs.
    """

    reports: Mapping[str, tuple[Views, ...]]
    is_prepared: Callable[[str, str], bool]
    words: tuple[Word, ...] = ()
    released: Iterable[str] | None = None
    always: tuple[str, ...] = ()


class Finding(NamedTuple):
    """A broken rule, and a sentence."""

    rule: str
    text: str


def objections(key: str, sender: str, grounds: Grounds) -> list[Finding]:
    """Return what is wrong with an approval that this VM sends.

    Of a VM that none of its own documents names, the documents do not count: no frontend asks it for the event.

    1. Each VM that one of the last two documents of a reporter names is prepared for the type of the event in the last
       documents of this VM, of the sender and of reporters that are not VMs, or a word speaks for it.
    2. Each of these VMs is in the release set.
    3. No last document has an unknown value, or a word speaks for that.
    """
    reports = {
        reporter: views
        for reporter, views in grounds.reports.items()
        if reporter in {sender, *grounds.always} or reporter in _vms_of(key, [views])
    }
    named = _vms_of(key, reports.values())
    kinds = {reporter: views[-1][key].kind for reporter, views in reports.items() if views and key in views[-1]}
    words = [word for word in grounds.words if _is_in_force(word, set(kinds.values()), named)]
    found = []
    for vm in sorted(named):
        if any(word.own if vm == sender else word.others for word in words):
            continue
        for kind in sorted({kinds[each] for each in (vm, sender, *grounds.always) if each in kinds}):
            if not grounds.is_prepared(vm, kind):
                found.append(Finding(UNPREPARED, f"{sender} approves {key}, and {vm} is not prepared for a {kind}"))
    if grounds.released is not None:
        missing = named - set(map(vm_key, grounds.released))
        if missing:
            found.append(Finding(INCOMPLETE, f"{sender} approves {key} without regard of {', '.join(sorted(missing))}"))
    if not any(word.unknown for word in words):
        last = [views[-1][key] for views in reports.values() if views and key in views[-1]]
        found += [
            Finding(UNKNOWN_VALUE, f"{sender} approves {key}, which is {view}") for view in last if not _is_known(view)
        ][:1]
    return found


def _vms_of(key: str, reports: Iterable[tuple[Views, ...]]) -> frozenset[str]:
    """Return the VMs that one of the documents names for the event."""
    return frozenset(vm for views in reports for view in views if key in view for vm in view[key].vms)


def _is_in_force(word: Word, kinds: set[str], named: frozenset[str]) -> bool:
    return (word.kinds is None or kinds <= word.kinds) and (word.vms is None or named <= word.vms)


def _is_known(view: View) -> bool:
    return view.kind in EVENT_TYPES and view.source in EVENT_SOURCES and view.status in EVENT_STATUSES


class Reads:
    """The last two documents of each reporter, and each event as it was listed last, with all VMs that it ever had."""

    def __init__(self) -> None:
        self._views: dict[str, collections.deque[Views]] = {}
        self._known: dict[tuple[str, str], View] = {}

    def note(self, reporter: str, views: Views) -> None:
        self._views.setdefault(reporter, collections.deque(maxlen=2)).append(views)
        for key, view in views.items():
            known = self._known.get((reporter, key), view)
            self._known[reporter, key] = view._replace(vms=view.vms | known.vms)

    def forget(self, reporter: str) -> None:
        """Begin again: another process reads for this reporter."""
        self._views.pop(reporter, None)

    def known(self, key: str, *reporters: str) -> tuple[set[str], frozenset[str]]:
        """Return the types that an event has for these reporters, and the VMs that it ever had."""
        found = [self._known[reporter, key] for reporter in reporters if (reporter, key) in self._known]
        return {view.kind for view in found}, frozenset(vm for view in found for vm in view.vms)

    def of(self, *reporters: str) -> dict[str, tuple[Views, ...]]:
        """Return the last two documents of these reporters."""
        return {reporter: tuple(self._views.get(reporter, ())) for reporter in reporters}


class Preparations:
    """The types for which each VM has prepared since it recovered last."""

    def __init__(self) -> None:
        self._kinds: dict[str, set[str]] = {}

    def succeeded(self, vm: str, kind: str) -> None:
        self._kinds.setdefault(vm, set()).add(kind)

    def undone(self, vm: str) -> None:
        self._kinds.pop(vm, None)

    def has(self, vm: str, kind: str) -> bool:
        return any(counts_for(done, kind) for done in self._kinds.get(vm, ()))
