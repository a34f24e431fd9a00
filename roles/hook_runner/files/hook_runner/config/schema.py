# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the data of a file by a schema in one pass; each error names file, line and key, and the nearest known key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Callable, NamedTuple

from azure_scheduled_events.options import check_key
from azure_scheduled_events.policy import Policy, SourceLocations

# a mapping (Keys or Named), the class Policy, or a function that parses a value or raises ValueError
Schema = Any


class Keys(NamedTuple):
    """A mapping with these keys."""

    schemas: Mapping[str, Schema]


class Named(NamedTuple):
    """A mapping whose keys are names, and whose values are of one kind."""

    parse_name: Callable[[Any], str]
    schema: Schema


def read(schema: Schema, value: Any, places: SourceLocations, path: tuple[object, ...] = ()) -> Any:
    """Return the parsed value, which is at this path of the file. Raises ValueError."""
    if schema is Policy:
        return _read_policy(value, places, path)
    if not isinstance(schema, (Keys, Named)):
        return _parsed(schema, value, places, path)
    if not isinstance(value, dict):
        raise ValueError(f"{places.describe(path)}: expected a mapping of keys, not {value!r}")
    found = {}
    for key, item in value.items():
        here = (*path, key)
        if isinstance(schema, Named):
            found[_parsed(schema.parse_name, key, places, here)] = read(schema.schema, item, places, here)
        else:
            _parsed(partial(check_key, known=tuple(schema.schemas)), key, places, here)
            found[key] = read(schema.schemas[key], item, places, here)
    return found


def _parsed(parse: Callable[[Any], Any], value: Any, places: SourceLocations, path: tuple[object, ...]) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(f"{places.describe(path)}: {error}") from None


def _read_policy(value: Any, places: SourceLocations, path: tuple[object, ...]) -> Policy:
    """Read the name of a preset, or a mapping. A preset approves after the prepare hooks have succeeded."""
    if isinstance(value, str):
        policy: Policy = _parsed(Policy.preset, value, places, path)
    elif isinstance(value, list):
        raise ValueError(f"{places.describe(path)}: expected a preset's name or a mapping with rules, not a list")
    else:
        policy = Policy.from_mapping(value, _Below(places, path))
    return policy.approving_after_preparation() if policy.is_preset else policy


class _Below(SourceLocations):
    """Source locations of a part of a file that is read like a separate file."""

    def __init__(self, places: SourceLocations, root: tuple[object, ...]) -> None:
        super().__init__()
        self._whole = places
        self._root = root

    def describe(self, path: tuple[object, ...]) -> str:
        return self._whole.describe(self._root + path)
