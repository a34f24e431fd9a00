# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the data of a file by a schema in one pass; a problem has file, line and key, and the nearest known key."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from azure_scheduled_events.options import Parser, check_key
from azure_scheduled_events.policy import Policy, PolicyError
from azure_scheduled_events.yaml_lines import SourceLocation

# of a value: a function that parses it or raises ValueError; the class Policy; a text, which says why the key is
# refused and what to do; of a mapping: a dict with the schema of each key, or Names
Schema = Any


class Names(NamedTuple):
    """A mapping whose keys the operator chooses: `parse` reads a key, `schema` returns the schema of its value."""

    parse: Parser
    schema: Callable[[str], Schema]

    @classmethod
    def of(cls, parse: Parser, schema: Schema) -> Names:
        """Return a mapping whose values are of one kind."""
        return cls(parse, lambda _name: schema)


def read(schema: Schema, value: Any, location: SourceLocation, problems: list[str]) -> Any:
    """Return the parsed value, which is at this location.

    `problems` gets a sentence for each part of it that is not usable; such a value is None, such a key is left out.
    """
    try:
        if isinstance(schema, str):
            raise ValueError(schema)
        if isinstance(schema, (dict, Names)):
            return _read_mapping(schema, value, location, problems)
        return _policy(value, location) if schema is Policy else schema(value)
    except PolicyError as error:  # it has the location
        problems.append(str(error))
    except ValueError as error:
        problems.append(f"{location}: {error}")
    return None


def _read_mapping(schema: Schema, value: Any, location: SourceLocation, problems: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        problem = "it is empty" if value is None else f"expected a mapping of keys, not {value!r}"
        raise ValueError(f"{problem}; write keys with their values, or remove it")

    def known_key(key: Any) -> str:
        if key not in schema:
            check_key(key, [name for name, each in schema.items() if not isinstance(each, str)])
        return str(key)

    parse, schema_of = schema if isinstance(schema, Names) else (known_key, schema.__getitem__)
    found = {}
    for key, item in value.items():
        name = read(parse, key, location.at(key), problems)
        if name is not None:
            found[name] = read(schema_of(name), item, location.at(key), problems)
    return found


def _policy(value: Any, location: SourceLocation) -> Policy:
    """Read the name of a preset, or a mapping. A preset approves after the prepare hooks have succeeded."""
    if isinstance(value, list):
        raise ValueError("expected a preset's name or a mapping with rules, not a list")
    policy = Policy.parse(value, location)
    return policy.approving_after_preparation() if policy.is_preset else policy
