# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One run from beginning to end: the plan's actions, then all faults healed, all events over, and the daemon at rest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from azure_scheduled_events.document import EVENT_TYPES
from soak.actions import Actions
from soak.evidence import Approval, Evidence, listed_from, looks_from, unix
from soak.hooks import hook_runs
from soak.plan import VM, Plan
from soak.site import Site, wait_until
from soak.violations import Violation
from support import simulator_process
from support.daemon.simulated_azure import GROUPS, Azure
from support.simulator_process import ControlError, Simulator

# how long the daemon may take to find back, once all faults are over, and until a recovery that
# failed twice is tried again; only a run that fails waits so long
TO_SETTLE = 40.0
TO_RECOVER = 100.0
TO_REWRITE = 15.0
# after the first events of a long run, each further one may leave nothing behind
WARM = 6
MOST_GROWTH = 1536  # KiB
KNOBS = ("--knob", "rate_limit=off", "--knob", "start_delay=0.2s", "--knob", "idle_disable=off", "--quiet")


class Lived(NamedTuple):
    """What is known of a run after it: its evidence, and what the run itself saw that must not be."""

    evidence: Evidence
    violations: list[Violation]


def live(plan: Plan, folder: Path) -> Lived:
    """Carry out a plan in a folder that does not exist yet."""
    with simulator_process.start({"groups": GROUPS}, args=KNOBS) as simulator:
        site = Site(folder, Azure(simulator), plan.setup)
        try:
            return _Life(plan, site, simulator).to_its_end()
        finally:
            site.close()


class _Life:
    def __init__(self, plan: Plan, site: Site, simulator: Simulator) -> None:
        self.plan, self.site, self.simulator = plan, site, simulator
        self.actions = Actions(site)
        self.violations: list[Violation] = []
        self.status: dict[str, Any] = {}

    def to_its_end(self) -> Lived:
        warm: tuple[int, int] | None = None
        self.site.start()
        for number, action in enumerate(self.plan.actions):
            self.actions.do(action)
            if self.plan.is_long and action.verb == "rest":
                self._settled("3 recovered", lambda status: not status["events"])
                rests = sum(each.verb == "rest" for each in self.plan.actions[: number + 1])
                warm = self.site.footprint() if rests == WARM else warm
        self._heal()
        if self._settled("8 finds back", _has_settled):
            self._check_journal()
        self._end_events()
        if self._settled("3 recovered", self._is_over, TO_RECOVER):
            if warm is not None:
                self._compare(warm, self.site.footprint())
            self._check_commands()
        self._stop()
        return Lived(self._evidence(), self.violations)

    def _heal(self) -> None:
        self.actions.do_heal()
        self.site.journal.heal()
        self.site.rig.folder.joinpath("marks.healed").touch()
        if not self.site.is_running():
            self._found("7 daemon alive", f"the daemon had ended by itself, with {self.site.daemon.process}")
            self.site.note_end("died")
            self.site.start()

    def _is_over(self, status: dict[str, Any]) -> bool:
        """Whether no event is open; an operator asks for what failed before."""
        for event in status["events"] if self.plan.setup.operator else ():
            rests = event["stage"] == "recover" and not any(hook["state"] == "running" for hook in event["hooks"])
            if rests and any((hook["stage"], hook["state"]) == ("recover", "failed") for hook in event["hooks"]):
                self.site.daemon.command("recover", event["event_id"])
        return not status["events"]

    def _settled(self, what: str, is_so: Callable[[dict[str, Any]], bool], seconds: float = TO_SETTLE) -> bool:
        """Wait until the daemon's status is as wanted."""

        def look() -> bool:
            self.status = self.site.status() or self.status
            return not self.site.is_running() or (bool(self.status) and is_so(self.status))

        self.status = {}
        came = wait_until(look, seconds, 0.05)
        if not self.site.is_running():
            self._found("7 daemon alive", "it ended by itself while all was well")
            return False
        if not came:
            self._found(what, f"after {seconds:.0f} s without faults the status is {_brief(self.status)}")
        return came

    def _end_events(self) -> None:
        for event in self.simulator.get("/events")["events"]:
            if event["status"] != "Gone":
                try:
                    self.simulator.post(f"/events/{event['id']}/complete")
                except ControlError:
                    pass  # it has just ended

    def _check_journal(self) -> None:
        """While events are open: the journal has them, whatever became of the file they were first written to."""
        wanted = {(event["event_id"].casefold(), "") for event in self.status["events"] if event["concerns_me"]}
        if not wait_until(lambda: wanted <= self.site.journal.content(), TO_REWRITE, 0.2):
            missing = [key for key, _hook in wanted - self.site.journal.content()]
            self._found("5 event in the journal", f"it lacks open events: {', '.join(missing)}")

    def _check_commands(self) -> None:
        status, data = self.site.daemon.data("status")
        if status != 0:
            self._found("7 status", f"`status` exits {status} with nothing wrong any more: {_brief(data)}")

    def _compare(self, warm: tuple[int, int], end: tuple[int, int]) -> None:
        # a connection may just be closing
        if not wait_until(lambda: self.site.footprint()[0] <= warm[0], 3):
            self._found("6 descriptors", f"{warm[0]} after {WARM} events, {end[0]} at the end")
        if end[1] > warm[1] + MOST_GROWTH:
            self._found("6 memory", f"{warm[1]} KiB after {WARM} events, {end[1]} KiB at the end")

    def _stop(self) -> None:
        if not wait_until(lambda: not self.site.left_running(), 5):
            self._found("4 left running", f"processes {self.site.left_running()}")
        self.site.end("term")
        for how, status in self.site.exits:
            if how == "died" or (how == "term" and status != 0):
                self._found("7 daemon alive", f"the daemon ended with exit status {status} ({how})")
        traces = self.site.daemon.times_logged("Traceback")
        if traces:
            self._found("7 daemon alive", f"{traces} tracebacks in its log")

    def _evidence(self) -> Evidence:
        lines = self.simulator.get("/log")["lines"]
        requests = self.simulator.get("/requests?vm=" + VM)["requests"]
        listed = listed_from(lines)
        looks = looks_from(requests, listed, self.actions.stale)
        exit_status, history = self.site.daemon.data("history", "--limit", "10000")
        # a file that was destroyed when there was nothing more to write is found broken at the next
        # write only
        if exit_status != 0 and any(look.keys for look in looks if look.at > (self.site.journal.destroyed_at or 0)):
            self._found("7 history", f"`history` exits {exit_status}: {history}")
        names = [
            each["moment"]
            for each in requests
            if each["route"] == "instance" and each["status"] == 200 and not each["fault"]
        ]
        return Evidence(
            plan=self.plan,
            runs=hook_runs(self.site.marks()),
            approvals=[
                Approval(unix(line["time"]), key.casefold(), line["status"])
                for line in lines
                if line["what"] == "approval" and line["vm"] == VM
                for key in line["ids"]
            ],
            listed=listed,
            looks=looks,
            named_at=min(names, default=time.time()),
            post_faults=any(each["method"] == "POST" and each["fault"] for each in requests),
            restarts=self.site.restarts,
            deeds=self.actions.deeds,
            history=history if isinstance(history, list) else [],
        )

    def _found(self, what: str, text: str) -> None:
        self.violations.append(Violation(what, text))


def _has_settled(status: dict[str, Any]) -> bool:
    """Whether IMDS and journal are well again, no hook runs, and what may be approved is."""
    if not status["imds"]["ok"] or not status["journal"]["ok"] or not status["resource_name"]:
        return False
    return all(_rests(event, status["leader"]) for event in status["events"])


def _rests(event: dict[str, Any], leader: str) -> bool:
    if any(hook["state"] == "running" for hook in event["hooks"]):
        return False
    if event["stage"] == "recover":
        # for other events, or for the next attempt
        return bool(event["waiting"]) or any(
            hook["stage"] == "recover" and hook["state"] not in ("ok", "skipped") for hook in event["hooks"]
        )
    # an id that had started before it came back counts as started, whatever its status says now
    if (
        not event["concerns_me"]
        or event["stage"] != "prepare"
        or event["status"] != "Scheduled"
        or event["seconds_left"] <= 1
    ):
        return True
    if event["event_type"] not in EVENT_TYPES:
        return True  # listed twice with different types: no rule approves an unknown type
    if event["prepared"] in ("none", "running"):
        return False
    leads = event["resources"] == [VM] or (leader == "first" and event["resources"][0] == VM)
    return event["prepared"] == "failed" or not leads or event["approval"] == "accepted"


def _brief(status: dict[str, Any]) -> str:
    return json.dumps(status)[:2000]
