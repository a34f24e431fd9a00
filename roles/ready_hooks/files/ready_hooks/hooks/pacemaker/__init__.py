# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The hook pacemaker: standby of this node by pcs, crm or crm_standby."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ready_hooks.core import arguments, commands
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import CONTINUE, ERROR, FAIL, INFO, WARNING, Finding, RecordingHook
from ready_hooks.hooks.pacemaker import limits, state

# Each writes the attribute with lifetime forever, so that the node stays in standby over a reboot.
_STANDBY = {
    "pcs": ("pcs", "node", "standby"),
    "crm": ("crm", "node", "standby"),
    "crm_standby": ("crm_standby", "--lifetime", "forever", "--update", "on", "--node"),
}
_ONLINE = {
    "pcs": ("pcs", "node", "unstandby"),
    "crm": ("crm", "node", "online"),
    "crm_standby": ("crm_standby", "--lifetime", "forever", "--delete", "--node"),
}
_AUTO = "auto"
_COLOUR = "\x1b\\[[0-9;]*m"
_MOST_SECONDS_TO_SHOW = 5.0
_MOST_SECONDS_OF_A_QUESTION = 20.0


class Pacemaker(RecordingHook):
    """Move the resources of this node to other nodes.

    The record has the name of the node that was put in standby. There is no record for a node that
    was in standby before.
    """

    name = "pacemaker"
    summary = "Puts this node of a Pacemaker cluster in standby, and takes it out again."
    options = (
        Option("node", arguments.text, "name of this node in the cluster (default: that of crm_node -n)"),
        Option(
            "tool", arguments.one_of(_AUTO, *_STANDBY), "pcs, crm, crm_standby, or auto: the first one found", _AUTO
        ),
        Option(
            "wait", arguments.seconds, "seconds for the resources to leave the node (default: all that the hook has)"
        ),
        Option("on_timeout", arguments.one_of(FAIL, CONTINUE), "fail or continue if resources remain", FAIL),
        Option(
            "stable_timeout", arguments.seconds, "seconds for the cluster to end its actions; 0 does not wait", 60.0
        ),
        Option("force", arguments.boolean, "put in standby although services of the cluster would stop", False),
    )

    def check(self) -> Iterator[Finding]:
        for program in ("crm_mon", "crm_node", "cibadmin"):
            commands.require(program, "install pacemaker-cli-utils")
        tool, name = self._tool(), self._node()
        cluster = self._cluster_with(name)
        node = cluster.nodes[name]
        yield Finding(INFO, f"{name}: {'in standby already' if node.standby else 'not in standby'}, changed by {tool}")
        if tool == "crm" and self._ask("getent", "hosts", name).status != 0:
            yield Finding(ERROR, f"{name}: crm does nothing for a name without address; add it to /etc/hosts")
        for reason in [] if node.standby else self._reasons_against(cluster, name):
            yield Finding(WARNING, f"{name}: would not be put in standby now: {reason}")
        for rival in limits.rival_agents(cluster):
            yield Finding(WARNING, f"{rival}: this resource approves events, too; use it or this hook, not both")
        if commands.found("systemctl") is not None:
            enabled = commands.run(["systemctl", "is-enabled", "pacemaker.service"], self.run.deadline).output.strip()
            if enabled != "enabled":
                yield Finding(WARNING, f"pacemaker.service: {enabled or 'unknown'}; after a reboot start it by hand")

    def prepare(self) -> None:
        name = self._node()
        record = self.run.preparation_of("node", name)
        cluster = self._cluster_with(name)
        if cluster.nodes[name].standby:
            self.run.say(f"{name} is in standby already")
        else:
            reasons = self._reasons_against(cluster, name)
            if reasons and not self.run.options["force"]:
                raise HookError(name, "not put in standby: " + ", ".join(reasons), "correct this, or set force")
            for reason in reasons:
                self.run.warn(f"{name}: {reason}")
            if record is None:
                self.run.remember({"node": name})
            self.run.act(f"put {name} in standby", self._set, name, True)
        if not self.run.dry_run:
            self._wait_for_move(name)

    def undo(self, record: dict[str, Any]) -> None:
        name = str(record["node"])
        if not self.run.dry_run:
            self._wait_until_joined(name)
        if not self._is_standby(name):
            self.run.say(f"{name} is out of standby already")
            return
        self.run.act(f"take {name} out of standby", self._set, name, False)
        if not self.run.dry_run:
            self._wait_until_stable()

    def _reasons_against(self, cluster: state.Cluster, name: str) -> list[str]:
        """Return why the cluster would not keep its services without this node."""
        votes = None
        if commands.found("corosync-quorumtool") is not None:
            votes = state.parse_votes(self._ask("corosync-quorumtool", "-s").output)
        reasons = limits.reasons_against_standby(cluster, name, votes)
        return reasons or self._lost(cluster, name)

    def _lost(self, cluster: state.Cluster, name: str) -> list[str]:
        """Let the scheduler of the cluster compute where the resources would run."""
        try:
            assumed = state.with_standby(self._configuration(), name)
        except ValueError as error:
            raise HookError("cibadmin", f"the configuration is not usable: {error}") from None
        question = ["crm_simulate", "--xml-pipe", "--simulate", "--output-as=xml"]
        answer = commands.run(question, self.run.deadline, _MOST_SECONDS_OF_A_QUESTION, given=assumed)
        after = state.parse_simulated(answer.output)
        if after is None:
            self.run.warn(f"crm_simulate: it is unknown where the resources would run: {answer.reason}")
            return []
        return limits.lost_services(cluster.resources, after, name)

    def _tool(self) -> str:
        chosen = str(self.run.options["tool"])
        for tool in _STANDBY if chosen == _AUTO else (chosen,):
            if commands.found(tool) is not None:
                return tool
        raise HookError(chosen, "there is no such program", f"install one of {', '.join(_STANDBY)}, or correct tool")

    def _node(self) -> str:
        if self.run.options["node"] is not None:
            return str(self.run.options["node"])
        answer = self._ask("crm_node", "--name")
        if answer.status != 0 or not answer.output.strip():
            raise HookError("crm_node", f"the name of this node is unknown: {answer.reason}", "start Pacemaker")
        return answer.output.strip()

    def _ask(self, *question: str) -> commands.Result:
        return commands.run(question, self.run.deadline, _MOST_SECONDS_OF_A_QUESTION)

    def _cluster_with(self, name: str) -> state.Cluster:
        """Return the state of the cluster, which has this node. Raises HookError."""
        cluster = state.parse_cluster(self._ask("crm_mon", "--output-as=xml").output)
        if cluster is None:
            raise HookError("crm_mon", "the cluster does not run on this node", "start it")
        if name not in cluster.nodes:
            raise HookError(name, "the cluster has no such node", f"set node to one of {', '.join(cluster.nodes)}")
        return cluster

    def _configuration(self) -> str:
        """Return the configuration of the cluster. Raises HookError."""
        return commands.must_run(["cibadmin", "--query"], self.run.deadline, _MOST_SECONDS_OF_A_QUESTION)

    def _is_standby(self, name: str) -> bool:
        """Return whether the configuration has the node in standby, with lifetime forever. Raises HookError."""
        is_standby = state.parse_standby(self._configuration(), name)
        if is_standby is None:
            raise HookError("cibadmin", f"it has not shown the configuration of node {name}", "see crm_mon")
        return is_standby

    def _set(self, name: str, standby: bool) -> None:
        """Change the configuration. crm exits with 0 also after a failure; therefore the effect counts."""
        command = [*(_STANDBY if standby else _ONLINE)[self._tool()], name]
        answer = commands.run(command, self.run.deadline)

        def is_shown() -> bool:
            try:
                return self._is_standby(name) == standby
            except HookError:
                return False  # the cluster may answer the next question

        shown = self.run.deadline.wait_until(is_shown, _MOST_SECONDS_TO_SHOW)
        if answer.status != 0 or not shown:
            reason = re.sub(_COLOUR, "", answer.reason)
            raise HookError(" ".join(command), f"it had no effect, with status {answer.status}: {reason}")

    def _wait_for_move(self, name: str) -> None:
        """Wait until no managed resource is active on the node, and the cluster has ended its actions."""
        remaining: list[str] = []

        def is_empty() -> bool:
            left = self._cluster_with(name).remaining_on(name)
            remaining[:] = [each.name for each in left if each.managed or not self.run.options["force"]]
            return not remaining

        try:
            has_moved = self.run.deadline.retry_until(is_empty, self.run.options["wait"])
            problem = f"resources still run on it: {', '.join(remaining)}"
        except HookError as error:
            has_moved = False
            problem = f"it is unknown whether resources still run on it: {error}"
        if has_moved:
            self.run.say(f"no resource runs on {name}")
            self._wait_until_stable()
        else:
            self.run.out_of_time(name, problem, "see crm_mon for the reason, or set a longer wait")

    def _wait_until_joined(self, name: str) -> None:
        """Wait until this node is in the cluster, which it may have left for a reboot.

        A change in a partition without quorum is lost when that joins the others.

        Raises:
            HookError: it has not joined in time.
        """

        def has_joined() -> bool:
            cluster = self._cluster_with(name)
            node = cluster.nodes[name]
            has_quorum = cluster.quorum or cluster.ignores_quorum
            return has_quorum and cluster.has_controller and node.online and not node.pending

        if not self.run.deadline.retry_until(has_joined):
            problem = "the node has not joined a cluster with quorum"
            raise HookError(name, problem, "start the cluster on this node, or see crm_mon")

    def _wait_until_stable(self) -> None:
        """Wait until the cluster has ended its actions; warn if it has not."""
        most = int(self.run.deadline.wait_limit(self.run.options["stable_timeout"]))
        if most < 1:
            return
        try:
            answer = commands.run(["crm_resource", "--wait", f"--timeout={most}s"], self.run.deadline)
        except OutOfTime as error:
            self.run.warn(str(error))
            return
        if answer.status != 0:
            self.run.warn(f"crm_resource: the cluster is still busy: {answer.reason}")


HOOK = Pacemaker
