# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The change of an event as data, in the shape that all sources of a rulebook share."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.azure_scheduled_events.change_record import SCHEMA
from ...module_utils.azure_scheduled_events.changes import APPEARED, CHANGED, GONE, STARTED
from ...module_utils.azure_scheduled_events.document import ScheduledEvent
from ...module_utils.azure_scheduled_events.outcome import OUTCOMES, UNKNOWN
from ...module_utils.azure_scheduled_events.printable import escape_surrogates
from ...module_utils.azure_scheduled_events.timestamps import parse_time

KINDS = (APPEARED, CHANGED, STARTED, GONE)
REPORTED_BY_SOURCE, REPORTED_BY_EVENT_GRID = "event_source", "event_grid"

_LONGEST_TEXT = 2048
_LONGEST_LIST = 10000
_DEEPEST = 20
# Ansible would render a text with these as a template; a header sets other marks
_TEMPLATE_MARK = re.compile(r"\{(?=[{%#])|\A#(?=jinja2:)")
_FRACTION = re.compile(r":\d{2}(\.\d{1,9})")


class NotAChange(ValueError):
    """The data claims to be a change, but a member is missing or has an unusable value."""


def read(data: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the members of a received change, which is untrusted; raise NotAChange if one is missing or unusable."""
    event = _event(data.get("event"), "event")
    others = data.get("other_events", [])
    if not isinstance(others, list) or len(others) > _LONGEST_LIST:
        raise NotAChange(f"other_events: not a list of at most {_LONGEST_LIST} events")
    kind = _choice(data, "change", KINDS)
    change = {
        "schema": SCHEMA,
        "id": _text(data, "id"),
        "change": kind,
        "outcome": _outcome(data) if kind == GONE else None,
        "event": event,
        "observed_at": _text(data, "observed_at"),
        "reporter": _text(data, "reporter", may_be_empty=True),
        "reported_by": _text(data, "reported_by"),
        "resource_id": None if data.get("resource_id") is None else _text(data, "resource_id"),
        "other_events": [_event(each, f"other_events[{number}]") for number, each in enumerate(others)],
    }
    moment(change)
    return change


def moment(change: t.Mapping[str, t.Any]) -> float:
    """Return the time of the observation in seconds since 1970; raise NotAChange if it cannot be read."""
    text = change["observed_at"]
    time = parse_time(text)
    if time is None:
        raise NotAChange(f"observed_at: {text[:60]!r} is not a time in ISO 8601")
    fraction = _FRACTION.search(text)
    return time.timestamp() + (float(fraction[1]) if fraction else 0.0)


def without_templates(value: t.Any, depth: int = 0) -> t.Any:
    """Return untrusted JSON values with texts that Ansible does not render; a value nested too deeply becomes None."""
    if isinstance(value, str):
        return _TEMPLATE_MARK.sub(r"\g<0> ", value)
    if not isinstance(value, (dict, list)):
        return value
    if depth >= _DEEPEST:
        return None
    if isinstance(value, list):
        return [without_templates(item, depth + 1) for item in value]
    return {name: without_templates(item, depth + 1) for name, item in value.items()}


def _event(data: t.Any, where: str) -> dict[str, t.Any]:
    try:
        event = ScheduledEvent.from_json(data, where).as_dict()
    except ValueError as error:
        raise NotAChange(str(error)) from None
    names, texts = event["resources"], {name: value for name, value in event.items() if isinstance(value, str)}
    if len(names) > _LONGEST_LIST:
        raise NotAChange(f"{where}: resources has more than {_LONGEST_LIST} names")
    checked = {name: _checked_text(value, f"{where}: {name}", True) for name, value in texts.items()}
    return {**event, **checked, "resources": [_checked_text(name, f"{where}: resources", True) for name in names]}


def _outcome(data: t.Mapping[str, t.Any]) -> str:
    """Return the outcome of an event that is gone; a reporter that does not name it does not know it."""
    return UNKNOWN if data.get("outcome") is None else _choice(data, "outcome", OUTCOMES)


def _choice(data: t.Mapping[str, t.Any], name: str, known: tuple[str, ...]) -> str:
    value = data.get(name)
    if value not in known:
        raise NotAChange(f"{name}: expected one of {', '.join(known)}")
    return str(value)


def _text(data: t.Mapping[str, t.Any], name: str, may_be_empty: bool = False) -> str:
    return _checked_text(data.get(name), name, may_be_empty)


def _checked_text(value: t.Any, name: str, may_be_empty: bool) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not (may_be_empty or value.strip()):
        raise NotAChange(f"{name}: not a text of at most {_LONGEST_TEXT} characters")
    return str(without_templates(escape_surrogates(value)))
