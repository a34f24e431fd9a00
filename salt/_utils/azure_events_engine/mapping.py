# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Maps minions to VMs.

The name of a minion's VM comes from the first of these: the table in the master's configuration; a
pillar key; the minion id, if the minion reports that its VM has this name; the name that the minion
reported first. A reported name never takes a VM from another minion.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from azure_scheduled_events.identity import vm_key

TABLE = "table"
PILLAR = "pillar"
ID = "id"
OBSERVED = "observed"


class Names(NamedTuple):
    """The known names; immutable.

    Attributes:
        table, pillar: VM key by minion id, from the master's configuration and the pillar.
        accepted: ids of the minions that take part.
        observed: VM key by minion id, as the minion reported it first.
        claims: VM key by minion id, as the minion reports it now.
        claimants: minion ids by VM key, the inverse of claims.
        ids: minion id by VM key, for accepted minions without an entry in table or pillar.
        owners: minion id by VM key, where the minion is certain.
    """

    table: Mapping[str, str] = {}
    pillar: Mapping[str, str] = {}
    accepted: frozenset[str] = frozenset()
    observed: Mapping[str, str] = {}
    claims: Mapping[str, str] = {}
    claimants: Mapping[str, frozenset[str]] = {}
    ids: Mapping[str, str] = {}
    owners: Mapping[str, str] = {}

    def vm_of(self, minion: str) -> str | None:
        """Return the VM key of a minion, or None."""
        given = self._given(minion)
        if given is not None:
            return given
        vm = self.observed.get(minion)
        return vm if vm is not None and self.owners.get(vm) == minion else None

    def how(self, minion: str) -> str:
        """Return where the name of the minion's VM comes from, or ""."""
        if minion in self.table:
            return TABLE
        if minion in self.pillar:
            return PILLAR
        vm = self.vm_of(minion)
        if vm is None:
            return ""
        return ID if vm == vm_key(minion) else OBSERVED

    def minion_of(self, vm: str) -> str | None:
        """Return the minion of a VM, or None.

        A minion that never answered counts as the VM whose name is the minion id.
        """
        owner = self.owners.get(vm)
        if owner is not None:
            return owner
        minion = self.ids.get(vm)
        return minion if minion is not None and minion not in self.observed else None

    def rivals(self, vm: str) -> tuple[str, ...]:
        """Return the other minions that claim a VM whose minion is known by observation only."""
        owner = self.owners.get(vm)
        if owner is None or self.how(owner) != OBSERVED:
            return ()
        return tuple(sorted(self.claimants.get(vm, frozenset()) - {owner}))

    def complaint(self, minion: str) -> str:
        """Return why the name that the minion reports for its VM is not accepted, or ""."""
        claim = self.claims.get(minion)
        if claim is None or claim == self.vm_of(minion):
            return ""
        given = self._given(minion)
        if given is not None:
            return f"reports that its VM is {claim}, but the master's {self.how(minion)} has {given}"
        owner = self.minion_of(claim)
        if owner is not None and owner != minion:
            return f"reports that its VM is {claim}, which is the VM of minion {owner}"
        first = self.observed.get(minion)
        return f"reports that its VM is {claim}, but it first reported {first}"

    def nameless(self) -> tuple[str, ...]:
        """Return the accepted minions without a known VM.

        Each of them may be any VM without a minion.
        """
        return tuple(sorted(minion for minion in self.accepted if self.vm_of(minion) is None))

    def claim(self, minion: str, name: str) -> Names:
        """Return the names after a minion has reported the name of its VM."""
        vm = vm_key(name)
        before = self.claims.get(minion)
        changed = self
        if before != vm:
            claimants = {**self.claimants, vm: self.claimants.get(vm, frozenset()) | {minion}}
            if before is not None:
                claimants[before] = claimants[before] - {minion}
            changed = self._replace(
                claims={**self.claims, minion: vm},
                claimants={key: minions for key, minions in claimants.items() if minions},
            )
        if self._given(minion) is not None or minion in self.observed:
            return changed
        owner = self.minion_of(vm)
        if owner is not None and owner != minion:
            return changed
        return changed._replace(observed={**self.observed, minion: vm}, owners={**self.owners, vm: minion})

    def learn(self, table: Mapping[str, str], pillar: Mapping[str, str], accepted: frozenset[str]) -> Names:
        """Return the names with the master's present knowledge, without minions no longer accepted."""
        given = {minion: vm_key(name) for minion, name in {**pillar, **table}.items()}
        observed = {minion: vm for minion, vm in self.observed.items() if minion in accepted}
        claims = {minion: vm for minion, vm in self.claims.items() if minion in accepted}
        ids = {vm_key(minion): minion for minion in sorted(accepted, reverse=True) if minion not in given}
        owners = {vm: minion for minion, vm in sorted(given.items(), reverse=True) if minion in accepted}
        for minion, vm in observed.items():
            # unless it is the ID of another minion, which is silent or reports that name
            if minion not in given and (ids.get(vm, minion) == minion or observed.get(ids[vm], vm) != vm):
                owners.setdefault(vm, minion)
        return Names(
            table={minion: vm_key(name) for minion, name in table.items()},
            pillar={minion: vm_key(name) for minion, name in pillar.items() if minion not in table},
            accepted=accepted,
            observed=observed,
            claims=claims,
            claimants={
                vm: frozenset(minion for minion in minions if minion in accepted)
                for vm, minions in self.claimants.items()
            },
            ids=ids,
            owners=owners,
        )

    def _given(self, minion: str) -> str | None:
        return self.table.get(minion, self.pillar.get(minion))
