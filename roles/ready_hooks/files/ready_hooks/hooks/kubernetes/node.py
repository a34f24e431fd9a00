# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A node, as the API server describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Node(NamedTuple):
    """A node; it is cordoned if it is unschedulable, and ready if its condition Ready is True.

    `boot_id` is that of the boot in which its kubelet has registered; "" if unknown.
    """

    name: str
    is_cordoned: bool
    is_ready: bool
    boot_id: str
    annotations: Mapping[str, str]


def parse_node(answer: str) -> Node:
    """Return the node in the output of `kubectl get node NAME --output=json`. Raises ValueError."""
    found = json.loads(answer)
    if not isinstance(found, dict) or found.get("kind") != "Node":
        raise ValueError("it is not a node")
    metadata, spec, status = (_mapping(found.get(name)) for name in ("metadata", "spec", "status"))
    conditions = [_mapping(each) for each in status.get("conditions") or ()]
    ready = [each.get("status") for each in conditions if each.get("type") == "Ready"]
    return Node(
        name=str(metadata.get("name", "")),
        is_cordoned=spec.get("unschedulable") is True,
        is_ready=ready == ["True"],
        boot_id=str(_mapping(status.get("nodeInfo")).get("bootID", "")),
        annotations=_mapping(metadata.get("annotations")),
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
