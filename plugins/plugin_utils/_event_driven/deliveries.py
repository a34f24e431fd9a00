# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds changes in an event of a rulebook, wherever its source has put them."""

from __future__ import annotations

import itertools
import json
import typing as t

from ...module_utils.azure_scheduled_events.change_record import SCHEMA
from .change import NotAChange, read
from .event_grid import is_notification, read_notification

# where sources put what they received: eda.builtin.webhook and event streams, Service Bus and Kafka
BODIES = ("scheduled_event", "payload", "body")
# members of a wrapper that has the deliveries as a list
_LISTS = ("events", "value")
# a later version of the shape
_ANY_SCHEMA = SCHEMA.rpartition("/")[0] + "/"
_MAX_DEPTH = 4
_MAX_ITEMS = 1000

Change = dict[str, t.Any]


class Found(t.NamedTuple):
    """The content of an event of a rulebook.

    Attributes:
        changes: readable changes, in their order.
        problems: one sentence for each delivery that claims to be a change and is not readable.
        others: whether it contains something else beside them.
    """

    changes: tuple[Change, ...]
    problems: tuple[str, ...]
    others: bool


def find_changes(event: t.Mapping[str, t.Any]) -> Found:
    """Return the changes in an event of a rulebook, as the source has delivered it.

    The changes are in a member `payload` or `body` (an object, a list, or JSON as text), or are the object itself.
    """
    found: t.Iterator[t.Any]
    if any(name in event for name in BODIES):
        found = (item for name in BODIES if name in event for item in _items(event[name], 0))
    else:
        found = _items({name: value for name, value in event.items() if name != "meta"}, 0)
    items = list(itertools.islice(found, _MAX_ITEMS + 1))
    changes, problems, others = [], [], False
    for item in items[:_MAX_ITEMS]:
        try:
            change = _change_of(item)
        except NotAChange as error:
            problems.append(str(error))
        else:
            if change is None:
                others = True
            else:
                changes.append(change)
    if len(items) > _MAX_ITEMS and (changes or problems):
        problems.append(f"more than {_MAX_ITEMS} items in one delivery")
    return Found(tuple(changes), tuple(problems), others)


def _change_of(item: t.Any) -> Change | None:
    if not isinstance(item, dict):
        return None
    schema = item.get("schema")
    if schema == SCHEMA:
        return read(item)
    if isinstance(schema, str) and schema.startswith(_ANY_SCHEMA):
        raise NotAChange(f"schema: {schema[:60]!r} is unknown; update the collection here, or the sender")
    return read_notification(item) if is_notification(item) else None


def _items(value: t.Any, depth: int) -> t.Iterator[t.Any]:
    """Yield the objects of a body: of JSON as text, of lists, and of wrappers."""
    if depth > _MAX_DEPTH:
        yield None
    elif isinstance(value, (str, bytes)):
        decoded = _decoded(value)
        if isinstance(decoded, (dict, list)):
            yield from _items(decoded, depth + 1)
        else:
            yield None
    elif isinstance(value, list):
        for item in value:
            yield from _items(item, depth + 1)
    elif isinstance(value, dict) and "schema" not in value and not is_notification(value):
        inside = [value[name] for name in BODIES if isinstance(value.get(name), (dict, list, str, bytes))]
        inside += [value[name] for name in _LISTS if isinstance(value.get(name), list)]
        if not inside:
            yield value
        for item in inside:
            yield from _items(item, depth + 1)
    else:
        yield value


def _decoded(text: str | bytes) -> t.Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
