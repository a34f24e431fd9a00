# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the data of a file by a schema in one pass; a problem has file, line and key, and the nearest known key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable, NamedTuple

from azure_scheduled_events.options import Parser, check_key
from azure_scheduled_events.policy import Policy, PolicyError
from azure_scheduled_events.yaml_lines import SourceLocation

# Keys, the class Policy, or a function that parses a value or raises ValueError
Schema = Any


class Keys(NamedTuple):
    """A mapping: `parse` returns the name of a key or raises ValueError, `schema` the schema of its value."""

    parse: Parser
    schema: Callable[[str], Schema]


def known_keys(schemas: Mapping[str, Schema], refused: Mapping[str, str] = MappingProxyType({})) -> Keys:
    """Return the schema of a mapping with these keys; `refused` has other keys, each with why and what to do."""

    def parse(key: Any) -> str:
        if key in refused:
            raise ValueError(refused[key])
        check_key(key, tuple(schemas))
        return str(key)

    return Keys(parse, schemas.__getitem__)


def names(parse: Parser, schema: Schema) -> Keys:
    """Return the schema of a mapping whose keys are chosen by the operator, and whose values are of one kind."""
    return Keys(parse, lambda _name: schema)


def read(schema: Schema, value: Any, location: SourceLocation, problems: list[str]) -> Any:
    """Return the parsed value, which is at this location.

    `problems` gets a sentence for each part of it that is not usable; such a value is None, such a key is left out.
    """
    try:
        if schema is Policy:
            return _policy(value, location)
        if not isinstance(schema, Keys):
            return schema(value)
        if not isinstance(value, dict):
            problem = "it is empty" if value is None else f"expected a mapping of keys, not {value!r}"
            raise ValueError(f"{problem}; write keys with their values, or remove it")
    except PolicyError as error:  # it has the location
        problems.append(str(error))
        return None
    except ValueError as error:
        problems.append(f"{location}: {error}")
        return None
    found = {}
    for key, item in value.items():
        name = read(schema.parse, key, location.at(key), problems)
        if name is not None:
            found[name] = read(schema.schema(name), item, location.at(key), problems)
    return found


def _policy(value: Any, location: SourceLocation) -> Policy:
    """Read the name of a preset, or a mapping. A preset approves after the prepare hooks have succeeded."""
    if isinstance(value, list):
        raise ValueError("expected a preset's name or a mapping with rules, not a list")
    policy = Policy.parse(value, location)
    return policy.approving_after_preparation() if policy.is_preset else policy
