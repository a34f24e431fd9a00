# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Prepare and recover for a member of a cluster of Patroni."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ready_hooks.core import commands
from ready_hooks.core.commands import Result
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, Run
from ready_hooks.hooks.postgresql import members, switchover
from ready_hooks.hooks.postgresql.members import Member
from ready_hooks.hooks.postgresql.server import Server, variables
from ready_hooks.hooks.postgresql.unit import Unit

_UNIT = "patroni.service"
_QUESTION = 20.0
_MOST_BYTES = 1024 * 1024  # of the configuration


class Patroni:
    """This member."""

    def __init__(self, run: Run) -> None:
        self._run, self._options = run, run.options
        self._unit = Unit(run.options["unit"] or _UNIT, run.deadline)

    def check(self) -> Iterator[Finding]:
        """Yield the findings."""
        found = self._members()
        own = self._own(found)
        yield Finding(INFO, f"{own.name}: {own.role}, {own.state}")
        if self._options["stop"]:
            yield from self._unit.findings()
        name, reasons = members.candidate(found, own.name, self._options["candidate"], self._options["most_lag"])
        if name is not None:
            yield Finding(INFO, f"{name} can take over")
        else:
            severity = ERROR if own.is_leader else WARNING
            yield Finding(severity, f"{own.name}: no member could take over: {reasons}; repair the cluster")

    def prepare(self) -> None:
        """Switch over if this member is the leader; by option, stop it. Raises HookError."""
        data: dict[str, Any] = self._run.record.load() or {}
        if data.get("stopped") and not self._unit.runs:
            # Patroni forgets a stopped member after its ttl
            self._run.say(f"{self._unit.name} is stopped already")
            return
        found = self._members()
        own = self._own(found)
        if own.is_leader:
            self._hand_over(found, own.name, data)
        else:
            self._checkpoint()
        if self._options["stop"]:
            data["stopped"] = True
            self._run.remember(data)
            self._run.act(f"stop {self._unit.name}", self._unit.change, "stop")

    def recover(self, data: Mapping[str, Any]) -> None:
        """Wait until this member is a part of the cluster again. Raises HookError."""
        if data.get("stopped"):
            self._run.act(f"start {self._unit.name}", self._unit.change, "start")
        if self._run.dry_run:
            self._run.say("would wait until this member streams")
            return
        if not self._run.deadline.retry_until(self._is_back, interval=1.0):
            raise HookError(self._name(), "it is not back in the cluster", "look at the log of Patroni")
        if self._options["switch_back"] and data.get("was_leader"):
            self._switch_back()

    def _hand_over(self, found: tuple[Member, ...], own: str, data: dict[str, Any]) -> None:
        name, reasons = members.candidate(found, own, self._options["candidate"], self._options["most_lag"])
        if name is None:
            raise HookError(own, f"no member can take over: {reasons}", "repair the cluster; nothing was changed")
        switchover.ensure_time(self._run.deadline, name)
        is_new = not data
        data["was_leader"] = True
        self._run.remember(data)
        try:
            self._run.act(f"switch over from {own} to {name}", self._switch, own, name)
        except OutOfTime:
            raise  # Patroni may still do it
        except HookError:
            if is_new and self._leader() == own:
                self._run.forget()
            raise

    def _switch_back(self) -> None:
        own, leader = self._name(), self._leader()
        if leader is not None and leader != own:
            switchover.ensure_time(self._run.deadline, own)
            self._run.act(f"switch back from {leader} to {own}", self._switch, leader, own)

    def _switch(self, leader: str, name: str) -> None:
        arguments = ["switchover", "--leader", leader, "--candidate", name, "--force"]
        limit = self._run.deadline.wait_limit  # each leaves time for the last question about the leader
        result = self._patronictl(*arguments, most=limit(None))
        if not self._run.deadline.wait_until(lambda: self._leader() == name, limit(30.0 if result.status else None)):
            raise HookError(name, f"it did not become the leader: {result.reason}", "look at the log of Patroni")

    def _leader(self) -> str | None:
        """Return the leader whose server runs, or None."""
        try:
            found = self._members()
        except HookError as error:
            self._run.warn(str(error))
            return None
        return next((member.name for member in found if member.is_leader and member.is_healthy), None)

    def _is_back(self) -> bool:
        own = self._own(self._members())
        return own.is_healthy and own.lag <= self._options["most_lag"]

    def _checkpoint(self) -> None:
        user = self._options["user"]
        target = f"port={self._options['port'] or 5432} dbname={self._options['database']}"
        server = Server("this server", target, user, variables(user), self._run.deadline)
        try:
            self._run.act("write a checkpoint", server.ask, "CHECKPOINT", None)
        except HookError as error:
            self._run.warn(str(error))  # it only shortens the next start

    def _members(self) -> tuple[Member, ...]:
        result = self._patronictl("list", "--format", "json", most=_QUESTION)
        if result.status != 0:
            raise HookError("patronictl", f"it failed with status {result.status}: {result.reason}")
        try:
            return members.members(result.output)
        except ValueError as error:
            raise HookError("patronictl", f"its answer is not usable: {error}") from None

    def _own(self, found: tuple[Member, ...]) -> Member:
        name = self._name()
        for member in found:
            if member.name == name:
                return member
        names = ", ".join(member.name for member in found) or "no members"
        raise HookError(name, f"Patroni has no such member, but {names}", "correct the option member")

    def _name(self) -> str:
        if self._options["member"] is not None:
            return str(self._options["member"])
        path, user = self._options["patroni"], self._options["user"]
        result = commands.run(["head", "-c", str(_MOST_BYTES), "--", path], self._run.deadline, _QUESTION, user=user)
        if result.status != 0:
            raise HookError(path, f"user {user} cannot read it: {result.reason}", "correct the option patroni or user")
        name = members.own_name(result.output)
        if name is None:
            raise HookError(path, "it has no name of this member", "set the option member")
        return name

    def _patronictl(self, *arguments: str, most: float | None = None) -> Result:
        """Run patronictl as the user that may write its configuration. Raises HookError."""
        words = ["patronictl", "-c", str(self._options["patroni"]), *arguments]
        user = self._options["user"]
        return commands.run(words, self._run.deadline, most, environment=variables(user), user=user)
