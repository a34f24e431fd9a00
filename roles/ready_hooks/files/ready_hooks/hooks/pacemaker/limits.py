# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The resources that a Pacemaker cluster would lose with a node in standby."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ready_hooks.hooks.pacemaker.state import Cluster, Node, Resource, Votes

# agents that approve events of Azure by themselves
_AZURE_AGENTS = ("azure-events", "azure-events-az")


def reasons_against_standby(cluster: Cluster, name: str, votes: Votes | None) -> list[str]:
    """Return why the cluster would not keep its services without this node; see also `lost_services`."""
    return [*_about_cluster(cluster), *_about_node(cluster, name), *_about_votes(cluster, votes)]


def _about_cluster(cluster: Cluster) -> Iterator[str]:
    if not cluster.has_controller:
        yield "the cluster has no designated controller"
    elif not cluster.quorum:
        yield "the cluster has no quorum"
    if cluster.maintenance:
        yield "the cluster is in maintenance mode"
    for node in cluster.nodes.values():
        if node.unclean:
            yield f"node {node.name} is unclean"


def _about_node(cluster: Cluster, name: str) -> Iterator[str]:
    if cluster.nodes[name].maintenance:
        yield "the node is in maintenance mode"
    for resource in cluster.on(name):
        if not resource.managed and not cluster.maintenance:
            yield f"resource {resource.name} is unmanaged"
        elif resource.blocked:
            yield f"resource {resource.name} is blocked by a failure"
    if cluster.on(name) and not any(_can_run(node) for node in cluster.nodes.values() if node.name != name):
        yield "there is no other node that is online and not in standby"


def _about_votes(cluster: Cluster, votes: Votes | None) -> Iterator[str]:
    if votes is None or votes.survives_alone or cluster.ignores_quorum:
        return
    left = votes.total - votes.own
    if left < votes.needed:
        yield f"the cluster loses quorum with this node: {left} votes are left, and {votes.needed} are needed"


def lost_services(before: Sequence[Resource], after: Sequence[Resource], node: str) -> list[str]:
    """Return which services of a node do not run anywhere afterwards; fencing devices do not count."""
    active = {resource.name for resource in after if resource.active}
    promoted = {resource.name for resource in after if resource.active and resource.promoted}
    lost = []
    for resource in before:
        if not resource.active or node not in resource.nodes or resource.agent.startswith("stonith:"):
            continue
        if resource.name not in active:
            lost.append(f"resource {resource.name} cannot run on another node")
        elif resource.promoted and resource.name not in promoted:
            lost.append(f"resource {resource.name} cannot be promoted on another node")
    return lost


def rival_agents(cluster: Cluster) -> list[str]:
    """Return the names of the resources that approve events of Azure, too."""
    found = {each.name for each in cluster.resources if each.agent.rpartition(":")[2] in _AZURE_AGENTS}
    return sorted(found)


def _can_run(node: Node) -> bool:
    return node.online and not (node.standby or node.standby_onfail or node.maintenance or node.pending or node.unclean)
