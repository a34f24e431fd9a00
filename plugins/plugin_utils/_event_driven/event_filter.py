# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns an event of a rulebook into events with `scheduled_event` and `meta.hosts`."""

from __future__ import annotations

import json
import logging
import os
import typing as t

from ...module_utils.azure_scheduled_events.event_types import nature_of
from ...module_utils.azure_scheduled_events.options import check_key, parse_option
from .change import without_templates
from .deliveries import BODIES, find_changes
from .host_names import HostRule, host_rule
from .news import News

LOGGER = logging.getLogger("azure_imds.scheduled_events.event_filter")

_PLUGIN = "azure_imds.scheduled_events.scheduled_events"
_TABLE, _TABLE_FILE = "host_table", "host_table_file"
_PATTERN, _TEMPLATE = "host_pattern", "host_template"
_OPTIONS = (_TABLE, _TABLE_FILE, _PATTERN, _TEMPLATE, "memory")
_OPTIONS_OF_ENVIRONMENT = (_TABLE_FILE, _PATTERN, _TEMPLATE)
_VARIABLE = "AZURE_SCHEDULED_EVENTS_%s"
# ansible-rulebook runs a playbook on all hosts if the list is empty; this pattern selects none
NO_HOST = "!all"
_RESULT = ("scheduled_event", "scheduled_event_problem")
_SHARED: dict[str, News] = {}

Event = dict[str, t.Any]


class EventFilter:
    """The filter of one source: it remembers what it has seen, unless the option `memory` names a shared memory."""

    def __init__(self) -> None:
        self._own = News()

    def apply(self, event: Event, options: t.Mapping[str, t.Any]) -> Event | list[Event]:
        """Return the event, or a list of events if it had several changes; raise ValueError for an unusable option."""
        settings = _with_environment(options)
        rule, news = _rule(settings), self._memory(settings.get("memory"))
        if not isinstance(event, dict):
            return event
        found = find_changes(event)
        rest = _without_result(event)
        if not (found.changes or found.problems):
            return rest
        others = _without_delivery(rest) if any(name in event for name in BODIES) else {"meta": rest.get("meta")}
        events = [_with_change(others, change, rule, news) for change in found.changes]
        for problem in found.problems:
            LOGGER.warning("scheduled events: unreadable delivery ignored: %s", problem)
        if found.problems:
            problem = without_templates("; ".join(found.problems[:10]))
            events.append(_with_meta(without_templates(rest), [NO_HOST], scheduled_event_problem=problem))
        elif found.others:
            events.append(rest)
        return events if len(events) > 1 else events[0]

    def _memory(self, name: t.Any) -> News:
        if name is None:
            return self._own
        if not isinstance(name, str):
            raise _problem("memory: not a text; give a name, the same one for each source that shares it")
        return _SHARED.setdefault(name, News())


def _with_change(others: Event, change: dict[str, t.Any], rule: HostRule, news: News) -> Event:
    is_news, kind, occurrence = news.judge(change)
    hosts, unknown = rule.apply(change["event"]["resources"])
    scheduled_event = {
        **change,
        "change": kind,
        "nature": nature_of(change["event"]["event_type"]).value,
        "event_key": change["event"]["event_id"].casefold(),
        "occurrence": occurrence,
        "hosts": hosts,
        "limit": ",".join(sorted(hosts)) or NO_HOST,
        "unknown_resources": unknown,
        "is_news": is_news,
    }
    if is_news and unknown:
        LOGGER.warning(
            "scheduled events: event %s: no host for %s; add them to the rule of hosts",
            ascii(change["event"]["event_id"]),
            ", ".join(map(ascii, unknown[:20])),
        )
    if is_news and not change["event"]["resources"]:
        LOGGER.warning(
            "scheduled events: event %s: the report has no resources, and starts no run; run the playbook on its hosts",
            ascii(change["event"]["event_id"]),
        )
    # a playbook gets the event as variables, and Ansible renders their texts as templates; the headers of a request are
    # in meta
    return _with_meta(without_templates(others), hosts or [NO_HOST], scheduled_event=scheduled_event)


def _without_result(event: Event) -> Event:
    """Return the event without the members that the filter sets: a sender must not select hosts."""
    rest = {name: value for name, value in event.items() if name not in _RESULT}
    meta = event.get("meta")
    if isinstance(meta, dict) and "hosts" in meta:
        rest["meta"] = {name: value for name, value in meta.items() if name != "hosts"}
    elif len(rest) == len(event):
        return event
    return rest


def _without_delivery(event: Event) -> Event:
    return {name: value for name, value in event.items() if name not in BODIES}


def _with_meta(event: Event, hosts: list[str], **members: t.Any) -> Event:
    meta = event.get("meta")
    return {**event, **members, "meta": {**(meta if isinstance(meta, dict) else {}), "hosts": hosts}}


def _with_environment(options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the options, and those of the environment for options that the rulebook does not set."""
    for name in options:
        parse_option(_PLUGIN, name, lambda given: check_key(given, _OPTIONS))
    settings = {name: value for name, value in options.items() if value is not None}
    for name in _OPTIONS_OF_ENVIRONMENT:
        value = os.environ.get(_VARIABLE % name.upper())
        # a table in the rulebook is in place of a file
        is_set = name in settings or (name == _TABLE_FILE and _TABLE in settings)
        if value and not is_set:
            settings[name] = value
    return settings


def _rule(settings: t.Mapping[str, t.Any]) -> HostRule:
    table = settings.get(_TABLE)
    path = settings.get(_TABLE_FILE)
    if path is not None:
        if table is not None:
            raise _problem("host_table_file: host_table is set, too; give one of them")
        table = _read_table(path)
    try:
        return host_rule(table, settings.get(_PATTERN), settings.get(_TEMPLATE))
    except ValueError as error:
        raise _problem(str(error)) from None


def _read_table(path: t.Any) -> t.Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, TypeError, ValueError) as error:
        raise _problem(f"host_table_file: {error}; give a readable file with a JSON object") from None


def _problem(text: str) -> ValueError:
    return ValueError(f"{_PLUGIN}: {text}")
