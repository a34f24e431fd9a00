# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The selection of events by the options that all frontends share."""

from __future__ import annotations

from functools import partial
from typing import Any, Mapping, NamedTuple

from .document import EVENT_SOURCES, EVENT_STATUSES, EventDocument, ScheduledEvent
from .event_types import advises
from .identity import affects
from .options import Parser, parse_choice, parse_event_type, parse_option, parse_texts, type_warnings

# the VM itself, and each VM
SELF = ("self",)
ANY = ("any",)
# of the values that are not any text
_PARSERS: Mapping[str, Parser] = {
    "types": parse_event_type,
    "statuses": partial(parse_choice, known=EVENT_STATUSES, kind="status"),
    "sources": partial(parse_choice, known=EVENT_SOURCES, kind="source"),
}


class Selection(NamedTuple):
    """Conditions that a selected event meets, all of them. Letter case does not count.

    An event that only advises is selected if its type or its id is named, or if ``advice`` is set.

    Attributes:
        event_ids: allowed ids; None allows all, an empty tuple none.
        types: allowed event types, in the same way.
        statuses: allowed statuses, in the same way.
        sources: allowed sources, in the same way.
        affects: SELF, ANY, or names of VMs, of which "self" may be one; the event affects at least one.
        advice: whether events that only advise are selected without being named: to show them, not to act on them.
    """

    event_ids: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None
    affects: tuple[str, ...] = SELF
    advice: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Selection:
        """Return the selection of options as users write them.

        The options are ``event_ids``, ``types``, ``statuses``, ``sources`` and ``affects``, each a text, a list of
        texts or None; an option that is missing counts as None, which selects all, but for ``affects`` "self".

        Raises:
            ValueError: a value is not a text, or is a misspelt type, status or source, which would select nothing.
        """
        # an empty list is often the result of a query that found nothing; it must not select all
        given: dict[str, Any] = {
            name: tuple(parse_option(name, value, parse_texts)) for name, value in options.items() if value is not None
        }
        for name, parse in _PARSERS.items():
            for value in given.get(name, ()):
                parse_option(name, value, parse)
        named = tuple(name.casefold() if name.casefold() in SELF + ANY else name for name in given.get("affects", ()))
        return cls(**given)._replace(affects=ANY if "any" in named else named or SELF)

    def warnings(self) -> list[str]:
        """Return a sentence for each type that is unknown; Azure may have introduced it."""
        return type_warnings("types", self.types or ())

    @property
    def needs_own_name(self) -> bool:
        """Whether :meth:`matches` needs this VM's name."""
        return "self" in self.affects

    def heeds(self, event_type: str) -> bool:
        """Return True unless the type only advises, and the selection names neither types nor ids."""
        return self.types is not None or self.event_ids is not None or not advises(event_type)

    def excluded_by(self, event: ScheduledEvent) -> tuple[str, str] | None:
        """Return the first attribute that excludes the event, with the event's value; None if none does.

        ``affects`` and ``advice`` do not count.
        """
        values = {
            "event_ids": event.event_id,
            "types": event.event_type,
            "statuses": event.status,
            "sources": event.source or "",
        }
        for name, value in values.items():
            allowed = getattr(self, name)
            if allowed is not None and value.casefold() not in {item.casefold() for item in allowed}:
                return name, value
        return None

    def matches(self, event: ScheduledEvent, own_name: str | None) -> bool:
        """Return True if the event is selected; raise OwnNameUnknown if that depends on an unknown name."""
        return (
            self.excluded_by(event) is None
            and (self.advice or self.heeds(event.event_type))
            and self._affected(event, own_name)
        )

    def may_match(self, event: ScheduledEvent, readable: bool, own_name: str | None) -> bool:
        """Return True if the event is selected, or may be because its VMs are not ``readable``."""
        return self.matches(event, own_name) if readable else self._replace(affects=ANY).matches(event, None)

    def pick(self, document: EventDocument, own_name: str | None) -> list[ScheduledEvent]:
        """Return the selected events of the document, in its order."""
        return [event for event in document.events if self.matches(event, own_name)]

    def _affected(self, event: ScheduledEvent, own_name: str | None) -> bool:
        if self.affects == ANY:
            return True
        return any(affects(event, own_name if name == "self" else name) for name in self.affects)
