# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the data of a file by a schema in one pass; a problem has file, line and key, and the nearest known key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable, NamedTuple

from azure_scheduled_events.options import Parser, check_key
from azure_scheduled_events.policy import Policy, PolicyError, SourceLocation

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


class Reader:
    """Reads one file. `problems` gets a sentence for each part of it that is not usable."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def read(self, schema: Schema, value: Any, location: SourceLocation) -> Any:
        """Return the parsed value, which is at this location; None if it is not usable."""
        if schema is Policy:
            return self._policy(value, location)
        if not isinstance(schema, Keys):
            return self._parsed(schema, value, location)
        if not isinstance(value, dict):
            self._refuse(location, f"expected a mapping of keys, not {value!r}")
            return None
        found = {}
        for key, item in value.items():
            name = self._parsed(schema.parse, key, location.at(key))
            if name is not None:
                found[name] = self.read(schema.schema(name), item, location.at(key))
        return found

    def _policy(self, value: Any, location: SourceLocation) -> Policy | None:
        """Read the name of a preset, or a mapping. A preset approves after the prepare hooks have succeeded."""
        if isinstance(value, list):
            self._refuse(location, "expected a preset's name or a mapping with rules, not a list")
            return None
        try:
            policy = Policy.parse(value, location)
        except PolicyError as error:
            self.problems.append(str(error))
            return None
        return policy.approving_after_preparation() if policy.is_preset else policy

    def _parsed(self, parse: Parser, value: Any, location: SourceLocation) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            self._refuse(location, error)
            return None

    def _refuse(self, location: SourceLocation, problem: object) -> None:
        self.problems.append(f"{location}: {problem}")
