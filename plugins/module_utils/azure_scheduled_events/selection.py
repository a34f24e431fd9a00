# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The selection of events by the options that all frontends share."""

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
    """Conditions that a selected event meets, all of them. Letter case does not count.

    Attributes:
        event_ids: allowed ids; None allows all, an empty tuple none.
        types: allowed event types, in the same way.
        statuses: allowed statuses, in the same way.
        sources: allowed sources, in the same way.
        affects: "self" (the VM itself), "any", or names of VMs; the event affects at least one.
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
        """Return the selection of options that are known to be valid; :meth:`parse` checks them.

        Args:
            event_ids: ids, or None for all.
            types: event types, or None for all.
            statuses: statuses, or None for all.
            sources: sources, or None for all.
            affects: "self", "any", or names of VMs; None for "self".

        Returns:
            The selection.
        """
        named = [affects] if isinstance(affects, str) else list(affects or [SELF])
        folded = {name.casefold() for name in named}
        target: str | tuple[str, ...] = tuple(named)
        if ANY in folded:
            target = ANY
        elif folded == {SELF}:
            target = SELF
        # an empty list is often the result of a query that found nothing; it must not select all
        ids, kinds, states, origins = (
            None if values is None else tuple(values) for values in (event_ids, types, statuses, sources)
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
        """Whether :meth:`matches` needs this VM's name."""
        return self.affects == SELF or SELF in self.affects

    def matches(self, event: ScheduledEvent, own_name: str | None) -> bool:
        """Return True if the event is selected; raise OwnNameUnknown if that depends on an unknown name."""
        return (
            _allows(self.event_ids, event.event_id)
            and _allows(self.types, event.event_type)
            and _allows(self.statuses, event.status)
            and _allows(self.sources, event.source)
            and self._affected(event, own_name)
        )

    def pick(self, document: EventDocument, own_name: str | None) -> list[ScheduledEvent]:
        """Return the selected events of the document, in its order."""
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


def _allows(allowed: tuple[str, ...] | None, value: str | None) -> bool:
    return allowed is None or (value is not None and value.casefold() in {item.casefold() for item in allowed})


def _as_texts(name: str, value: Any) -> list[str]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in values:
        if not isinstance(item, str):
            raise ValueError(f"{name}: expected texts, not {item!r}")
    return values
