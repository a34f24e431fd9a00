# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""This VM's resource name, with which events are compared.

The journal stores it for a start at which IMDS does not give it.
"""

from __future__ import annotations

from hook_runner.journal.journal import Journal
from hook_runner.lifecycle.runtime import Runtime

# names of the journal's notes
NAME, VM_ID, BOOT = "resource_name", "vm_id", "boot"


class Identification:
    """Finds this VM's resource name, and whether the journal is this VM's. `boot` identifies this boot of the host.

    Attributes:
        is_confirmed: whether the journal is known to be this VM's; hooks run for the events in it
            only then.
    """

    def __init__(self, runtime: Runtime, journal: Journal, boot: str) -> None:
        self._journal = journal
        self._boot = boot
        self._same_boot = bool(boot) and journal.noted(BOOT) == boot
        self._runtime = runtime
        noted = journal.noted(NAME)
        if runtime.own_name is None and noted and self._same_boot:
            runtime.own_name = noted
        # a clone of this VM's disk has another boot
        self.is_confirmed = self._same_boot or not noted

    def confirm(self, name: str, vm_id: str) -> str | None:
        """Take over the name and the vmId that IMDS gave; return the name of the other VM if the journal is that one's.

        1. If the journal and IMDS both have a vmId, the journal is another VM's when these differ.
        2. Otherwise it is another VM's when it has a name, was not written in this boot, and has another name
           than this VM. The configured name counts before the one of IMDS, and letter case does not count.
        3. If the journal is this VM's, the name is used from now on and noted. Otherwise nothing changes.

        Call it once more when the journal has been replaced.
        """
        noted, noted_id = self._journal.noted(NAME), self._journal.noted(VM_ID)
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

        From now on the journal counts as this VM's. If it did before, or has no name, that is all; otherwise
        the configured name is used, or the stored one.
        """
        noted = self._journal.noted(NAME)
        if self.is_confirmed or not noted:
            self.is_confirmed = True
            return None
        self.is_confirmed = True
        self._runtime.own_name = self._configured or noted
        return self._runtime.own_name

    @property
    def vm_id(self) -> str:
        """This VM's vmId as IMDS gave it last, also to an earlier process; "" if it never did."""
        return self._journal.noted(VM_ID)

    @property
    def _configured(self) -> str:
        return self._runtime.settings.resource_name

    def _note(self, vm_id: str) -> None:
        self.is_confirmed = True
        self._journal.note(NAME, self._runtime.own_name or "")
        self._journal.note(BOOT, self._boot)
        if vm_id:
            self._journal.note(VM_ID, vm_id)


def _same(one: str, two: str) -> bool:
    return one.casefold() == two.casefold()
