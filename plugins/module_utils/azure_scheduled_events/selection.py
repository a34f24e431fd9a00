# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Which events of a document a caller means: the selection options that all frontends share."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

from .document import EVENT_SOURCES, EVENT_STATUSES, EVENT_TYPES, EventDocument, ScheduledEvent
from .identity import affects, is_same_vm
from .named_tuple import NamedTuple

SELF = "self"
ANY = "any"


class UnknownType(NamedTuple):
    """A selected event type that the helper does not know; Azure may have introduced it since.

    Attributes:
        given: the type as the caller wrote it.
        suggestion: the known type that is probably meant, or None.
        text: one sentence for the caller.
    """

    given: str
    suggestion: str | None
    text: str


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

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> tuple[Selection, list[UnknownType]]:
        """Read the selection options as users write them.

        Args:
            options: ``event_ids``, ``types``, ``statuses``, ``sources`` and ``affects``, each a text, a list of texts
                or None; an option that is missing counts as None.

        Returns:
            The selection, and the selected types that are unknown.

        Raises:
            ValueError: a value is not a text, or is a misspelt status or source, which would select nothing.
        """
        given = {name: _as_texts(name, value) for name, value in options.items() if value is not None}
        unknown = []
        for name, known in (("types", EVENT_TYPES), ("statuses", EVENT_STATUSES), ("sources", EVENT_SOURCES)):
            for value in given.get(name, ()):
                # imported when needed: Ansible compiles each file that a module imports in every run
                from .values import parse_choice, suggestion

                try:
                    parse_choice(value, known, "value")
                except ValueError as error:
                    if name != "types":
                        raise ValueError(f"{name}: {error}") from None
                    unknown.append(UnknownType(value, suggestion(value, known), f"types: {error}"))
        return cls.of(**given), unknown

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


def _as_texts(name: str, value: Any) -> list[str]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in values:
        if not isinstance(item, str):
            raise ValueError(f"{name}: expected texts, not {item!r}")
    return values
