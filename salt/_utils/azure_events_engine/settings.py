# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Parses the key ``azure_events`` of the master's configuration."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.values import did_you_mean, parse_choice, parse_seconds

HOLD = "hold"
APPROVE = "approve"

_TARGETS = (
    "glob",
    "list",
    "pcre",
    "grain",
    "grain_pcre",
    "pillar",
    "pillar_pcre",
    "nodegroup",
    "compound",
    "ipcidr",
    "range",
)
_MINIMUM = {"answer": 1.0, "poll": 1.0, "sweep": 10.0, "keep": 0.0}


class Settings(NamedTuple):
    """All settings, complete.

    Attributes:
        minions, minions_type: target of the minions that take part.
        mapping: name of the VM by minion id; precedes all other sources.
        mapping_pillar: pillar key with the name of a minion's VM, colons between levels; "" for
            none.
        unknown_resources: "hold", or "approve" to count VMs without a minion as ready.
        at_once: number of maintenances whose preparation may be started at a time.
        answer: seconds to wait for the return of a preparation or a recovery before the minion is
            polled for its record.
        poll: seconds between two polls of the minions of a maintenance without a hint.
        sweep: seconds between two polls of all minions without a hint.
        keep: seconds for which a maintenance that is over stays in the status.
    """

    minions: Any = "*"
    minions_type: str = "glob"
    mapping: Mapping[str, str] = {}
    mapping_pillar: str = ""
    unknown_resources: str = HOLD
    at_once: int = 20
    answer: float = 15.0
    poll: float = 30.0
    sweep: float = 300.0
    keep: float = 86400.0


def parse_settings(given: Any) -> Settings:
    """Return the settings of the master's configuration; raise ValueError, which names the key, if it is invalid."""
    if given is None:
        return Settings()
    if not isinstance(given, Mapping):
        raise ValueError(f"azure_events: expected keys with values, not {given!r}")
    for key in given:
        if key not in Settings._fields:
            raise ValueError(f"azure_events: unknown key {key!r}{did_you_mean(key, Settings._fields)}")
    try:
        return Settings(**{key: _PARSERS[key](key, value) for key, value in given.items()})
    except ValueError as error:
        raise ValueError(f"azure_events: {error}") from None


def _target(key: str, value: Any) -> Any:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"{key}: expected a target or a list of minion ids, not {value!r}")
    return value


def _target_type(key: str, value: Any) -> str:
    return parse_choice(value, _TARGETS, key)


def _mapping(key: str, value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{key}: expected minion ids with names of VMs, not {value!r}")
    owners: dict[str, str] = {}
    for minion, name in value.items():
        if not (isinstance(minion, str) and minion and isinstance(name, str) and name.strip()):
            raise ValueError(f"{key}: expected a minion id with the name of a VM, not {minion!r}: {name!r}")
        other = owners.setdefault(name.casefold(), minion)
        if other != minion:
            raise ValueError(f"{key}: {other} and {minion} have the same VM {name!r}; a VM has one minion")
    return dict(value)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected a text, not {value!r}")
    return value


def _unknown_resources(key: str, value: Any) -> str:
    return parse_choice(value, (HOLD, APPROVE), key)


def _count(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10000:
        raise ValueError(f"{key}: expected a whole number from 1 to 10000, not {value!r}")
    return value


def _seconds(key: str, value: Any) -> float:
    try:
        seconds = parse_seconds(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if seconds < _MINIMUM[key]:
        raise ValueError(f"{key}: expected at least {_MINIMUM[key]:g} seconds, not {value!r}")
    return seconds


_PARSERS: Mapping[str, Any] = {
    "minions": _target,
    "minions_type": _target_type,
    "mapping": _mapping,
    "mapping_pillar": _text,
    "unknown_resources": _unknown_resources,
    "at_once": _count,
    "answer": _seconds,
    "poll": _seconds,
    "sweep": _seconds,
    "keep": _seconds,
}
