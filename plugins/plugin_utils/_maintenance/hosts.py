# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the state of a maintenance run from the variables of its hosts: the steps and the problems of each host."""

from __future__ import annotations

import typing as t

from .host_results import are_approvals
from .preparation import Preparation

Variables = t.Mapping[str, t.Any]
Event = t.Mapping[str, t.Any]


# the outcomes of an event that this or another VM has approved
APPROVED = ("approved", "already_approved")


class Approval(t.NamedTuple):
    """The result of an approval: the outcome as a word, its time in ISO 8601 or None, and why there is none."""

    outcome: str
    at: str | None
    why_not: str


class MaintenanceHost:
    """One host of a maintenance run, by its name in the inventory."""

    def __init__(self, name: str, variables: Variables) -> None:
        self.name = name
        self._check = _result(variables, "check")
        self._plan: Variables = variables.get("maintenance__plan") or {}
        self._info = _result(variables, "info")
        self._note = _result(variables, "note")
        self._preparation = Preparation.of_fact(variables.get("maintenance__prepared"))
        # what the host lists since it has prepared
        self._seen = _result(variables, "seen")
        self._decided: Variables = variables.get("maintenance__decided") or {}
        self._approvals = [item for item in _result(variables, "approvals").get("results", ()) if "item" in item]
        self._wait = _result(variables, "wait")
        self._recovered: Variables = variables.get("maintenance__recovered") or {}
        self._released = _result(variables, "released")

    @property
    def vm(self) -> str:
        """The name of the VM as the host knows it, "" if unknown."""
        return self._info.get("resource_name") or ""

    @property
    def arm_vm(self) -> str:
        """The name of the VM in the resource ID of the inventory, "" unless the run approves by it."""
        return (self._check.get("arm") or {}).get("vm") or ""

    @property
    def approval_vm(self) -> str:
        """The name of the VM that is prepared when the host is: that of the inventory, or else as the host knows it."""
        return self.arm_vm or self.vm

    @property
    def fault_domain(self) -> str:
        """The fault domain of the VM, "" if unknown."""
        return self._info.get("fault_domain") or ""

    @property
    def server_time(self) -> str:
        """The time in ISO 8601 of the answer with the events, by the clock of IMDS, "" if unknown."""
        return self._info.get("server_time") or ""

    @property
    def asked_at(self) -> float | None:
        """When the run began with the host, in seconds by the controller's clock, or None."""
        return self._check.get("at")

    @property
    def is_unknown(self) -> bool:
        """True if the events and the note of the host could not be read."""
        return not self._info or _could_not_be_read(self._info)

    @property
    def had_note(self) -> bool:
        """True if the host had the note of any run when its events were read."""
        return bool(self._info.get("note"))

    @property
    def keys_of_note(self) -> set[str]:
        """The keys of the events in the note that the host had when its events were read."""
        return {str(event["event_id"]).casefold() for event in (self._info.get("note") or {}).get("events", ())}

    @property
    def events_due(self) -> list[Event]:
        """The events of the host that have started, start soon, or are in its note."""
        return [event for event in self._info.get("events", ()) if event.get("due")]

    def type_of(self, key: str) -> str | None:
        """Return the type with which the host lists the event of this key, or None if it does not list it."""
        return next((event["event_type"] for event in self._info.get("events", ()) if event["key"] == key), None)

    @property
    def has_preparation(self) -> bool:
        """True if the run has tasks or ready hooks that prepare the host."""
        return any(self._check.get("prepare", {}).values()) or self.has_ready_hooks

    @property
    def has_ready_hooks(self) -> bool:
        """True if the run has ready hooks that prepare the host."""
        return bool(self._check.get("ready_hooks"))

    @property
    def reads_events(self) -> bool:
        """True if the events are those that IMDS lists for the host, False if they are those of the caller."""
        return not self._info.get("announced")

    @property
    def approves_by_arm(self) -> bool:
        """True if the run approves through Azure Resource Manager."""
        return self._check.get("approve_by") == "arm"

    @property
    def takes_part(self) -> bool:
        """True if the host has the note of this run."""
        return bool(self._note.get("note")) and not _has_failed(self._note)

    @property
    def is_prepared(self) -> bool:
        """True if the host has the note of this run and has prepared."""
        return self.takes_part and self._preparation.at is not None

    @property
    def is_lost(self) -> bool:
        """True if the host has prepared, and could not be read since then."""
        return self.is_prepared and self.reads_events and (not self._seen or _could_not_be_read(self._seen))

    @property
    def lost_because(self) -> str:
        """Why the host could not be read since it has prepared."""
        return str(self._seen.get("reason") or _message(self._seen))

    @property
    def has_restarted(self) -> bool:
        """True if the host has prepared, and has restarted since then."""
        return not self.is_lost and self._preparation.was_in_another_boot(self._seen.get("boot") or "")

    @property
    def failed_to_prepare(self) -> bool:
        """True if the host had to prepare and has not succeeded."""
        is_wanted = self.has_preparation and self._has_to_prepare
        return not self.is_prepared and (is_wanted or not self.takes_part)

    @property
    def recovered_at(self) -> str | None:
        """The time in ISO 8601 at which the host had recovered, or None."""
        return self._recovered.get("at") or None if self.takes_part else None

    def prepared_at(self, event_type: str) -> str | None:
        """Return the time in ISO 8601 at which the host was prepared for an event of this type, or None."""
        return self._preparation.at_for(event_type) if self.takes_part else None

    @property
    def prepared_types(self) -> tuple[str, ...]:
        """The types of the events for which the host has prepared."""
        return self._preparation.types

    def events(self) -> list[Event]:
        """Return the events that the host is or was prepared for, as they were listed last."""
        if not self.takes_part:
            return self.events_due
        seen = {event["event_id"].casefold(): dict(event) for event in self._note["note"]["events"]}
        for event in self._events_read():
            seen[event["key"]].update(event)
        for event in self._wait.get("events", ()):
            key = event["event_id"].casefold()
            known = seen.get(key, {"came_later": True})
            last = event.get("last_not_before") or event["not_before"]
            seen[key] = {**known, **event, "not_before": known.get("not_before") or last, "last_not_before": last}
        return list(seen.values())

    def events_to_approve(self) -> list[Event]:
        """Return the events of the note that had not started when they were read."""
        return [event for event in self._events_read() if event["status"] != "Started"]

    def listings(self, key: str) -> list[Event | None]:
        """Return the event of this key as each answer of the host listed it, None where it did not."""
        answers = [self._info, self._seen] if self._seen and not self.is_lost else [self._info]
        return [next((event for event in answer.get("events", ()) if event["key"] == key), None) for answer in answers]

    def resources_of(self, key: str) -> list[str]:
        """Return the VMs that the host lists for the event of this key."""
        return [vm for event in self._info.get("events", ()) if event["key"] == key for vm in event["resources"]]

    @property
    def is_removed(self) -> bool:
        """True if the host does not answer because Azure has removed its VM."""
        return self._wait.get("outcome") == "removed"

    @property
    def continues(self) -> bool:
        """True if the run ended its wait for the host so that the next run can begin."""
        return self._wait.get("outcome") == "continues"

    @property
    def is_checked(self) -> bool:
        """True if the run is in check mode."""
        return self._wait.get("outcome") == "checked"

    def approval_of(self, event_id: str) -> Approval | None:
        """Return the approval of the event by this host, or None if another host had to approve it."""
        for item in self._approvals:
            if item["item"]["event_id"].casefold() != event_id.casefold():
                continue
            if _has_failed(item):
                return Approval("failed", None, f"the approval failed: {_message(item)}")
            given = item.get("approvals") or []
            if not are_approvals(given):
                return Approval("failed", None, "the result of the approval is not valid; examine the host")
            for approval in given:
                return Approval(approval["outcome"], None, approval["reason"])
        return None

    @property
    def has_plan(self) -> bool:
        """True if the run has a plan."""
        return "events" in self._plan

    def waits_because(self, key: str) -> str:
        """Return why the plan leaves the event of this key to a later run, "" if it does not."""
        waiting = (event for event in self._plan.get("events", ()) if event["action"] == "wait")
        return next((event["why"] for event in waiting if event["event_id"].casefold() == key), "")

    def not_prepared_because(self) -> str:
        """Return why the host is not prepared, "" if it is, or if it had no event."""
        if self.is_prepared:
            return ""
        if _could_not_be_read(self._info):
            return "its scheduled events could not be read: %s" % (self._info.get("reason") or _message(self._info))
        if not self._info:
            return "it failed before its scheduled events were read"
        if not self.takes_part:
            if _has_failed(self._note):
                return _message(self._note)
            return "it was lost before its note was written" if self._has_to_prepare else ""
        if self._preparation.why_not:
            return f"the preparation failed: {self._preparation.why_not}"
        if self.failed_to_prepare:
            return "the host was lost during the preparation"
        return self._not_planned_because() or "it has no preparation"

    def problem(self) -> str:
        """Return why the maintenance of the host is not complete, "" if it is."""
        problems = []
        if self.failed_to_prepare:
            problems.append(self.not_prepared_because())
        if self.name in self._decided.get("lost", ()):
            problems.append("the host could not be read after its preparation")
        problems += [
            refusal["text"]
            for refusal in self._decided.get("refusals", {}).values()
            if (refusal["by"], refusal["code"]) == (self.name, "failed")
        ]
        if self.takes_part and not (self.is_removed or self.continues):
            problems.append(self.not_recovered_because())
        return "; ".join(filter(None, problems))

    def not_recovered_because(self) -> str:
        """Return why the host has not recovered, or why it still has its note; "" if neither."""
        if not self._wait:
            return "the end of its events was not awaited"
        if _has_failed(self._wait):
            return _message(self._wait)
        if self._wait.get("outcome") == "no_note":
            return (
                "its note is gone: another run has recovered it, or its disk was replaced;"
                " check whether it is in service"
            )
        if self._recovered.get("why_not"):
            return f"the recovery failed: {self._recovered['why_not']}"
        if self._wait.get("outcome") == "over" and not self._recovered.get("at"):
            return "the host was lost during the recovery"
        if _has_failed(self._released):
            return f"the note was not removed: {_message(self._released)}"
        return ""

    def _not_planned_because(self) -> str:
        """Return why the plan has no preparation for the events of the host, "" if it has."""
        own = {event["key"] for event in self._events_read()}
        planned = [event for event in self._plan.get("events", ()) if event["event_id"].casefold() in own]
        return next((event["why"] for event in planned if event["action"] == "no_preparation"), "")

    @property
    def _has_to_prepare(self) -> bool:
        """True if the plan says so; a run that only recovers has no plan."""
        if "hosts" in self._plan:
            return bool(self._plan["hosts"].get(self.name, {}).get("prepares_for"))
        return any(event["status"] != "Started" for event in self._events_read())

    def awaits(self) -> str:
        """Return for what a later run continues with the host, or why none does, "" else; that is not a problem."""
        return _message(self._wait) if self._wait.get("outcome") in ("pending", "continues", "removed") else ""

    def _events_read(self) -> list[Event]:
        """Return the events of the note as they were listed before it was written, without those that were over."""
        held = {event["event_id"].casefold() for event in self._note["note"]["events"]} if self.takes_part else set()
        return [event for event in self._info.get("events", ()) if event["key"] in held]


def hosts_of(names: t.Iterable[str], hostvars: t.Mapping[str, Variables]) -> list[MaintenanceHost]:
    """Return the hosts of these names."""
    return [MaintenanceHost(name, hostvars[name]) for name in names]


def _result(variables: Variables, name: str) -> Variables:
    """Return the registered result of the task, empty if it has not run or was skipped."""
    result: Variables = variables.get("maintenance__" + name) or {}
    return {} if result.get("skipped") and "results" not in result else result


def _has_failed(result: Variables) -> bool:
    return bool(result.get("failed") or result.get("unreachable"))


def _could_not_be_read(answer: Variables) -> bool:
    """Return True if module maintenance_info could not read all events."""
    return _has_failed(answer) or not answer.get("available", True)


def _message(result: Variables) -> str:
    return str(result.get("msg") or "no reason is known")
