# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Parses and checks the options of the beacon, the selection and the connection."""

from __future__ import annotations

import contextlib
import copy
import math
from functools import partial
from typing import Any, Iterable, Mapping, NamedTuple

from azure_scheduled_events.document import API_VERSION
from azure_scheduled_events.endpoint import DEFAULT_ENDPOINT, parse_api_versions, parse_endpoint
from azure_scheduled_events.options import check_key, parse_boolean, parse_event_type, parse_option, parse_seconds
from azure_scheduled_events.selection import Selection

BEACON = "azure_events"
# options that Salt itself reads
_SWITCHES = ("enabled", "disable_during_state_run", "run_once")
_SALT_OPTIONS = ("interval", "beacon_module", "_beacon_name", *_SWITCHES)
# the default and the least value of each
_SECONDS = {
    "timeout": (10.0, 0.1),
    "first_timeout": (130.0, 0.1),
    "poll_interval": (1.0, 0.25),
    "repeat": (60.0, 1.0),
    "gone_for": (3600.0, 0.0),
}
_CONNECTION = ("endpoint", "api_version", "resource_name")
_KNOWN = ("types", "statuses", "sources", "affects", *_CONNECTION, *_SECONDS)


class Settings(NamedTuple):
    """One beacon's configuration, complete.

    Attributes:
        name: of the beacon; any except "azure_events" needs ``beacon_module: azure_events``.
        resource_name: this VM's name; None reads it from IMDS.
        timeout, first_timeout: seconds for one answer, and for the first one of all.
        poll_interval: seconds between two polls while IMDS is healthy.
        repeat: seconds after which a listed event is sent again.
        gone_for: seconds for which the end of an event is remembered.
        selection: which events are sent.
    """

    name: str
    endpoint: str
    api_versions: tuple[str, ...]
    resource_name: str | None
    timeout: float
    first_timeout: float
    poll_interval: float
    repeat: float
    gone_for: float
    selection: Selection


# the latest results, because Salt passes the same configuration twice a second
_CACHE: list[tuple[Any, Mapping[str, Any], Settings]] = []
_CACHE_SIZE = 10


def cached_settings(config: Any, section: Mapping[str, Any]) -> Settings:
    """Return the result of `parse_settings`, cached."""
    for known_config, known_section, found in _CACHE:
        if known_config == config and known_section == section:
            return found
    found = parse_settings(config, section)
    del _CACHE[: len(_CACHE) - _CACHE_SIZE + 1]
    # copies, because Salt modifies the objects that it has passed
    _CACHE.append((copy.deepcopy(config), copy.deepcopy(dict(section)), found))
    return found


def parse_settings(config: Any, section: Mapping[str, Any]) -> Settings:
    """Return the settings of a beacon; raise ValueError, which names the key, if they are invalid.

    ``config`` is a list of mappings, as Salt passes it. ``section`` is the section azure_events. It has
    defaults for endpoint, api_version and resource_name, and the selection of the minion, which limits
    that of the beacon of the same name.
    """
    given = _merged(config)
    for key in given:
        if key not in _SALT_OPTIONS:
            check_key(key, (*_KNOWN, "interval"))
    _check_salt_options(given)
    for key in ("types", "statuses", "sources"):
        if given.get(key) in ([], ()):
            raise ValueError(f"{key}: an empty list selects no event at all; leave the option out for all")
    selection = parse_selection({key: given.get(key) for key in ("types", "statuses", "sources", "affects")})
    seconds = {key: parse_duration(key, given.get(key, default), least) for key, (default, least) in _SECONDS.items()}
    name = beacon_name(config)
    if name == BEACON:
        selection = _restrict_to_minion(selection, section)
    endpoint, api_versions, resource_name = parse_connection(given, section)
    return Settings(name, endpoint, api_versions, resource_name, selection=selection, **seconds)


def _restrict_to_minion(selection: Selection, section: Mapping[str, Any]) -> Selection:
    """Return the beacon's selection, limited to the events that this minion prepares for.

    The function raises ValueError if no event is in both selections.
    """
    whole = parse_selection({key: section.get(key) for key in ("types", "statuses", "sources")})
    common = {}
    for key in ("types", "statuses", "sources"):
        ours, minions = getattr(selection, key), getattr(whole, key)
        common[key] = ours if minions is None else minions
        if ours is not None and minions is not None:
            allowed = {value.casefold() for value in minions}
            common[key] = tuple(value for value in ours if value.casefold() in allowed)
            if not common[key]:
                raise ValueError(
                    "{}: the beacon has {} and azure_events has {}; no event is in both".format(
                        key, ", ".join(ours), ", ".join(minions)
                    )
                )
    return selection._replace(**common)


def beacon_name(config: Any) -> str:
    """Return the name that Salt has added to a beacon's configuration."""
    return str(_merged(config).get("_beacon_name", BEACON))


def is_from_salt(config: Any) -> bool:
    """Return True if Salt's beacons have passed the configuration, and not the caller of a job."""
    return isinstance(config, list) and any(isinstance(item, dict) and "_beacon_name" in item for item in config)


def parse_selection(options: Mapping[str, Any]) -> Selection:
    """Return the selection that the options describe; raise ValueError, which names the option, if one is invalid."""
    # the result of a search without a hit must not select this VM
    if options.get("affects") in ([], ()):
        raise ValueError("affects: an empty list names no VM; leave it out for this one")
    return Selection.parse(options)


def parse_connection(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[str, tuple[str, ...], str | None]:
    """Return endpoint, api-versions and this VM's name, from ``given`` or else the defaults.

    The ValueError for an invalid option names the option.
    """
    where = {key: given.get(key) if given.get(key) is not None else defaults.get(key) for key in _CONNECTION}
    name = where["resource_name"]
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise ValueError(f"resource_name: expected the name that Azure has for this VM, not {name!r}")
    endpoint = DEFAULT_ENDPOINT if where["endpoint"] is None else where["endpoint"]
    versions = API_VERSION if where["api_version"] is None else where["api_version"]
    return (
        parse_option("endpoint", endpoint, parse_endpoint),
        parse_option("api_version", versions, parse_api_versions),
        name,
    )


def parse_duration(key: str, value: Any, least: float) -> float:
    """Return the seconds of a duration, which the ValueError for another value names by its key."""
    return parse_option(key, value, partial(parse_seconds, least=least))


def selectable_types(names: Iterable[str]) -> list[str]:
    """Return those event types of IMDS that a selection can name, each once."""
    found = []
    for name in sorted(set(names)):
        with contextlib.suppress(ValueError):
            found.append(parse_event_type(name))
    return found


def _check_salt_options(given: Mapping[Any, Any]) -> None:
    """Check the options that Salt reads without a check of its own; the ValueError names the option.

    Salt fails at the second tick with them, and then for all beacons of the minion.
    """
    interval = given.get("interval", 1)
    number = isinstance(interval, (int, float)) and not isinstance(interval, bool)
    if not number or not math.isfinite(interval) or interval <= 0:
        raise ValueError(f"interval: expected seconds as a number above 0, as Salt reads no units, not {interval!r}")
    for key in _SWITCHES:
        parse_option(key, given.get(key, True), parse_boolean)
    module = given.get("beacon_module", BEACON)
    if not isinstance(module, str) or not module:
        raise ValueError(f"beacon_module: expected the name of a beacon module, not {module!r}")


def _merged(config: Any) -> dict[Any, Any]:
    if not isinstance(config, list):
        raise ValueError(
            f"the configuration has to be a list, with one option in each item, not {type(config).__name__}"
        )
    merged: dict[Any, Any] = {}
    for item in config:
        if not isinstance(item, dict):
            raise ValueError(f"expected an option with its value, not {item!r}")
        merged.update(item)
    return merged
