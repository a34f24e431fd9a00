# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""This VM's resource name, with which events are compared.

The store keeps it for a start at which IMDS does not give it.
"""

from __future__ import annotations

from hook_runner.lifecycle.runtime import Runtime
from hook_runner.record_store import RecordStore

# names of values in the store
NAME, VM_ID, BOOT = "resource_name", "vm_id", "boot"


class Identification:
    """Finds this VM's resource name, and whether the records are this VM's. `boot` identifies this boot of the host.

    Attributes:
        is_confirmed: whether the records are known to be this VM's; hooks run for their events only then.
    """

    def __init__(self, runtime: Runtime, store: RecordStore, boot: str) -> None:
        self._store = store
        self._boot = boot
        self._same_boot = bool(boot) and store.noted(BOOT, str) == boot
        self._runtime = runtime
        noted = store.noted(NAME, str)
        if runtime.own_name is None and noted and self._same_boot:
            runtime.own_name = noted
        # a clone of this VM's disk has another boot
        self.is_confirmed = self._same_boot or not noted

    def confirm(self, name: str, vm_id: str) -> str | None:
        """Take over the name and the vmId that IMDS gave; return the name of the other VM if the records are its own.

        1. If the store and IMDS both have a vmId, the records are another VM's when these differ.
        2. Otherwise they are another VM's when the store has a name, was not written in this boot, and has another
           name than this VM. The configured name counts before the one of IMDS, and letter case does not count.
        3. If they are this VM's, the name is used from now on and noted. Otherwise nothing changes.

        Call it once more when the store has become empty.
        """
        noted, noted_id = self._store.noted(NAME, str) or "", self._store.noted(VM_ID, str)
        if noted_id and vm_id:
            is_other = not _same(noted_id, vm_id)
        else:
            is_other = bool(noted) and not self._same_boot and not _same(noted, self._configured or name)
        if is_other:
            return noted
        self._runtime.own_name = self._configured or name
        self._note(vm_id)
        return None

    def fall_back(self) -> str | None:
        """Use the stored name, because IMDS does not give one; return the name if it is used from now on, or None.

        From now on the records count as this VM's. If they did before, or the store has no name, that is all; otherwise
        the configured name is used, or the stored one.
        """
        noted = self._store.noted(NAME, str)
        if self.is_confirmed or not noted:
            self.is_confirmed = True
            return None
        self.is_confirmed = True
        self._runtime.own_name = self._configured or noted
        return self._runtime.own_name

    @property
    def vm_id(self) -> str:
        """This VM's vmId as IMDS gave it last, also to an earlier process; "" if it never did."""
        return self._store.noted(VM_ID, str) or ""

    @property
    def _configured(self) -> str:
        return self._runtime.settings.resource_name

    def _note(self, vm_id: str) -> None:
        self.is_confirmed = True
        self._store.note(NAME, self._runtime.own_name)
        self._store.note(BOOT, self._boot)
        if vm_id:
            self._store.note(VM_ID, vm_id)


def _same(one: str, two: str) -> bool:
    return one.casefold() == two.casefold()
