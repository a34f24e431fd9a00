# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The hook slurm: drain and resume of this node by scontrol."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from typing import Any, Callable

from ready_hooks.core import arguments, commands
from ready_hooks.core.arguments import Option
from ready_hooks.core.boot import boot_id
from ready_hooks.core.errors import HookError
from ready_hooks.core.event_types import EVENT_TYPES, advises
from ready_hooks.core.hook import CONTINUE, FAIL, INFO, WARNING, Finding, RecordingHook
from ready_hooks.hooks.slurm import answers

_REQUEUE, _NONE = "requeue", "none"
_DEFAULT_REQUEUE_TYPES = ("Preempt", "Redeploy")
_PROGRAMS = ("scontrol", "squeue", "scancel")
# states in which a job holds its nodes
_ON_NODE = "RUNNING,SUSPENDED,STOPPED,CONFIGURING,COMPLETING"
_COMPLETING = "COMPLETING"
_REASON_BEGIN = "azure-scheduled-events"
_MOST_SECONDS_OF_A_QUESTION = 20.0
# seconds by which the boot time of one boot varies in slurmctld, which computes it again at each registration
_BOOT_TIME_VARIES = 2.0
# seconds between the two times of one start that slurmd reports
_TOLERANCE = 5.0
_ENVIRONMENT = {"SLURM_TIME_FORMAT": "standard"}


def _signal(value: object) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9]{2,9}|[0-9]{1,2}", str(value)):
        raise ValueError(f"expected the name of a signal such as USR1, not {value!r}")
    return str(value)


class Slurm(RecordingHook):
    """Let no new job start on this node, and wait for those that run.

    The record has the node, the reason with which it was drained (None: it was drained before), the
    boot of the host, and the jobs that got the signal.
    """

    name = "slurm"
    summary = "Drains this node of a Slurm cluster, and resumes it."
    options = (
        Option("node", arguments.text, "name of this node in Slurm (default: SLURMD_NODENAME, or by the host's name)"),
        Option("wait", arguments.seconds, "seconds for the jobs to end (default: all that the hook has)"),
        Option(
            "on_timeout",
            arguments.one_of(CONTINUE, FAIL, _REQUEUE),
            "continue, fail, or requeue the jobs that allow it, if jobs remain",
            CONTINUE,
        ),
        Option(
            "requeue_types",
            arguments.one_of(*(kind for kind in EVENT_TYPES if not advises(kind)), _NONE),
            f"types of events that requeue jobs at once, or none (default: {', '.join(_DEFAULT_REQUEUE_TYPES)})",
            many=True,
        ),
        Option("signal", _signal, "signal for the jobs that are not requeued, such as USR1 (default: none)"),
    )

    def check(self) -> Iterator[Finding]:
        for program in _PROGRAMS:
            commands.require(program, "install slurm-client")
        ping = self._ask("scontrol", "ping")
        if " is UP" not in ping.output:
            raise HookError("slurmctld", f"it does not answer: {ping.reason}", "start it, or correct slurm.conf")
        node = self._node()
        state = "+".join(node.states)
        yield Finding(INFO, f"{node.name}: {state}" + (f", reason: {node.reason}" if node.reason else ""))
        if os.geteuid() != 0:
            yield Finding(WARNING, "permission: only root, SlurmUser and operators of Slurm may drain a node")

    def prepare(self) -> None:
        node = self._node()
        record = self.run.preparation_of("node", node.name) or self._record_of(node, None)
        if node.is_drained or node.is_down:
            self.run.say(f"{node.name} is {'+'.join(node.states)} already, reason: {node.reason or 'none'}")
        else:
            if record["reason"] is None:
                record = self._record_of(node, self._new_reason())
                self.run.remember(record)
            self.run.act(f"drain {node.name}", self._update, node.name, "DRAIN", str(record["reason"]))
        types = self.run.options["requeue_types"] or _DEFAULT_REQUEUE_TYPES
        requeued = self._requeue(node.name) if self.run.event.event_type in types else set()
        if self.run.options["signal"] is not None:
            self._send_signal(node.name, record, requeued)
        if not self.run.dry_run:
            self._wait_for_jobs(node.name)

    def undo(self, record: dict[str, Any]) -> None:
        if record["reason"] is None:
            self.run.say("no node to resume")
            return
        name, reason = str(record["node"]), str(record["reason"])
        node = self._shown(name) if self.run.dry_run else self._returned(name, reason, str(record["boot"]))
        if node.is_drained and node.reason != reason:
            self.run.say(f"{name} stays drained, for another reason: {node.reason or 'none'}")
        elif node.is_drained:
            self.run.act(f"resume {name}", self._resume, name)
        elif node.is_down:
            raise self._down(node)
        else:
            self.run.say(f"{name} is not drained")

    def _record_of(self, node: answers.Node, reason: str | None) -> dict[str, Any]:
        return {"node": node.name, "reason": reason, "boot": boot_id(), "signalled": []}

    def _new_reason(self) -> str:
        words = (_REASON_BEGIN, self.run.event.event_id, self.run.event.event_type)
        return " ".join(word for word in words if re.fullmatch(r"[A-Za-z0-9._-]{1,100}", word))

    def _ask(self, *question: str) -> commands.Result:
        return commands.run(question, self.run.deadline, _MOST_SECONDS_OF_A_QUESTION, environment=_ENVIRONMENT)

    def _answer(self, *question: str) -> str:
        """Return the output of a program that has to succeed. Raises HookError."""
        answer = self._ask(*question)
        if answer.status != 0:
            raise HookError(" ".join(question), f"it failed: {answer.reason}", "see slurmctld's log")
        return answer.output

    def _node(self) -> answers.Node:
        """Return this node. Raises HookError."""
        chosen = self.run.options["node"] or os.environ.get("SLURMD_NODENAME")
        if chosen:
            return self._shown(chosen)
        host = socket.gethostname()
        names = (host, host.partition(".")[0])
        nodes = answers.parse_nodes(self._answer("scontrol", "show", "node"))
        found = [node for node in nodes if node.host in names] or [node for node in nodes if node.name in names]
        if len(found) != 1:
            raise HookError(host, f"Slurm has {len(found)} nodes on this host", "set the option node")
        return found[0]

    def _shown(self, name: str) -> answers.Node:
        found = answers.parse_nodes(self._answer("scontrol", "show", "node", name))
        if len(found) != 1 or found[0].name != name:
            raise HookError(name, "Slurm has no such node", "correct the option node")
        return found[0]

    def _update(self, name: str, state: str, reason: str | None = None) -> None:
        words = [f"NodeName={name}", f"State={state}", *([] if reason is None else [f"Reason={reason}"])]
        self._answer("scontrol", "update", *words)

    def _jobs(self, name: str) -> list[tuple[str, str]]:
        question = ("squeue", "--noheader", f"--nodelist={name}", f"--states={_ON_NODE}", "--format=%A|%T")
        try:
            return answers.parse_jobs(self._answer(*question))
        except ValueError as error:
            raise HookError("squeue", f"its answer is not usable: {error}") from None

    def _requeue(self, name: str) -> set[str]:
        """Requeue the jobs of the node that allow it, and return their numbers."""
        requeued = set()
        for number, state in self._jobs(name):
            if state == _COMPLETING or not answers.parse_may_requeue(
                self._ask("scontrol", "show", "job", number).output
            ):
                continue
            self.run.act(f"requeue job {number}", self._try, "scontrol", "requeue", number)
            requeued.add(number)
        return requeued

    def _send_signal(self, name: str, record: dict[str, Any], without: set[str]) -> None:
        """Send the signal to each job once, also if the preparation is repeated."""
        for number, state in self._jobs(name):
            if number in without or state == _COMPLETING or number in record["signalled"]:
                continue
            record["signalled"].append(number)
            self.run.remember(record)
            chosen = self.run.options["signal"]
            signal = ("scancel", "--full", f"--signal={chosen}", number)
            self.run.act(f"send {chosen} to job {number}", self._try, *signal)

    def _try(self, *command: str) -> None:
        """Run a command on a job, which may end at the same time; warn if it fails."""
        answer = self._ask(*command)
        if answer.status != 0:
            self.run.warn(f"{' '.join(command)}: {answer.reason}")

    def _wait_for_jobs(self, name: str) -> None:
        remaining: list[str] = []

        def is_idle() -> bool:
            remaining[:] = [number for number, _state in self._jobs(name)]
            return not remaining

        try:
            if self.run.deadline.retry_until(is_idle, self.run.options["wait"]):
                self.run.say(f"no job runs on {name}")
                return
            problem = f"jobs still run on it: {', '.join(remaining)}"
        except HookError as error:
            problem = f"it is unknown whether jobs still run on it: {error}"
        self.run.out_of_time(name, problem, "set a longer wait, or another on_timeout")
        if self.run.options["on_timeout"] == _REQUEUE:
            self._requeue(name)

    def _returned(self, name: str, reason: str, boot: str) -> answers.Node:
        """Wait until Slurm knows the slurmd of this boot, and return the node.

        Slurm does not expect the reboot of a node that is not drained: it becomes DOWN when a slurmd registers with a
        boot time behind the last RESUME.
        """
        rebooted = boot != boot_id()

        def has_returned(node: answers.Node) -> bool:
            if not node.is_drained or node.reason != reason:
                return True
            return not node.is_away and (not rebooted or self._is_registered(node))

        node = self._awaited(name, has_returned)
        if rebooted and node.is_drained:
            self.run.deadline.pause(_BOOT_TIME_VARIES)
            node = self._shown(name)
        return node

    def _resume(self, name: str) -> None:
        """Resume the node, and wait for the registration that slurmctld asks for. Raises HookError if it is DOWN."""
        self._update(name, "RESUME")
        node = self._awaited(name, lambda node: not node.is_away)
        if node.is_down:
            raise self._down(node)

    def _awaited(self, name: str, is_ready: Callable[[answers.Node], bool]) -> answers.Node:
        """Wait until a node is ready, and return it. Raises HookError."""
        found: list[answers.Node] = []

        def has_come() -> bool:
            found[:] = [self._shown(name)]
            return is_ready(found[0])

        if not self.run.deadline.retry_until(has_come):
            raise HookError(name, "it cannot be resumed: its slurmd has not registered at slurmctld", "start slurmd")
        return found[0]

    def _down(self, node: answers.Node) -> HookError:
        return HookError(node.name, f"it is {'+'.join(node.states)}, reason: {node.reason or 'none'}", "resume it")

    def _is_registered(self, node: answers.Node) -> bool:
        """Return whether the slurmd of this host is the one that has registered last."""
        started = answers.parse_slurmd_started(self._ask("scontrol", "show", "slurmd").output)
        return started is not None and node.started is not None and node.started >= started - _TOLERANCE


HOOK = Slurm
