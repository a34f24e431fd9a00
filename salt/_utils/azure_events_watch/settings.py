# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Options as users write them: what they mean, and what is wrong with them."""

from __future__ import annotations

import copy
import math
import re
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.endpoint import AUTO, DEFAULT_ENDPOINT, validate_endpoint
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.imds import API_VERSION
from azure_scheduled_events.selection import Selection, UnknownType
from azure_scheduled_events.values import did_you_mean, parse_seconds

BEACON = "azure_events"
# Salt reads these itself
_SWITCHES = ("enabled", "disable_during_state_run", "run_once")
_SALTS_OWN = ("interval", "beacon_module", "_beacon_name", *_SWITCHES)
_SECONDS = {"timeout": 10.0, "first_timeout": 130.0, "poll_interval": 1.0, "repeat": 60.0, "gone_for": 3600.0}
_LEAST = {"timeout": 0.1, "first_timeout": 0.1, "poll_interval": 0.25, "repeat": 1.0, "gone_for": 0.0}
_CONNECTION = ("endpoint", "api_version", "resource_name")
_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(-[a-z]+)?")
_KNOWN = ("types", "statuses", "sources", "affects", *_CONNECTION, *_SECONDS)


class Settings(NamedTuple):
    """One beacon's configuration, complete.

    Attributes:
        name: of the beacon; others than "azure_events" have ``beacon_module: azure_events``.
        endpoint, api_versions, resource_name: where to ask and as whom; a name of None is asked
        for.
        timeout, first_timeout: seconds for one answer, and for the first one ever.
        poll_interval: seconds between two looks while all is well.
        repeat: seconds after which an event that lasts is told again.
        gone_for: seconds for which the end of an event is remembered.
        selection: which events are told.
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


# what was read last, since Salt hands the same configuration over twice a second
_READ: list[tuple[Any, Mapping[str, Any], Settings]] = []
_MOST_READ = 10


def known_settings(config: Any, section: Mapping[str, Any]) -> Settings:
    """As `read_settings`, which reads the same configuration once only."""
    for known_config, known_section, found in _READ:
        if known_config == config and known_section == section:
            return found
    found = read_settings(config, section)
    del _READ[: len(_READ) - _MOST_READ + 1]
    # Salt goes on to change the objects that it has handed over
    _READ.append((copy.deepcopy(config), copy.deepcopy(dict(section)), found))
    return found


def read_settings(config: Any, section: Mapping[str, Any]) -> Settings:
    """The settings that a beacon's configuration describes. Raises ValueError that names the key and the nearest word.

    config: a list of mappings, as Salt has it.
    section: the section azure_events, for endpoint, api_version and resource_name where the
        configuration has none, and for the selection of the minion, which limits that of the beacon
        of the same name.
    """
    given = _merged(config)
    for key in given:
        if key not in _KNOWN and key not in _SALTS_OWN:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, (*_KNOWN, 'interval'))}")
    _check_what_salt_reads(given)
    for key in ("types", "statuses", "sources"):
        if given.get(key) in ([], ()):
            raise ValueError(f"{key}: an empty list selects no event at all; leave the option out for all")
    words = {key: given.get(key) for key in ("types", "statuses", "sources", "affects")}
    selection = sure_selection(words)
    seconds = {key: read_seconds(key, given.get(key, default), _LEAST[key]) for key, default in _SECONDS.items()}
    name = beacon_name(config)
    if name == BEACON:
        selection = _limited(selection, section)
    endpoint, api_versions, resource_name = read_connection(given, section)
    return Settings(name, endpoint, api_versions, resource_name, selection=selection, **seconds)


def _limited(selection: Selection, section: Mapping[str, Any]) -> Selection:
    """The selection of the beacon without what this minion does not prepare for. Raises ValueError where nothing is left."""
    whole = sure_selection({key: section.get(key) for key in ("types", "statuses", "sources")})
    common = {}
    for key in ("types", "statuses", "sources"):
        ours, minions = getattr(selection, key), getattr(whole, key)
        common[key] = ours if minions is None else minions
        if ours is not None and minions is not None:
            allowed = {word.casefold() for word in minions}
            common[key] = tuple(word for word in ours if word.casefold() in allowed)
            if not common[key]:
                raise ValueError(
                    "{}: the beacon has {} and azure_events has {}; no event is in both".format(
                        key, ", ".join(ours), ", ".join(minions)
                    )
                )
    return selection._replace(**common)


def beacon_name(config: Any) -> str:
    """Name of the beacon of a configuration that Salt has put it into."""
    return str(_merged(config).get("_beacon_name", BEACON))


def is_from_salt(config: Any) -> bool:
    """Whether Salt's beacons have handed the configuration over, and not a person."""
    return isinstance(config, list) and any(isinstance(item, dict) and "_beacon_name" in item for item in config)


def read_selection(options: Mapping[str, Any]) -> tuple[Selection, list[UnknownType]]:
    """The selection of options as users write them, and its types that are not known. Raises ValueError."""
    # an empty list is often the result of a query that found nothing; it must not select the local VM
    if options.get("affects") in ([], ()):
        raise ValueError("affects: an empty list names no VM; leave it out for this one")
    return Selection.parse(options)


def sure_selection(words: Mapping[str, Any]) -> Selection:
    """The selection of a configuration, in which a word that is nearly a known one is a mistake. Raises ValueError.

    Azure may have types that are not known here, but hardly any that differ from a known one by a
    letter or two.
    """
    selection, unknown = read_selection(words)
    for one in unknown:
        if one.suggestion is not None:
            raise ValueError(one.text)
    return selection


def read_connection(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[str, tuple[str, ...], str | None]:
    """Endpoint, api-versions and this VM's name, each from ``given``, else from the defaults. Raises ValueError."""
    where = {key: given.get(key) if given.get(key) is not None else defaults.get(key) for key in _CONNECTION}
    name = where["resource_name"]
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise ValueError(f"resource_name: expected the name that Azure has for this VM, not {name!r}")
    endpoint = DEFAULT_ENDPOINT if where["endpoint"] is None else where["endpoint"]
    if not isinstance(endpoint, str):
        raise ValueError(f"endpoint: expected a text, not {endpoint!r}")
    try:
        endpoint = endpoint if endpoint == AUTO else validate_endpoint(endpoint)
    except ImdsError as error:
        raise ValueError(str(error)) from None
    # YAML makes a date of an unquoted version
    versions = API_VERSION if where["api_version"] is None else where["api_version"]
    listed = [str(version) for version in (versions if isinstance(versions, (list, tuple)) else [versions])]
    if not listed or not all(map(_VERSION.fullmatch, listed)):
        raise ValueError(f"api_version: expected a version such as {API_VERSION}, or a list of such, not {versions!r}")
    return endpoint, tuple(listed), name


def read_seconds(key: str, value: Any, least: float) -> float:
    """Seconds from a number or a text such as 15m. Raises ValueError that names the key."""
    try:
        seconds = parse_seconds(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if seconds < least:
        raise ValueError(f"{key} has to be at least {least:g} seconds, not {seconds:g}")
    return seconds


def _check_what_salt_reads(given: Mapping[Any, Any]) -> None:
    """Raises ValueError. Salt itself does not look: it fails at the second turn, and then for all beacons of the minion."""
    interval = given.get("interval", 1)
    number = isinstance(interval, (int, float)) and not isinstance(interval, bool)
    if not number or not math.isfinite(interval) or interval <= 0:
        raise ValueError(f"interval: expected seconds as a number above 0, as Salt reads no units, not {interval!r}")
    for key in _SWITCHES:
        if not isinstance(given.get(key, True), bool):
            raise ValueError(f"{key} has to be true or false, not {given[key]!r}")
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
