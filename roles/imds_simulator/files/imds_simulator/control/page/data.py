# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The data of the live page, and what has changed since it was computed last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile
from typing import Any, Callable, TypeVar

from ...scenario.knobs import Knobs
from ...server.clock import ManualClock
from ...server.engine import Engine
from ..state import event_state, fault_window

# the page shows so many of the newest ended events and lines
MAX_ENDED = 100
MAX_LINES = 200
# characters of a value in a line: the output of an impact command may be long
_MAX_TEXT = 300
_Section = dict[str, Any]
_Numbered = TypeVar("_Numbered")


class PageData:
    """The content of the page, as sections of items that have keys.

    ``update`` computes it again and returns the differences; ``whole`` returns all of it, as ``update`` left it.
    An item of a difference is None when it is gone. ``endpoints`` returns VM name -> URL; ``run`` is a text that
    differs between two starts of the simulator.
    """

    def __init__(self, engine: Engine, endpoints: Callable[[], Mapping[str, str]], run: str) -> None:
        self._engine = engine
        self._endpoints = endpoints
        self._run = run
        self._sections: dict[str, _Section] = {}
        self._requests: _Section = {}
        self._lines: list[dict[str, Any]] = []
        self._last_request = 0
        self._last_line = 0
        self._knobs: Knobs | None = None

    def update(self) -> dict[str, Any]:
        """Compute the data and return the sections that have changed, each with its changed items."""
        now, world = self._engine.settle(), self._engine.world
        sections: dict[str, _Section] = dict(self._sections)
        if world.knobs is not self._knobs:
            # a knob decides which VMs share a document
            self._knobs = world.knobs
            sections["vms"] = self._vms()
        sections["scopes"] = {
            scope.key: [scope.group, scope.incarnation, scope.enabled(now, world.rules)] for scope in world.scopes()
        }
        sections["events"] = self._events()
        sections["faults"] = self._faults(now)
        changes: dict[str, Any] = {
            name: changed for name, items in sections.items() if (changed := _changed(self._sections.get(name), items))
        }
        self._sections = sections
        if requests := self._new_requests():
            changes["requests"] = requests
        if lines := self._new_lines():
            changes["lines"] = lines
        return changes

    def whole(self) -> dict[str, Any]:
        """Return all data."""
        return {
            **self._sections,
            "requests": self._requests,
            "lines": self._lines,
            "run": self._run,
            "title": self._engine.scenario.title,
            "groups": {
                group.name: {"kind": group.kind, "vms": len(group.vms)} for group in self._engine.world.groups.values()
            },
        }

    def clock(self) -> dict[str, Any]:
        """Return the simulator's clock; ``real`` is the monotonic clock of requests, in seconds."""
        engine = self._engine
        return {
            "unix": engine.clock.now(),
            "real": time.monotonic(),
            "epoch": engine.world.epoch,
            "speed": engine.world.rules.speed,
            "manual": isinstance(engine.clock, ManualClock),
        }

    def _vms(self) -> _Section:
        endpoints, world = self._endpoints(), self._engine.world
        return {
            vm.name: {
                "group": vm.group,
                "address": vm.source or endpoints[vm.name].partition("://")[2],
                "resource_name": vm.resource_name,
                "zone": vm.zone,
                "fault_domain": vm.fault_domain,
                "scope": world.scope_for(vm).key,
            }
            for vm in world.vms.values()
        }

    def _events(self) -> _Section:
        world, known = self._engine.world, self._sections.get("events", {})
        newest = reversed(list(islice(reversed(world.ended), MAX_ENDED)))
        shown = {}
        for event in newest:
            # an event that has ended does not change any more
            old = known.get(str(event.number))
            shown[str(event.number)] = old if old is not None and old["status"] == event.status else event_state(event)
        shown.update((str(event.number), event_state(event)) for event in world.events)
        return shown

    def _faults(self, now: float) -> _Section:
        return {
            str(each.number): {
                **fault_window(each, now),
                "options": _fault_options(vars(each.fault.effect)),
                "seen": sum(each.seen.values()),
            }
            for each in self._engine.faults.all(now)
        }

    def _new_requests(self) -> _Section:
        """Return VM name -> its last request, for the VMs that have sent one since the last call."""
        newest: _Section = {}
        for entry in _after(self._last_request, reversed(self._engine.activity_log.requests), lambda each: each.number):
            self._last_request = max(self._last_request, entry.number)
            if entry.vm and entry.vm not in newest:
                newest[entry.vm] = [
                    round(entry.real, 2),
                    round(entry.moment, 2),
                    entry.method,
                    entry.route,
                    entry.status,
                    entry.fault,
                ]
        self._requests.update(newest)
        return newest

    def _new_lines(self) -> list[dict[str, Any]]:
        """Return the lines of the log since the last call, oldest first, at most MAX_LINES."""
        numbered = _after(self._last_line, reversed(self._engine.activity_log.lines), lambda each: each["number"])
        lines = [_line(each) for each in islice(numbered, MAX_LINES)][::-1]
        if lines:
            self._last_line = lines[-1]["number"]
            self._lines = [*self._lines, *lines][-MAX_LINES:]
        return lines


def _changed(old: _Section | None, new: _Section) -> _Section:
    """Return the items of ``new`` that differ from ``old``, and None for those that are gone."""
    if old is None or old is new:
        return {} if old is new else new
    gone: _Section = {key: None for key in old if key not in new}
    return {**gone, **{key: item for key, item in new.items() if key not in old or old[key] != item}}


def _after(
    number: int, newest_first: Iterable[_Numbered], number_of: Callable[[_Numbered], int]
) -> Iterator[_Numbered]:
    return takewhile(lambda each: number_of(each) > number, newest_first)


def _fault_options(options: Mapping[str, object]) -> str:
    return ", ".join(
        f"{key} {value.decode(errors='replace') if isinstance(value, bytes) else value}"[:80]
        for key, value in options.items()
    )


def _line(line: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, (int, float)) else _text(value)[:_MAX_TEXT]
        for key, value in line.items()
        if value not in ("", None)
    }


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
