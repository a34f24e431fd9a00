# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Runs kubectl for one node."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ready_hooks.core import commands
from ready_hooks.core.commands import Result
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.ownership import refuse_changeable
from ready_hooks.hooks.kubernetes.node import Node, parse_node

# seconds for one request; kubectl itself sets no limit
_REQUEST_SECONDS = 10
# kubectl repeats a refused eviction every 5 s, and notices its time-out only then
_EVICTION_PAUSE = 6.0
_PREFIX = "error: "


class Kubectl:
    """The command for one run, with the access that the options of the hook describe."""

    def __init__(self, options: Mapping[str, Any], deadline: Deadline) -> None:
        self._options, self._deadline = options, deadline
        access = [f"--kubeconfig={options['kubeconfig']}", f"--request-timeout={_REQUEST_SECONDS}s"]
        if options["context"] is not None:
            access.append(f"--context={options['context']}")
        self._command = [options["kubectl"], *access]

    def node(self, name: str) -> Node | None:
        """Return the node, or None if the cluster has no node of this name. Raises HookError."""
        answer = self._must_run("get", "node", "--output=json", "--ignore-not-found", "--", name)
        try:
            return parse_node(answer) if answer.strip() else None
        except ValueError as error:
            raise HookError(f"kubectl get node {name}", f"its answer is not usable: {error}") from None

    def cordon(self, name: str) -> None:
        """Make the node unschedulable. Raises HookError."""
        self._must_run("cordon", "--", name)

    def uncordon(self, name: str) -> None:
        """Make the node schedulable. Raises HookError."""
        self._must_run("uncordon", "--", name)

    def annotate(self, name: str, key: str, value: str | None) -> None:
        """Set an annotation of the node, or remove it. Raises HookError."""
        word = f"{key}-" if value is None else f"{key}={value}"
        self._must_run("annotate", "--overwrite", "node", "--", name, word)

    def drain(self, name: str, seconds: float) -> Sequence[str]:
        """Evict the pods of the node, wait for their end, and return the lines that kubectl printed.

        `seconds` are for all of it.

        Raises:
            OutOfTime: pods remain.
            HookError: kubectl refused, or failed.
        """
        limit = max(1, int(seconds))
        begin = time.monotonic()
        words = self._drain_words()
        try:
            result = self._run([*words, f"--timeout={limit}s", "--", name], limit + _EVICTION_PAUSE)
        except OutOfTime:
            raise OutOfTime(name, f"pods remain after {limit} s") from None
        if result.status == 0:
            return result.output.splitlines()
        # its exit status is the same for each error
        if time.monotonic() - begin >= limit:
            raise OutOfTime(name, f"pods remain after {limit} s: {_reason(result)}")
        raise HookError(name, f"kubectl drain failed: {_reason(result)}")

    def planned(self, name: str) -> list[str]:
        """Return NAMESPACE/NAME of the pods that a drain would evict. Raises HookError if it would be refused."""
        result = self._run([*self._drain_words(), "--dry-run=client", "--", name])
        if result.status != 0:
            raise HookError(name, f"kubectl drain would be refused: {_reason(result)}")
        return re.findall(r"^evicting pod (\S+)", result.output, re.MULTILINE)

    def may(self, *words: str) -> bool:
        """Return True if the user of the kubeconfig may do this: `may("patch", "nodes")`. Raises HookError."""
        result = self._run(["auth", "can-i", "--all-namespaces", *words])
        # a reason may follow: "no - RBAC: ..."
        answer = result.output.split(maxsplit=1)[:1]
        if answer not in (["yes"], ["no"]):
            raise HookError("kubectl auth can-i", _reason(result))
        return answer == ["yes"]

    def _drain_words(self) -> list[str]:
        given = self._options
        words = ["drain", "--ignore-daemonsets"]
        words += ["--delete-emptydir-data"] if given["delete_emptydir_data"] else []
        words += ["--force"] if given["force"] else []
        words += [f"--pod-selector={given['pod_selector']}"] if given["pod_selector"] is not None else []
        words += [f"--grace-period={given['grace_period']}"] if given["grace_period"] is not None else []
        return words

    def _must_run(self, *words: str) -> str:
        result = self._run(words)
        if result.status != 0:
            raise HookError(f"kubectl {words[0]}", _reason(result))
        return result.output

    def _run(self, words: Sequence[str], most: float = 3.0 * _REQUEST_SECONDS) -> Result:
        kubeconfig = self._options["kubeconfig"]
        try:
            # kubectl runs the programs that it names
            refuse_changeable(kubeconfig, "the kubeconfig")
        except OSError as error:
            raise HookError(kubeconfig, f"it cannot be read: {error.strerror}", "correct kubeconfig") from None
        return commands.run([*self._command, *words], self._deadline, most)


def _reason(result: Result) -> str:
    return result.reason[len(_PREFIX) :] if result.reason.startswith(_PREFIX) else result.reason
