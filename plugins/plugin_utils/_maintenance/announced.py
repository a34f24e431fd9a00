# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the events that the caller of the role maintenance has.

They replace those of hosts whose own view cannot be read, in the shape that module maintenance_info returns. For the
other hosts they are one more report. A rulebook passes changes, as the event source and the event filter of this
collection have them; other callers may pass the events alone.
"""

from __future__ import annotations

import typing as t
from datetime import datetime

from ...module_utils._maintenance_note import Note
from ...module_utils.azure_scheduled_events.document import ScheduledEvent
from ...module_utils.azure_scheduled_events.event_types import is_chosen
from ...module_utils.azure_scheduled_events.identity import is_same_vm, vm_key
from ...module_utils.azure_scheduled_events.outcome import COMPLETED, UNKNOWN, outcome_of, reported_outcome
from ...module_utils.azure_scheduled_events.printable import printable
from ...module_utils.azure_scheduled_events.timestamps import parse_not_before
from .preparation import Preparation

ANNOUNCED = "maintenance_announced"
ENDED = "maintenance_ended"

_GONE = "gone"
_STARTED = "Started"

Event = t.Dict[str, t.Any]


class Announced(t.NamedTuple):
    """One event as the caller last saw it.

    Attributes:
        event: in the form of ``event_info``, with ``key``.
        is_over: whether the event has ended.
        outcome: of the event, if it has ended.
        hosts: the inventory hosts of its VMs, as the caller has mapped them.
        mapping: the same by name of the VM; empty if it is not clear which host is which VM.
        other_events: those that the reporter of a change listed beside this one, in the same form.
    """

    event: Event
    is_over: bool
    outcome: str
    hosts: t.Sequence[str]
    mapping: t.Mapping[str, str]
    other_events: t.Sequence[Event]

    @property
    def progress(self) -> int:
        """The order of the states of an event; a late delivery has a lower one."""
        return 2 if self.is_over else int(self.event["status"] == _STARTED)

    def vm_of(self, host: str, vm_name: str | None) -> str | None:
        """Return the VM in Resources that is the host, whose name is that in the inventory, or None.

        ``vm_name`` is the name of its VM as the caller gives it, or None for the caller's mapping, or else for a VM
        with the name of the host, with or without a domain.
        """
        mapped = next((vm for vm, name in self.mapping.items() if name == host), None)
        names = [vm_name] if vm_name else [mapped or host, host.partition(".")[0]]
        resources: list[str] = self.event["resources"]
        return next((vm for name in names for vm in resources if is_same_vm(vm, name)), None)


def read_announced(entries: t.Any) -> list[Announced]:
    """Return each announced event once, in the state that is furthest.

    Raises:
        ValueError: an entry is neither a change nor an event.
    """
    if _list(entries) is None:
        raise ValueError(f"{ANNOUNCED}: not a list; pass a list of changes or of events")
    found: dict[str, Announced] = {}
    for number, entry in enumerate(entries):
        read = _announced(entry, f"{ANNOUNCED}[{number}]")
        known = found.get(read.event["key"])
        if known is None or read.progress >= known.progress:
            earlier = known.outcome if known else UNKNOWN
            found[read.event["key"]] = read._replace(outcome=outcome_of(False, read.outcome, earlier))
    return list(found.values())


def listings_of(announced: t.Iterable[Announced]) -> dict[str, list[Event]]:
    """Return the events that are not over as the caller lists them, by key."""
    known = list(announced)
    over = {each.event["key"] for each in known if each.is_over}
    found: dict[str, list[Event]] = {}
    for event in (event for each in known for event in (each.event, *each.other_events)):
        if event["key"] not in over:
            found.setdefault(event["key"], []).append(event)
    return found


def read_ended(entries: t.Any) -> set[str]:
    """Return the keys of the events that the caller reports as over; raise ValueError if they are not event IDs."""
    if _list(entries) is None:
        raise ValueError(f"{ENDED}: not a list; pass a list of event IDs")
    if not all(isinstance(entry, str) and entry for entry in entries):
        raise ValueError(f"{ENDED}: an entry is not an event ID; pass a list of event IDs")
    return {str(entry).casefold() for entry in entries}


def events_of(
    host: str,
    vm_name: str | None,
    announced: t.Iterable[Announced],
    ended: t.Collection[str],
    types: t.Collection[str] | None,
    within: float,
    note: Note | None,
    now: datetime,
) -> dict[str, t.Any]:
    """Return what module maintenance_info returns, for the events of the caller.

    ``host`` is the name in the inventory, and ``vm_name`` the name of its VM, or None to find it, see
    `Announced.vm_of`. ``ended`` has the keys of events that are over. ``types`` are the allowed types, or None for all
    that do not only advise. An event that is later than ``within`` seconds is not due. ``now`` is the time of the
    controller, aware.
    """
    held = {str(event["event_id"]).casefold(): event for event in note["events"]} if note else {}
    shown, name = [], vm_name
    result = {"available": True, "reason": "", "note": note, "announced": True}
    for each in announced:
        event, key = each.event, each.event["key"]
        vm = each.vm_of(host, vm_name)
        if vm is None and host in each.hosts:
            # the event would be ignored although the caller has assigned it to this host
            result["available"] = False
            result["reason"] = (
                f"{ANNOUNCED}: event {printable(event['event_id'])} affects this host, but none of its Resources is"
                f" {vm_name or host}; set maintenance_vm_name to the name of its VM"
            )
        name = name or vm
        is_wanted = is_chosen(event["event_type"], types)
        if vm is None or each.is_over or key in ended or not (is_wanted or key in held):
            continue
        # an earlier run may have prepared the host
        kept = {"prepared": held[key]["prepared"]} if held.get(key, {}).get("prepared") else {}
        shown.append(dict(event, due=key in held or _seconds_left(event, now) <= within, **kept))
    return dict(result, resource_name=name or host, events=shown)


def end_of(
    note: Note, announced: t.Iterable[Announced], ended: t.Collection[str], now: str, prepared: Preparation
) -> tuple[list[Event], str]:
    """Return the events of the note, and why they are not all over.

    Each event has ``listed``, ``started`` and ``over``, ``outcome`` if it is over, and ``prepared`` if a run has
    prepared the host for it. ``ended`` has the keys of events that are over. ``now`` is in ISO 8601. ``prepared`` is
    the preparation by this run.
    """
    latest = {each.event["key"]: each for each in announced}
    events = []
    for held in note["events"]:
        event = {"started": None, "over": None, **held}
        prepared_at = prepared.at_for(event["event_type"])
        if prepared_at and not event["over"]:
            event["prepared"] = prepared_at
        key = str(event["event_id"]).casefold()
        known = latest.get(key)
        if known and (known.event["status"] == _STARTED or known.outcome == COMPLETED):
            # a completed event has started, at a time that the caller does not know
            event["status"] = _STARTED
        if event["status"] == _STARTED and not (event["over"] or (known and known.is_over)):
            event["started"] = event["started"] or now
        if key in ended or (known and known.is_over):
            event["over"] = event["over"] or now
        if event["over"]:
            reported = known.outcome if known else UNKNOWN
            event["outcome"] = outcome_of(event["status"] == _STARTED, reported, event.get("outcome", UNKNOWN))
        events.append(dict(event, listed=event["over"] is None))
    pending = [f"{event['event_type']} {event['event_id']}" for event in events if event["listed"]]
    return events, printable(", ".join(pending))


def _announced(entry: t.Any, where: str) -> Announced:
    change = entry if isinstance(entry, t.Mapping) and "event" in entry else {"event": entry}
    read = _event(change["event"], where)
    others = _list(change.get("other_events", ()))
    if others is None:
        raise ValueError(f"{where}: other_events is not a list; pass a list of events in the form of event_info")
    last = reported_outcome(read["status"])
    outcome = reported_outcome(str(change.get("outcome")))
    is_over = change.get("change") == _GONE or last is not None
    hosts = list(map(str, _list(change.get("hosts")) or ()))
    unknown = {vm_key(str(vm)) for vm in _list(change.get("unknown_resources")) or ()}
    mapped = [vm for vm in read["resources"] if vm_key(vm) not in unknown]
    mapping = dict(zip(mapped, hosts)) if len(mapped) == len(hosts) else {}
    return Announced(
        read,
        is_over,
        outcome or last or UNKNOWN,
        hosts,
        mapping,
        [_event(each, f"{where}.other_events[{number}]") for number, each in enumerate(others)],
    )


def _event(event: t.Any, where: str) -> Event:
    try:
        read = ScheduledEvent.from_json(event, where)
    except ValueError as error:
        raise ValueError(f"{error}; pass changes, or events in the form of event_info") from None
    return {**read.as_dict(), "key": read.key}


def _list(value: t.Any) -> t.Sequence[t.Any] | None:
    """Return the value if it is a list, else None."""
    return value if isinstance(value, t.Sequence) and not isinstance(value, (str, bytes)) else None


def _seconds_left(event: Event, now: datetime) -> float:
    not_before = parse_not_before(event["not_before"])[0]
    if not_before is None or event["status"] == _STARTED:
        return 0.0
    return (not_before - now).total_seconds()
