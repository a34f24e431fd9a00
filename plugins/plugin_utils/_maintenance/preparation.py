# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The preparation of a host by a run, and the events for which it counts."""

from __future__ import annotations

import typing as t

from ...module_utils.azure_scheduled_events.urgency import counts_for


class Preparation(t.NamedTuple):
    """A preparation, as the role records it in a fact.

    Attributes:
        at: when it ended, in ISO 8601, or None without a preparation that has succeeded.
        boot: the boot of the host in which it began, "" if unknown.
        types: the types of the events for which the host has prepared.
        why_not: why it failed, "" if it did not.
    """

    at: str | None = None
    boot: str = ""
    types: tuple[str, ...] = ()
    why_not: str = ""

    @classmethod
    def of_fact(cls, fact: t.Mapping[str, t.Any] | None) -> Preparation:
        """Return the preparation of the fact, which may be missing or empty.

        It counts for the types that the events had when it began, as far as the plan was for them or for worse ones.
        """
        known = fact or {}
        types = known.get("types") or ()
        planned = known.get("planned", types)
        return cls(
            known.get("at") or None,
            known.get("boot") or "",
            tuple(kind for kind in types if any(counts_for(done, kind) for done in planned)),
            known.get("why_not") or "",
        )

    def at_for(self, event_type: str) -> str | None:
        """Return when the host was prepared for an event of this type, or None: it was not."""
        return self.at if any(counts_for(done, event_type) for done in self.types) else None

    def was_in_another_boot(self, boot: str) -> bool:
        """Return True if the host is in another boot now; a system without an identity of boots is in none."""
        return bool(self.boot and boot) and self.boot != boot
