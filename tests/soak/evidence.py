# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What happened in a run, from outside of the daemon: marks of hooks, what IMDS was asked and what it answered, what was done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from soak.actions import PerformedAction, Stale
from soak.hooks import HookRun
from soak.plan import VM, Plan
from soak.testbed import Restart

# faults behind which a GET still brings the true document
FAULTS_WITH_TRUE_DOCUMENT = ("", "date-skew", "bom", "close-idle", "delay", "lost-request")

# seconds by which marks of hooks and the simulator's lists may differ on what came first
CLOCK_TOLERANCE = 0.02
# the same between the simulator's log, which has milliseconds, and its list of requests
LOG_RESOLUTION = 0.001


# seconds that a process of the daemon may take on a busy machine until it has opened the journal
JOURNAL_OPEN_TIMEOUT = 3.0


class Listed(NamedTuple):
    """An event was in the true document from then on with these resources; none: it was gone."""

    at: float
    resources: tuple[str, ...]


class Poll(NamedTuple):
    """A good document that the daemon got: when, the events for this VM in it, and those that may have been in it as well."""

    at: float
    keys: frozenset[str]
    uncertain: frozenset[str] = frozenset()


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
        polls: the good documents, in their order.
        named_at: when IMDS had first told this VM's name.
        post_faults: whether requests to approve could get lost.
        restarts: the daemon's.
        performed: what was done.
        history: the journal at the end, as `history --json` prints it.
    """

    plan: Plan
    runs: Sequence[HookRun]
    approvals: Sequence[Approval]
    listed: dict[str, list[Listed]]
    polls: Sequence[Poll]
    named_at: float
    post_faults: bool
    restarts: Sequence[Restart]
    performed: Sequence[PerformedAction]
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
            performed_action.began
            for performed_action in self.performed
            if performed_action.action.verb.startswith("journal-") and performed_action.action.verb != "journal-locked"
        ]
        return any(restart.ended <= at <= restart.began + JOURNAL_OPEN_TIMEOUT for restart in began for at in faults)

    def rebooted(self, since: float, until: float) -> bool:
        return any(restart.how == "reboot" and since <= restart.ended <= until for restart in self.restarts)

    def absent_twice(self, key: str, since: float, until: float) -> bool:
        """Whether two good documents in a row were without the event, the second of them in that time."""
        return any(
            key not in first.keys and key not in second.keys and since <= second.at <= until
            for first, second in zip(self.polls, self.polls[1:])
        )

    def longest_absence(self, key: str, since: float, until: float) -> float:
        """The longest time in that one between two documents with the event, in seconds, where a good one in between was without it."""
        longest, last = 0.0, since
        for poll in self.polls:
            if since <= poll.at <= until and key in poll.keys:
                is_away = any(key not in other.keys for other in self.polls if last < other.at < poll.at)
                longest, last = max(longest, (poll.at - last) * is_away), poll.at
        return longest

    def event_ids(self) -> list[str]:
        """The events that this VM saw as its own."""
        return sorted(set().union(*(poll.keys for poll in self.polls)))


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
            changes.append(Listed(unix_time(line["time"]), resources))
    return found


def polls_from(
    requests: Sequence[dict[str, Any]], listed: dict[str, list[Listed]], stale: Sequence[Stale]
) -> list[Poll]:
    """The good documents of this VM; what changed in the millisecond of a request is uncertain in its document."""
    polls = []
    for request in requests:
        at = request["moment"]
        if (request["method"], request["route"]) != ("GET", "scheduledevents") or request["status"] not in (200, 304):
            continue
        if request["fault"] == "body":
            polls.append(Poll(at, next(each.keys for each in reversed(stale) if each.since <= at)))
        elif request["fault"] in FAULTS_WITH_TRUE_DOCUMENT:
            before, after = _keys(listed, at - LOG_RESOLUTION), _keys(listed, at + LOG_RESOLUTION)
            polls.append(Poll(at, before & after, before ^ after))
    return polls


def _keys(listed: dict[str, list[Listed]], at: float) -> frozenset[str]:
    """The events that were listed for this VM then."""
    return frozenset(key for key, changes in listed.items() if VM in _at(changes, at))


def unix_time(text: str) -> float:
    """Unix time of a line of the simulator's log."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _at(changes: list[Listed], at: float) -> tuple[str, ...]:
    return next((each.resources for each in reversed(changes) if each.at <= at), ())
