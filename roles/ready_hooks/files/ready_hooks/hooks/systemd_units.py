# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Stops units of systemd in order, and starts those that it has stopped in reverse order."""

from __future__ import annotations

from collections.abc import Iterator

from ready_hooks.core import commands, options
from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import ERROR, INFO, Finding, ReadyHook
from ready_hooks.core.options import Option

_RUNNING = ("active", "activating", "reloading")


class SystemdUnits(ReadyHook):
    """Stop units, and start them again.

    The record has the units that were active, in the order in which they were stopped.
    """

    name = "systemd-units"
    summary = "Stops units of systemd in order, and starts them again in reverse order."
    options = (
        Option("units", options.text, "units to stop, in this order", required=True, many=True),
        Option("stop_timeout", options.seconds, "seconds for the stop of one unit", 90.0),
        Option("start_timeout", options.seconds, "seconds for the start of one unit", 90.0),
    )

    def check(self) -> Iterator[Finding]:
        for unit in self.run.options["units"]:
            found = self._properties(unit)
            if found["LoadState"] != "loaded":
                yield Finding(ERROR, f"{unit}: systemd has no such unit ({found['LoadState']}); correct its name")
            else:
                yield Finding(INFO, f"{unit}: {found['ActiveState']}")

    def prepare(self) -> None:
        stopped: list[str] = list((self.run.record.load() or {}).get("units", []))
        for unit in self.run.options["units"]:
            found = self._properties(unit)
            if found["LoadState"] != "loaded":
                raise HookError(unit, f"systemd has no such unit ({found['LoadState']})", "correct its name")
            if found["ActiveState"] not in _RUNNING:
                self.run.say(f"{unit} does not run ({found['ActiveState']})")
                continue
            if unit not in stopped:
                stopped.append(unit)
                self.run.remember({"units": stopped})
            self.run.act(f"stop {unit}", self._systemctl, "stop", unit)

    def recover(self) -> None:
        record = self.run.record.load()
        if record is None:
            self.run.say("nothing to start")
            return
        for unit in reversed(record["units"]):
            self.run.act(f"start {unit}", self._systemctl, "start", unit)
        self.run.forget()

    def _systemctl(self, verb: str, unit: str) -> None:
        commands.must_run(["systemctl", verb, "--", unit], self.run.deadline, self.run.options[verb + "_timeout"])

    def _properties(self, unit: str) -> dict[str, str]:
        question = ["systemctl", "show", "--property=LoadState,ActiveState", "--", unit]
        lines = commands.must_run(question, self.run.deadline).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


HOOK = SystemdUnits
