# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The documents of ``/metadata/instance`` (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..instance_members import MEMBERS
from ..scenario.groups import Group, Vm
from .defaults import compute_defaults, network_defaults
from .values import merge, shown, text


class InstanceDocuments:
    """The instance metadata of all VMs of ``groups``."""

    def __init__(self, groups: Iterable[Group]) -> None:
        groups = tuple(groups)
        self._vms: Mapping[str, tuple[Group, Vm]] = {vm.name: (group, vm) for group in groups for vm in group.vms}
        self._networks = network_defaults(groups)

    def document(self, vm_name: str, version: str) -> dict[str, Any]:
        """Return the document of a VM.

        Every member of the version is present, and all primitives are texts (reference 3.3).
        """
        group, vm = self._vms[vm_name]
        defaults: dict[str, Any] = {"network": self._networks[vm_name]}
        # a VM of the classic deployment model has the network alone (reference 3.3.6)
        members = {name: member for name, member in MEMBERS.items() if name == "network" or not group.is_classic}
        if "compute" in members:
            defaults["compute"] = compute_defaults(group, vm)
        merged = merge(merge(defaults, _both_tags(group.instance)), _both_tags(vm.instance))
        document: dict[str, Any] = shown(merged, members, version)
        return document


def _both_tags(instance: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``instance`` with ``tags`` made of ``tagsList``, or the reverse, if it has only one of them."""
    compute = instance.get("compute") or {}
    tags, tags_list = compute.get("tags"), compute.get("tagsList")
    if isinstance(tags, str) and tags_list is None:
        pairs = [each.partition(":") for each in tags.split(";") if each]
        tags_list = [{"name": name, "value": value} for name, _colon, value in pairs]
    elif tags is None and isinstance(tags_list, list) and all(isinstance(each, Mapping) for each in tags_list):
        tags = ";".join(f"{text(each.get('name'))}:{text(each.get('value'))}" for each in tags_list)
    else:
        return instance
    return {**instance, "compute": {**compute, "tags": tags, "tagsList": tags_list}}
