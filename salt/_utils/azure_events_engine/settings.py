# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Parses the key ``azure_events`` of the master's configuration."""

from __future__ import annotations

from functools import partial
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.options import (
    Parser,
    as_list,
    parse_choice,
    parse_integer,
    parse_option,
    parse_options,
    parse_seconds,
    parse_text,
)

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
    return Settings(**parse_option("azure_events", given, partial(parse_options, parsers=_PARSERS)))


def _target(value: Any) -> Any:
    texts = as_list(value)
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"expected a target or a list of minion ids, not {value!r}")
    return value


def _mapping(value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected minion ids with names of VMs, not {value!r}")
    owners: dict[str, str] = {}
    for minion, name in value.items():
        if not (isinstance(minion, str) and minion and isinstance(name, str) and name.strip()):
            raise ValueError(f"expected a minion id with the name of a VM, not {minion!r}: {name!r}")
        other = owners.setdefault(vm_key(name), minion)
        if other != minion:
            raise ValueError(f"{other} and {minion} have the same VM {name!r}; a VM has one minion")
    return dict(value)


_PARSERS: Mapping[str, Parser] = {
    "minions": _target,
    "minions_type": partial(parse_choice, known=_TARGETS),
    "mapping": _mapping,
    "mapping_pillar": parse_text,
    "unknown_resources": partial(parse_choice, known=(HOLD, APPROVE)),
    "at_once": partial(parse_integer, least=1, most=10000),
    "answer": partial(parse_seconds, least=1),
    "poll": partial(parse_seconds, least=1),
    "sweep": partial(parse_seconds, least=10),
    "keep": parse_seconds,
}
