# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the data of a file by a schema in one pass; a problem has file, line and key, and the nearest known key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable, NamedTuple

from azure_scheduled_events.options import Parser, check_key
from azure_scheduled_events.policy import Policy, PolicyError, SourceLocations

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

    def __init__(self, places: SourceLocations) -> None:
        self.problems: list[str] = []
        self._places = places

    def read(self, schema: Schema, value: Any, path: tuple[object, ...] = ()) -> Any:
        """Return the parsed value, which is at this path of the file; None if it is not usable."""
        if schema is Policy:
            return self._policy(value, path)
        if not isinstance(schema, Keys):
            return self._parsed(schema, value, path)
        if not isinstance(value, dict):
            self._refuse(path, f"expected a mapping of keys, not {value!r}")
            return None
        found = {}
        for key, item in value.items():
            name = self._parsed(schema.parse, key, (*path, key))
            if name is not None:
                found[name] = self.read(schema.schema(name), item, (*path, key))
        return found

    def _policy(self, value: Any, path: tuple[object, ...]) -> Policy | None:
        """Read the name of a preset, or a mapping. A preset approves after the prepare hooks have succeeded."""
        if isinstance(value, list):
            self._refuse(path, "expected a preset's name or a mapping with rules, not a list")
            return None
        if isinstance(value, str):
            policy: Policy | None = self._parsed(Policy.preset, value, path)
        else:
            try:
                policy = Policy.from_mapping(value, self._places, path)
            except PolicyError as error:
                self.problems.append(str(error))
                return None
        return policy.approving_after_preparation() if policy is not None and policy.is_preset else policy

    def _parsed(self, parse: Parser, value: Any, path: tuple[object, ...]) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            self._refuse(path, error)
            return None

    def _refuse(self, path: tuple[object, ...], problem: object) -> None:
        self.problems.append(f"{self._places.describe(path)}: {problem}")
