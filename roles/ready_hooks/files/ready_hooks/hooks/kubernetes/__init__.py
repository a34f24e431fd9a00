# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Cordons and drains this node of a Kubernetes cluster, and uncordons it again."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from typing import Any

from ready_hooks.core import arguments, commands, report
from ready_hooks.core.arguments import Option
from ready_hooks.core.boot import boot_id
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import CONTINUE, FAIL, INFO, WARNING, Finding, RecordingHook, Run
from ready_hooks.core.options import parse_integer
from ready_hooks.core.secret import secret_problem
from ready_hooks.hooks.kubernetes.kubectl import Kubectl
from ready_hooks.hooks.kubernetes.node import Node

ANNOTATION = "azure-scheduled-events/cordoned-for"
# kubectl repeats a refused eviction every 5 s, and names the pods that remain only then; most
# seconds, and the share of the hook's time, that stay free for this
_AFTER_DRAIN, _SHARE_AFTER_DRAIN = 6.0, 0.2
_PERMISSIONS = (
    ("get", "nodes"),
    ("patch", "nodes"),
    ("list", "pods"),
    ("get", "pods"),
    ("create", "pods", "--subresource=eviction"),
    ("get", "daemonsets.apps"),
)


class Kubernetes(RecordingHook):
    """Cordon, drain, uncordon.

    The record has the node, and whether this hook has cordoned it. The annotation of the node
    shows operators why it is cordoned; the hook uncordons only a node that still has it.
    """

    name = "kubernetes"
    summary = "Cordons and drains this node of a Kubernetes cluster by kubectl, and uncordons it again."
    options = (
        Option("kubeconfig", arguments.path, "file with the access to the cluster", required=True),
        Option("context", arguments.text, "context in this file; by default its current one"),
        Option("node", arguments.text, "name of this node; by default the host name in lower case"),
        Option("kubectl", arguments.text, "the program", "kubectl"),
        Option("drain_timeout", arguments.seconds, "seconds for the drain; by default all that the hook has"),
        Option("on_timeout", arguments.one_of(FAIL, CONTINUE), "after this time: fail or continue", FAIL),
        Option("grace_period", parse_integer, "seconds for the end of a pod; by default those of the pod"),
        Option("pod_selector", arguments.text, "labels of the pods to evict; by default all"),
        Option("delete_emptydir_data", arguments.boolean, "evict pods with emptyDir, whose data is lost", False),
        Option("force", arguments.boolean, "evict pods without a controller, which nothing starts again", False),
        Option("wait_ready", arguments.seconds, "seconds that recover waits until the node is ready; 0: none", 300.0),
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._kubectl = Kubectl(run.options, run.deadline)
        self._name: str = run.options["node"] or socket.gethostname().lower()

    def check(self) -> Iterator[Finding]:
        commands.require(self.run.options["kubectl"], "install kubectl")
        problem = secret_problem(self.run.options["kubeconfig"])
        if problem is not None:
            yield Finding(WARNING, f"{self.run.options['kubeconfig']}: {problem}")
        node = self._node(self._name)
        refused = [" ".join(words) for words in _PERMISSIONS if not self._kubectl.may(*words)]
        if refused:
            raise HookError(node.name, f"the user of the kubeconfig may not: {', '.join(refused)}")
        pods = self._kubectl.planned(node.name)
        state = "cordoned" if node.is_cordoned else "schedulable"
        yield Finding(INFO, f"{node.name}: {state}; a drain would evict {len(pods)} pods")

    def prepare(self) -> None:
        node = self._node(self._name)
        record = self.run.preparation_of("node", node.name)
        if not node.is_cordoned:
            self._cordon(node)
        elif record is None and ANNOTATION in node.annotations:
            self.run.say(f"{node.name} is cordoned by this hook, whose record is lost; recover uncordons it")
            self.run.remember(_record(node, True))
        elif record is None:
            self.run.say(f"{node.name} is cordoned already; recover leaves it so")
        self._drain(node.name)

    def undo(self, record: dict[str, Any]) -> None:
        node = self._node_when_ready(record["node"], record["reports_boot"])
        if record["cordoned"] and ANNOTATION not in node.annotations:
            self.run.say(f"an operator has removed {ANNOTATION} from {node.name}, and keeps it as it is")
        elif record["cordoned"]:
            self.run.act(f"uncordon {node.name}", self._kubectl.uncordon, node.name)
        if ANNOTATION in node.annotations:
            self.run.act(f"remove {ANNOTATION}", self._kubectl.annotate, node.name, ANNOTATION, None)

    def _node(self, name: str) -> Node:
        """Return the node of this name. Raises HookError."""
        node = self._kubectl.node(name)
        if node is None:
            raise HookError(name, "the cluster has no such node", "set node")
        return node

    def _cordon(self, node: Node) -> None:
        """Annotate the node and cordon it. The record says that it is cordoned only after the annotation."""
        event = self.run.event
        reason = report.one_line(f"{event.event_type} {event.event_id}".strip() or "maintenance")[:200]
        self.run.remember(_record(node, False))
        self.run.act(f"annotate {node.name}: {reason}", self._kubectl.annotate, node.name, ANNOTATION, reason)
        self.run.remember(_record(node, True))
        self.run.act(f"cordon {node.name}", self._kubectl.cordon, node.name)

    def _drain(self, name: str) -> None:
        pods = self._kubectl.planned(name)
        left, most = self.run.deadline.left(), self.run.options["drain_timeout"]
        seconds = min(left - min(_AFTER_DRAIN, left * _SHARE_AFTER_DRAIN), math.inf if most is None else most)
        try:
            if pods:
                self.run.act(f"evict {', '.join(pods)}, within {max(1, int(seconds))} s", self._evict, name, seconds)
            elif not self.run.dry_run:
                self._evict(name, seconds)
        except OutOfTime as error:
            if self.run.options["on_timeout"] == FAIL:
                raise
            self.run.warn(f"{error}; going on because of on_timeout")

    def _evict(self, name: str, seconds: float) -> None:
        for line in self._kubectl.drain(name, seconds):
            self.run.say(line)

    def _node_when_ready(self, name: str, own_boot: bool) -> Node:
        """Return the node when it is ready, in this boot. Raises HookError."""
        found: list[Node] = []

        def is_ready() -> bool:
            found[:] = [self._node(name)]
            return found[0].is_ready and (not own_boot or found[0].boot_id == boot_id())

        most = 0 if self.run.dry_run else self.run.options["wait_ready"]
        if not self.run.deadline.retry_until(is_ready, most, interval=2.0) and most > 0:
            problem = "its kubelet has not reported since the boot" if found[0].is_ready else "it is not ready"
            raise HookError(name, f"{problem}; it stays cordoned")
        return found[0]


def _record(node: Node, cordoned: bool) -> dict[str, Any]:
    """Return the record; `reports_boot` means that the kubelet of the node runs on this host."""
    return {"node": node.name, "cordoned": cordoned, "reports_boot": node.boot_id != "" and node.boot_id == boot_id()}


HOOK = Kubernetes
