# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Which events of a document a caller means: the selection words that all doors understand."""

from __future__ import annotations

from typing import Iterable, Sequence

from .document import EventDocument, ScheduledEvent
from .identity import affects, is_same_vm
from .named_tuple import NamedTuple

SELF = "self"
ANY = "any"


class Selection(NamedTuple):
    """Words that an event has to meet, all of them. Letter case makes no difference.

    Attributes:
        event_ids, types, statuses, sources: allowed values; None allows all, an empty tuple none at
        all.
        affects: "self" (the VM that asks), "any", or names of VMs of which the event hits at least
            one.
    """

    event_ids: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None
    affects: str | tuple[str, ...] = SELF

    @classmethod
    def of(
        cls,
        event_ids: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        statuses: Iterable[str] | None = None,
        sources: Iterable[str] | None = None,
        affects: str | Sequence[str] | None = None,
    ) -> Selection:
        """A selection from options as users write them: lists or None, ``affects`` a word or a list of names."""
        named = [affects] if isinstance(affects, str) else list(affects or [SELF])
        words = {name.casefold() for name in named}
        target: str | tuple[str, ...] = tuple(named)
        if ANY in words:
            target = ANY
        elif words == {SELF}:
            target = SELF
        # an empty list comes from a question that found nothing: taken for "all" it would approve
        # what nobody meant
        ids, kinds, states, origins = (
            None if words is None else tuple(words) for words in (event_ids, types, statuses, sources)
        )
        return cls(ids, kinds, states, origins, target)

    @property
    def needs_own_name(self) -> bool:
        """Whether an answer depends on which VM asks."""
        return self.affects == SELF or SELF in self.affects

    def matches(self, event: ScheduledEvent, own_name: str | None) -> bool:
        """Whether the event is meant. Raises OwnNameUnknown where that depends on a name that is not known."""
        return (
            _allows(self.event_ids, event.event_id)
            and _allows(self.types, event.event_type)
            and _allows(self.statuses, event.status)
            and _allows(self.sources, event.source)
            and self._affected(event, own_name)
        )

    def pick(self, document: EventDocument, own_name: str | None) -> list[ScheduledEvent]:
        """The events of the document that are meant, in its order."""
        return [event for event in document.events if self.matches(event, own_name)]

    def _affected(self, event: ScheduledEvent, own_name: str | None) -> bool:
        if self.affects == ANY:
            return True
        names = (SELF,) if isinstance(self.affects, str) else self.affects
        return any(
            affects(event, own_name)
            if name.casefold() == SELF
            else any(is_same_vm(entry, name) for entry in event.resources)
            for name in names
        )


def _allows(words: tuple[str, ...] | None, value: str | None) -> bool:
    return words is None or (value is not None and value.casefold() in {word.casefold() for word in words})
