# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Observations of a run that do not come from the daemon: marks of hooks, requests to IMDS, actions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from soak.actions import PerformedAction, Stale
from soak.hooks import HookRun
from soak.plan import VM, Plan
from soak.testbed import Restart

# faults with which a GET still returns the true document
FAULTS_WITH_TRUE_DOCUMENT = ("", "date-skew", "bom", "close-idle", "delay", "lost-request")

# seconds of tolerance between marks of hooks and the simulator's lists
CLOCK_TOLERANCE = 0.02
# seconds of tolerance between the simulator's log, which has milliseconds, and its list of requests
LOG_RESOLUTION = 0.001


# seconds until a process of the daemon has read its records, on a busy machine
READ_TIMEOUT = 3.0


class Listed(NamedTuple):
    """From a time on the true document listed an event with these resources; without any: it was gone."""

    at: float
    resources: tuple[str, ...]


class Poll(NamedTuple):
    """A good document that the daemon got: its time, the events of this VM, and events that it may have had."""

    at: float
    keys: frozenset[str]
    uncertain: frozenset[str] = frozenset()


class Approval(NamedTuple):
    """An approval that reached IMDS."""

    at: float
    key: str
    status: int


class Evidence(NamedTuple):
    """All observations of a run.

    Attributes:
        runs: the hooks' runs.
        approvals: those of this VM.
        polls: the good documents, in their order.
        named_at: Unix time at which IMDS first returned this VM's name.
        post_faults: whether approvals could get lost.
        restarts: restarts of the daemon.
        performed: the actions of the plan.
        history: the records at the end, as `history --json` prints it.
    """

    plan: Plan
    runs: Sequence[HookRun]
    approvals: Sequence[Approval]
    polls: Sequence[Poll]
    named_at: float
    post_faults: bool
    restarts: Sequence[Restart]
    performed: Sequence[PerformedAction]
    history: Sequence[dict[str, Any]]

    def runs_of(self, hook: str, key: str | None = None) -> list[HookRun]:
        return [run for run in self.runs if run.hook == hook and key in (None, run.key)]

    def states(self, hook: str) -> list[str]:
        """Return the states of a hook's runs in the records."""
        runs = [run for each in self.history for run in each["hooks"]]
        return [run["state"] for run in runs if f"{run['stage']}/{run['name']}" == hook]

    def forgotten(self, key: str, hook: str, since: float, until: float) -> bool:
        """Return True if a process of the daemon started within these times without knowledge of the run.

        The records lacked the run, or were destroyed before the process had read them.
        """
        began = [restart for restart in self.restarts if since <= restart.ended and restart.began <= until]
        if any((key, hook) not in restart.known for restart in began):
            return True
        faults = [
            performed_action.began
            for performed_action in self.performed
            if performed_action.action.verb.startswith("records-")
        ]
        return any(restart.ended <= at <= restart.began + READ_TIMEOUT for restart in began for at in faults)

    def rebooted(self, since: float, until: float) -> bool:
        return any(restart.how == "reboot" and since <= restart.ended <= until for restart in self.restarts)

    def absent_twice(self, key: str, since: float, until: float) -> bool:
        """Return True if two good documents in a row lacked the event, the second one within these times."""
        return any(
            key not in first.keys and key not in second.keys and since <= second.at <= until
            for first, second in zip(self.polls, self.polls[1:])
        )

    def event_ids(self) -> list[str]:
        """Return the ids of all events that affected this VM in a document."""
        return sorted(set().union(*(poll.keys for poll in self.polls)))


def listed_from(lines: Sequence[dict[str, Any]]) -> dict[str, list[Listed]]:
    """Return from the simulator's log when each event was listed, and with which resources."""
    found: dict[str, list[Listed]] = {}
    for line in lines:
        key = str(line.get("id", "")).casefold()
        if not key or "resources" not in line or line["what"].startswith("impact"):
            continue
        over = line["what"] in ("finished", "cancelled", "expired")
        resources = () if over else tuple(line["resources"])
        changes = found.setdefault(key, [])
        if not changes or changes[-1].resources != resources:
            changes.append(Listed(unix_time(line["time"]), resources))
    return found


def polls_from(
    requests: Sequence[dict[str, Any]], listed: dict[str, list[Listed]], stale: Sequence[Stale]
) -> list[Poll]:
    """Return the good documents of this VM; an event that changed in the millisecond of a request is uncertain."""
    polls = []
    for request in requests:
        at = request["moment"]
        if (request["method"], request["route"]) != ("GET", "scheduledevents") or request["status"] != 200:
            continue
        if request["fault"] == "body":
            polls.append(Poll(at, next(each.keys for each in reversed(stale) if each.since <= at)))
        elif request["fault"] in FAULTS_WITH_TRUE_DOCUMENT:
            before, after = _keys(listed, at - LOG_RESOLUTION), _keys(listed, at + LOG_RESOLUTION)
            polls.append(Poll(at, before & after, before ^ after))
    return polls


def _keys(listed: dict[str, list[Listed]], at: float) -> frozenset[str]:
    """Return the events that were listed for this VM at a time."""
    return frozenset(key for key, changes in listed.items() if VM in _at(changes, at))


def unix_time(text: str) -> float:
    """Convert a time of the simulator's log to Unix time."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _at(changes: list[Listed], at: float) -> tuple[str, ...]:
    return next((each.resources for each in reversed(changes) if each.at <= at), ())
