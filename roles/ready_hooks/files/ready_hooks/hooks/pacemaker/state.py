# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The state of a Pacemaker cluster in the output of its programs."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree

_PROMOTED = ("Promoted", "Master")
# crm_mon shows a resource whose stop has not ended as inactive, and without its node
_LEAVING = ("Stopping", "Demoting", "Migrating")
_TRUE = ("on", "true", "yes", "y", "1")


class Node(NamedTuple):
    """A node; the attributes are those of crm_mon."""

    name: str
    online: bool
    standby: bool
    standby_onfail: bool
    maintenance: bool
    pending: bool
    unclean: bool


class Resource(NamedTuple):
    """A resource, or one instance of a clone.

    Attributes:
        name: without the number of the instance.
        agent: such as ocf:heartbeat:IPaddr2.
        promoted: whether this instance has the promoted role.
        leaving: whether it stops now.
        active, managed, blocked: as in crm_mon.
        nodes: names of the nodes on which it is active.
    """

    name: str
    agent: str
    promoted: bool
    leaving: bool
    active: bool
    managed: bool
    blocked: bool
    nodes: tuple[str, ...]


class Cluster(NamedTuple):
    """The state of a cluster.

    Attributes:
        resources: instances, in the order of crm_mon.
        has_controller: whether the cluster has elected its designated controller.
        quorum: whether this partition has quorum.
        maintenance: whether the whole cluster is in maintenance mode.
        ignores_quorum: whether resources keep running without quorum.
    """

    nodes: dict[str, Node]
    resources: tuple[Resource, ...]
    has_controller: bool
    quorum: bool
    maintenance: bool
    ignores_quorum: bool

    def on(self, node: str) -> list[Resource]:
        """Return the resources that are active on a node."""
        return [resource for resource in self.resources if resource.active and node in resource.nodes]

    def remaining_on(self, node: str) -> list[Resource]:
        """Return the resources that are active on a node, and those that stop on it or on an unknown node."""
        return [
            resource
            for resource in self.resources
            if (resource.active and node in resource.nodes)
            or (resource.leaving and (not resource.nodes or node in resource.nodes))
        ]


class Votes(NamedTuple):
    """The votes of Corosync: those present, those of this node, those needed; whether few are enough."""

    total: int
    own: int
    needed: int
    survives_alone: bool


def parse_cluster(text: str) -> Cluster | None:
    """Return the state in the output of `crm_mon --output-as=xml`, or None if it has no nodes yet."""
    root = _parsed(text)
    nodes = None if root is None else root.find("nodes")
    if root is None or nodes is None:
        return None
    controller, settings = root.find("summary/current_dc"), root.find("summary/cluster_options")
    return Cluster(
        {node.name: node for node in map(_node, nodes.findall("node"))},
        tuple(map(_resource, root.iterfind("resources//resource"))),
        _is_true(controller, "present"),
        _is_true(controller, "with_quorum"),
        _is_true(settings, "maintenance-mode"),
        settings is not None and settings.get("no-quorum-policy") == "ignore",
    )


def parse_simulated(text: str) -> tuple[Resource, ...] | None:
    """Return the resources at the end of `crm_simulate --simulate --output-as=xml`; None without them."""
    root = _parsed(text)
    if root is None or root.find("revised_cluster_status") is None:
        return None
    return tuple(map(_resource, root.iterfind("revised_cluster_status/resources//resource")))


def parse_votes(text: str) -> Votes | None:
    """Return the votes in the output of `corosync-quorumtool -s`, or None if they are not there."""
    numbers = {name: int(number) for name, number in re.findall(r"^(Total votes|Quorum):\s+(\d+)", text, re.MULTILINE)}
    own = re.search(r"^\s*\S+\s+(\d+)\s.*\(local\)\s*$", text, re.MULTILINE)
    flags = re.search(r"^Flags:(.*)$", text, re.MULTILINE)
    if len(numbers) < 2 or own is None:
        return None
    enough = set(flags[1].split() if flags else ()) & {"2Node", "LastManStanding"}
    return Votes(numbers["Total votes"], int(own[1]), numbers["Quorum"], bool(enough))


def parse_standby(configuration: str, node: str) -> bool | None:
    """Return whether the output of `cibadmin --query` has this node in standby; None without the node.

    Only a standby with lifetime forever is in the configuration; one with lifetime reboot is not.
    """
    root = _parsed(configuration)
    element = None if root is None else _configured(root, node)
    if element is None:
        return None
    return any(pair.get("value", "").lower() in _TRUE for pair in _standby_pairs(element))


def with_standby(configuration: str, node: str) -> str:
    """Return the configuration of `cibadmin --query` with this node in standby. Raises ValueError."""
    root = _parsed(configuration)
    element = None if root is None else _configured(root, node)
    if root is None or element is None:
        raise ValueError(f"it has no node {node}")
    pairs = _standby_pairs(element)
    if not pairs:
        attributes = ElementTree.SubElement(element, "instance_attributes", id="assumed-attributes")
        pairs = [ElementTree.SubElement(attributes, "nvpair", id="assumed-standby", name="standby")]
    for pair in pairs:
        pair.set("value", "on")
    return ElementTree.tostring(root, encoding="unicode")


def _configured(root: ElementTree.Element, node: str) -> ElementTree.Element | None:
    return next((each for each in root.iterfind("configuration/nodes/node") if each.get("uname") == node), None)


def _standby_pairs(node: ElementTree.Element) -> list[ElementTree.Element]:
    return [pair for pair in node.iterfind("instance_attributes/nvpair") if pair.get("name") == "standby"]


def _node(element: ElementTree.Element) -> Node:
    return Node(
        element.get("name", ""),
        _is_true(element, "online"),
        _is_true(element, "standby"),
        _is_true(element, "standby_onfail"),
        _is_true(element, "maintenance"),
        _is_true(element, "pending"),
        _is_true(element, "unclean"),
    )


def _resource(element: ElementTree.Element) -> Resource:
    return Resource(
        element.get("id", "").partition(":")[0],
        element.get("resource_agent", ""),
        element.get("role", "") in _PROMOTED,
        element.get("role", "") in _LEAVING,
        _is_true(element, "active"),
        _is_true(element, "managed"),
        _is_true(element, "blocked"),
        tuple(node.get("name", "") for node in element.findall("node")),
    )


def _is_true(element: ElementTree.Element | None, attribute: str) -> bool:
    return element is not None and element.get(attribute) == "true"


def _parsed(text: str) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None
