# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Stops units of systemd in order, and starts those that it has stopped in reverse order."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ready_hooks.core import arguments, commands
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, RecordingHook
from ready_hooks.core.systemd import STOPPED_WITH, show

_TYPES = (*("service", "socket", "timer", "path", "mount", "automount", "swap", "target", "slice", "scope", "device"),)
_STOPPED = ("inactive", "failed")
# a unit that is being stopped by another program counts as stopped
_NOT_RUNNING = (*_STOPPED, "deactivating", "")
_PROPERTIES = (
    *("Id", "LoadState", "ActiveState", "CanStart", "Transient", "TriggeredBy", "Triggers", "TimeoutStopUSec"),
    *STOPPED_WITH,
)
_SPANS = {
    "us": 1e-6,
    "ms": 0.001,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "month": 2629800,
    "y": 31557600,
}
_MOST_DEPENDENTS = 200


def unit_name(value: object) -> str:
    """Return the name of one unit, with .service where it has no type. Raises ValueError."""
    name = arguments.text(value)
    if name.rpartition(".")[2] not in _TYPES:
        name += ".service"
    if not re.fullmatch(r"[A-Za-z0-9:_.\\@-]{1,255}", name):
        raise ValueError(f"expected the name of a unit without wildcards, not {value!r}")
    if "@." in name:
        raise ValueError(f"expected an instance such as {name.replace('@.', '@main.')}, not the template {value!r}")
    return name


def time_span(value: str) -> float:
    """Return the seconds of a span as systemctl prints it: 1min 30s, infinity."""
    if value == "infinity":
        return math.inf
    return sum(float(number) * _SPANS.get(unit, 0) for number, unit in re.findall(r"([\d.]+)\s*([a-z]+)", value))


class Unit(NamedTuple):
    """A unit as systemd knows it.

    Attributes:
        name: the main one; another name of the unit may have led to it.
        load: loaded, masked, not-found, ...
        state: active, inactive, failed, ...
        can_start: whether systemctl may start it again after a stop.
        triggers: the loaded units that start it on demand.
        triggered: the units that it starts on demand.
        dependents: the units that systemd stops with it.
        stop_limit: seconds until systemd kills it.
    """

    name: str
    load: str
    state: str
    can_start: bool
    triggers: tuple[str, ...]
    triggered: tuple[str, ...]
    dependents: tuple[str, ...]
    stop_limit: float

    @property
    def is_running(self) -> bool:
        """Whether a stop changes it."""
        return self.state not in _NOT_RUNNING

    @property
    def problem(self) -> str | None:
        """Why the unit cannot be stopped and started again, or None."""
        if self.load == "masked":
            return "it is masked; unmask it, or systemd does not start it again" if self.is_running else None
        if self.load != "loaded":
            return f"systemd has no such unit ({self.load}); correct its name or its file"
        if not self.can_start:
            return "systemd does not start it again after a stop; leave it out"
        return None


def unit_of(shown: Mapping[str, str]) -> Unit:
    """Return the unit of the properties that `systemctl show` prints."""
    dependents = [name for key in STOPPED_WITH for name in shown.get(key, "").split()]
    return Unit(
        name=shown.get("Id", ""),
        load=shown.get("LoadState", ""),
        state=shown.get("ActiveState", ""),
        can_start=shown.get("CanStart") == "yes" and shown.get("Transient") != "yes",
        triggers=tuple(shown.get("TriggeredBy", "").split()),
        triggered=tuple(shown.get("Triggers", "").split()),
        dependents=tuple(dict.fromkeys(dependents)),
        stop_limit=time_span(shown.get("TimeoutStopUSec", "")),
    )


def start_order(stopped: Sequence[str], triggered: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the units, which are in the order of their stops, in the order for their start.

    A unit starts before those that it starts on demand (`triggered`), because systemd refuses to start a socket
    whose service runs.
    """
    order: list[str] = []
    for name in reversed(stopped):
        order += [trigger for trigger in stopped if name in triggered.get(trigger, ())]
        order.append(name)
    return list(dict.fromkeys(order))


class SystemdUnits(RecordingHook):
    """Stop units, and start them again.

    The record has the units that ran, in the order in which they were stopped.
    """

    name = "systemd-units"
    summary = "Stops units of systemd in order, and starts them again in reverse order."
    options = (
        Option("units", unit_name, "units to stop, in this order", required=True, many=True),
        Option("stop_timeout", arguments.seconds, "seconds for the stop of one unit", 90.0),
        Option("start_timeout", arguments.seconds, "seconds for the start of one unit", 90.0),
    )

    def check(self) -> Iterator[Finding]:
        before: list[str] = []
        for name in self.run.options["units"]:
            try:
                unit = self._unit(name)
                before.append(unit.name)
                yield from self._findings(unit, before)
            except HookError as error:
                yield Finding(ERROR, str(error))

    def _findings(self, unit: Unit, before: Sequence[str]) -> Iterator[Finding]:
        if unit.problem is not None:
            yield Finding(ERROR, f"{unit.name}: {unit.problem}")
            return
        yield Finding(INFO, f"{unit.name}: {unit.state}")
        for trigger in unit.triggers:
            if trigger not in before and self._unit(trigger).is_running:
                yield Finding(WARNING, f"{unit.name}: {trigger} starts it again on demand; list {trigger} before it")
        for dependent in self._running_dependents(unit):
            if dependent.problem is not None:
                yield Finding(ERROR, f"{dependent.name}, which stops with {unit.name}: {dependent.problem}")
            elif dependent.name not in before:
                yield Finding(INFO, f"{unit.name}: {dependent.name} is stopped before it, because it needs it")
        limit = self.run.options["stop_timeout"]
        if limit < unit.stop_limit:
            given = "no limit" if math.isinf(unit.stop_limit) else f"{unit.stop_limit:g} s"
            yield Finding(
                WARNING,
                f"{unit.name}: its TimeoutStopSec ({given}) exceeds stop_timeout ({limit:g} s); adapt one of them",
            )

    def prepare(self) -> None:
        listed = [self._usable(name) for name in self.run.options["units"]]
        stopped: list[str] = list((self.run.record.load() or {}).get("units", []))
        for unit in listed:
            for each in (*self._running_dependents(unit), self._unit(unit.name)):
                self._stop_if_running(each, stopped)
        if not self.run.dry_run:
            for unit in map(self._unit, dict.fromkeys([*stopped, *(unit.name for unit in listed)])):
                if unit.is_running:
                    by = ", ".join(unit.triggers) or "that starts it"
                    raise HookError(unit.name, "it runs again after its stop", f"list the unit before it: {by}")

    def _usable(self, name: str) -> Unit:
        unit = self._unit(name)
        for each in (unit, *self._running_dependents(unit)):
            if each.problem is not None:
                raise HookError(each.name, each.problem)
        return unit

    def _stop_if_running(self, unit: Unit, stopped: list[str]) -> None:
        if unit.is_running:
            if unit.name not in stopped:
                stopped.append(unit.name)
                self.run.remember({"units": stopped})
            self.run.act(f"stop {unit.name}", self._stop, unit.name)
        elif unit.name in stopped and unit.state not in _STOPPED:
            # an earlier run of this hook has begun to stop it
            self.run.act(f"wait for the stop of {unit.name}", self._stop, unit.name)
        elif unit.name not in stopped:
            self.run.say(f"{unit.name} does not run ({unit.state})")

    def undo(self, record: dict[str, Any]) -> None:
        left: list[str] = list(record["units"])
        failures: list[HookError] = []
        units = {name: self._unit(name) for name in left}
        for name in start_order(left, {name: unit.triggered for name, unit in units.items()}):
            try:
                if units[name].load == "masked":
                    self.run.warn(f"{name}: an operator has masked it; it stays as it is")
                else:
                    self.run.act(f"start {name}", self._start, name)
            except HookError as error:
                failures.append(error)
                if self.run.deadline.left() == 0:
                    break
            else:
                left.remove(name)
                self.run.shorten_record({"units": left})
        self.run.fail(failures)

    def _stop(self, name: str) -> None:
        limit = min(self.run.options["stop_timeout"], self.run.deadline.left())
        try:
            commands.must_run(["systemctl", "stop", "--", name], self.run.deadline, limit)
        except OutOfTime:
            remedy = "systemd continues to stop it, and kills it after its TimeoutStopSec"
            raise OutOfTime(name, f"it did not stop within {limit:.0f} s", remedy) from None
        if self._unit(name).state == "failed":
            self.run.warn(f"{name}: systemd reports a failure of its stop; see journalctl --unit {name}")

    def _start(self, name: str) -> None:
        remedy = f"see journalctl --unit {name}"
        if self._unit(name).state == "failed":
            # otherwise systemd counts the failures, and refuses the start after some
            commands.run(["systemctl", "reset-failed", "--", name], self.run.deadline)
        limit = min(self.run.options["start_timeout"], self.run.deadline.left())
        try:
            result = commands.run(["systemctl", "start", "--", name], self.run.deadline, limit)
        except OutOfTime:
            raise OutOfTime(name, f"it did not start within {limit:.0f} s", remedy) from None
        if result.status != 0:
            raise HookError(name, (result.errors.strip() or result.reason).splitlines()[0], remedy)
        if self._unit(name).state == "failed":
            raise HookError(name, "it failed after its start", remedy)

    def _running_dependents(self, unit: Unit) -> list[Unit]:
        """Return the running units that systemd would stop with this one, each before those that it needs.

        Targets are left out: they have no process, and their start would start units that were stopped before.
        """
        order: list[Unit] = []
        seen = {unit.name}

        def visit(each: Unit) -> None:
            for name in each.dependents:
                if name not in seen and len(seen) < _MOST_DEPENDENTS:
                    seen.add(name)
                    dependent = self._unit(name)
                    if dependent.is_running:
                        visit(dependent)
                        if not name.endswith(".target"):
                            order.append(dependent)

        visit(unit)
        return order

    def _unit(self, name: str) -> Unit:
        return unit_of(show(name, _PROPERTIES, self.run.deadline))


HOOK = SystemdUnits
