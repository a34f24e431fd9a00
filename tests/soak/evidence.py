# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What happened in a run, from outside of the daemon: marks of hooks, what IMDS was asked and what it answered, what was done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from soak.actions import Deed, Stale
from soak.hooks import HookRun
from soak.plan import VM, Plan
from soak.site import Restart

# faults behind which a GET still brings the true document
TRUE_BEHIND = ("", "date-skew", "bom", "close-idle", "delay", "lost-request")

# seconds by which marks of hooks and the simulator's lists may differ on what came first
ABOUT = 0.02
# the same between the simulator's log, which has milliseconds, and its list of requests
ROUNDED = 0.001


# seconds that a process of the daemon may take on a busy machine until it has opened the journal
TO_OPEN = 3.0


class Listed(NamedTuple):
    """An event was in the true document from then on with these resources; none: it was gone."""

    at: float
    resources: tuple[str, ...]


class Look(NamedTuple):
    """A good document that the daemon got: when, the events for this VM in it, and those that may have been in it as well."""

    at: float
    keys: frozenset[str]
    doubtful: frozenset[str] = frozenset()


class Approval(NamedTuple):
    """A request to approve that reached IMDS."""

    at: float
    key: str
    status: int


class Evidence(NamedTuple):
    """All of a run.

    Attributes:
        runs: the hooks' runs.
        approvals: those of this VM.
        listed: by event, when it was listed for whom.
        looks: the good documents, in their order.
        named_at: when IMDS had first told this VM's name.
        post_faults: whether requests to approve could get lost.
        restarts: the daemon's.
        deeds: what was done.
        history: the journal at the end, as `history --json` prints it.
    """

    plan: Plan
    runs: Sequence[HookRun]
    approvals: Sequence[Approval]
    listed: dict[str, list[Listed]]
    looks: Sequence[Look]
    named_at: float
    post_faults: bool
    restarts: Sequence[Restart]
    deeds: Sequence[Deed]
    history: Sequence[dict[str, Any]]

    def runs_of(self, hook: str, key: str | None = None) -> list[HookRun]:
        return [run for run in self.runs if run.hook == hook and key in (None, run.key)]

    def steps(self, key: str, hook: str) -> list[str]:
        """The states of a hook's runs for an event, as the journal has them."""
        stage, name = hook.split("/")
        return [
            step["state"]
            for record in self.history
            if record["event"]["event_id"].casefold() == key
            for step in record["stages"][stage]
            if step["hook"] == name
        ]

    def resources_at(self, key: str, at: float) -> tuple[str, ...]:
        """Whom the event hit by then; () before it came and after it was over."""
        return next((each.resources for each in reversed(self.listed.get(key, ())) if each.at <= at), ())

    def forgotten(self, key: str, hook: str, since: float, until: float) -> bool:
        """Whether a process of the daemon began in that time that could not know of the run.

        The journal did not have it then, or was destroyed before the process had opened it.
        """
        began = [restart for restart in self.restarts if since <= restart.ended and restart.began <= until]
        if any((key, hook) not in restart.known for restart in began):
            return True
        faults = [
            deed.began
            for deed in self.deeds
            if deed.action.verb.startswith("journal-") and deed.action.verb != "journal-locked"
        ]
        return any(restart.ended <= at <= restart.began + TO_OPEN for restart in began for at in faults)

    def rebooted(self, since: float, until: float) -> bool:
        return any(restart.how == "reboot" and since <= restart.ended <= until for restart in self.restarts)

    def absent_twice(self, key: str, since: float, until: float) -> bool:
        """Whether two good documents in a row were without the event, the second of them in that time."""
        return any(
            key not in first.keys and key not in second.keys and since <= second.at <= until
            for first, second in zip(self.looks, self.looks[1:])
        )

    def longest_absence(self, key: str, since: float, until: float) -> float:
        """The longest time in that one between two documents with the event, in seconds, where a good one in between was without it."""
        longest, last = 0.0, since
        for look in self.looks:
            if since <= look.at <= until and key in look.keys:
                is_away = any(key not in other.keys for other in self.looks if last < other.at < look.at)
                longest, last = max(longest, (look.at - last) * is_away), look.at
        return longest

    def event_ids(self) -> list[str]:
        """The events that this VM saw as its own."""
        return sorted(set().union(*(look.keys for look in self.looks)))


def listed_from(lines: Sequence[dict[str, Any]]) -> dict[str, list[Listed]]:
    """When each event was listed for whom, from the simulator's log."""
    found: dict[str, list[Listed]] = {}
    for line in lines:
        key = str(line.get("id", "")).casefold()
        if not key or "resources" not in line or line["what"].startswith("impact"):
            continue
        over = line["what"] in ("finished", "cancelled", "expired")
        resources = () if over else tuple(line["resources"])
        changes = found.setdefault(key, [])
        if not changes or changes[-1].resources != resources:
            changes.append(Listed(unix(line["time"]), resources))
    return found


def looks_from(
    requests: Sequence[dict[str, Any]], listed: dict[str, list[Listed]], stale: Sequence[Stale]
) -> list[Look]:
    """The good documents of this VM; what changed in the millisecond of a request is doubtful in its document."""
    looks = []
    for request in requests:
        at = request["moment"]
        if (request["method"], request["route"]) != ("GET", "scheduledevents") or request["status"] not in (200, 304):
            continue
        if request["fault"] == "body":
            looks.append(Look(at, next(each.keys for each in reversed(stale) if each.since <= at)))
        elif request["fault"] in TRUE_BEHIND:
            before, after = _keys(listed, at - ROUNDED), _keys(listed, at + ROUNDED)
            looks.append(Look(at, before & after, before ^ after))
    return looks


def _keys(listed: dict[str, list[Listed]], at: float) -> frozenset[str]:
    """The events that were listed for this VM then."""
    return frozenset(key for key, changes in listed.items() if VM in _at(changes, at))


def unix(text: str) -> float:
    """Unix time of a line of the simulator's log."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _at(changes: list[Listed], at: float) -> tuple[str, ...]:
    return next((each.resources for each in reversed(changes) if each.at <= at), ())
