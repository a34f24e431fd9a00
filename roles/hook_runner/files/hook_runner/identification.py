# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""This VM's resource name, with which events are compared, and whether the records are this VM's."""

from __future__ import annotations

from hook_runner.record_store import RecordStore, Vm


class Identification:
    """Finds this VM's name. The store keeps it for a start at which IMDS does not give it.

    Args:
        store: the records.
        configured: the name that the configuration gives, or "".
        boot: identifies this boot of the host.

    Attributes:
        own_name: "" until it is known, and the records are known to be this VM's: a clone of its disk has others.
    """

    def __init__(self, store: RecordStore, configured: str, boot: str) -> None:
        self._store, self._configured, self._boot = store, configured, boot
        self._is_same_boot = bool(boot) and store.vm.boot == boot
        self.own_name = store.vm.name if self._is_same_boot else ""

    def confirm(self, name: str, vm_id: str) -> str | None:
        """Take over the name and the vmId that IMDS gave; return the name of the other VM if the records are its own.

        1. If the store and IMDS both have a vmId, the records are another VM's when these differ.
        2. Otherwise they are another VM's when the store has a name, was not written in this boot, and has another
           name than this VM. The configured name counts before the one of IMDS, and letter case does not count.
        3. If they are this VM's, the name is used from now on and noted. Otherwise nothing changes.

        Call it once more when the store has become empty.
        """
        vm, name = self._store.vm, self._configured or name
        if vm.vm_id and vm_id:
            is_other = vm.vm_id.casefold() != vm_id.casefold()
        else:
            is_other = bool(vm.name) and not self._is_same_boot and vm.name.casefold() != name.casefold()
        if is_other:
            return vm.name
        self.own_name = name
        self._store.vm = Vm(name, vm_id or vm.vm_id, self._boot)
        self._store.records.has_changed = True
        return None

    def fall_back(self) -> bool:
        """Use the stored name, because IMDS does not give one; return whether it is used from now on."""
        if self.own_name or not self._store.vm.name:
            return False
        self.own_name = self._store.vm.name
        return True
