# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which VM this is: the name that events are compared with, kept in the journal for a start at which IMDS does not give it."""

from __future__ import annotations

from hook_runner.journal.journal import Journal
from hook_runner.lifecycle.runtime import Runtime

# names of the journal's notes
NAME, VM_ID, BOOT = "resource_name", "vm_id", "boot"


class Identification:
    """This VM's resource name, and whether the journal is this VM's.

    Args:
        runtime: gets this VM's name.
        journal: keeps what was found.
        boot: identifies this boot of the host.

    Attributes:
        is_confirmed: whether the journal is known to be this VM's, so that hooks may run for the
            events in it.
    """

    def __init__(self, runtime: Runtime, journal: Journal, boot: str) -> None:
        self._journal = journal
        self._boot = boot
        self._same_boot = bool(boot) and journal.noted(BOOT) == boot
        self._runtime = runtime
        noted = journal.noted(NAME)
        if runtime.own_name is None and noted and self._same_boot:
            runtime.own_name = noted
        # the disk of a VM that was cloned comes with another boot
        self.is_confirmed = self._same_boot or not noted

    def confirm(self, name: str, vm_id: str) -> str | None:
        """Take in what IMDS says of this VM; the name of the other VM where the journal is that one's.

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
        """IMDS does not say which VM this is: use what was noted. The name, where it is used from now on; else None."""
        noted = self._journal.noted(NAME)
        if self.is_confirmed or not noted:
            self.is_confirmed = True
            return None
        self.is_confirmed = True
        self._runtime.own_name = self._configured or noted
        return self._runtime.own_name

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
