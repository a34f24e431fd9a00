# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reads mappings (YAML, JSON, the command line) into frozen dataclasses whose fields are declared as keys.

A field has a type, a meaning and a default; its key has the name of the field unless ``name`` says otherwise::

    @dataclass(frozen=True)
    class Pause:
        vm: str = key(NAME, "the VM")
        lasts: float = key(DURATION, "how long the pause lasts", default=5.0, name="for")
        reason: str | None = key(one_of("host", "user"), "what causes it", default=None)

        def check(self) -> Found:
            if self.reason == "user" and self.lasts > 60:
                yield ("for",), "a user pauses a VM for a minute at most"

    problems = Problems()
    pause = read(Pause, {"vm": "vm1", "for": "9m", "reasn": "user"}, (), problems)
    problems.found  # [(("reasn",), "unknown key (did you mean reason?)")]

``keys_of(Pause)`` lists the keys (for a command line, with ``Type.from_text``), ``json_schema(Pause)`` is their schema.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Callable, TypeVar, Union

from .suggestions import suggestion

Path = tuple[Union[str, int], ...]
# problems of a value: the path below it, and the text
Found = Iterator[tuple[Path, str]]
_T = TypeVar("_T")


class Problems:
    """The problems of some data, each with its path."""

    def __init__(self) -> None:
        self.found: list[tuple[Path, str]] = []
        self._wrong: set[Path] = set()
        # the mappings and lists that have a wrong value
        self._incomplete: set[Path] = set()

    def add(self, path: Path, text: str, key: str | None = None) -> None:
        """Add a problem of reading: the value at ``path`` is wrong, or it lacks ``key``.

        A wrong value keeps its first problem.
        """
        if path in self._wrong:
            return
        self.found.append((path, text))
        wrong = path if key is None else (*path, key)
        self._wrong.add(wrong)
        self._incomplete.add(wrong[:-1])

    def check(self, found: Iterable[tuple[Path, str]], path: Path = ()) -> None:
        """Add the problems that a check of values found below ``path``.

        A wrong value has its default during the checks; therefore a problem is left out that concerns it, or the
        mapping that it is in as a whole.
        """
        for below, text in found:
            where = (*path, *below)
            is_in_wrong_value = any(where[:length] in self._wrong for length in range(len(where) + 1))
            if not is_in_wrong_value and where not in self._incomplete:
                self.found.append((where, text))

    def concern(self, path: Path) -> bool:
        """Return True if a value at or below ``path`` is wrong."""
        return any(wrong[: len(path)] == path for wrong in self._wrong)


def dotted(path: Path) -> str:
    """Return ``path`` as text, such as ``events[2].type``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else ("." if text else "") + part
    return text


def problem_text(path: Path, text: str) -> str:
    """Return a problem as ``KEY: PROBLEM``."""
    return f"{dotted(path)}: {text}" if path else text


@dataclass(frozen=True)
class Type:
    """A type of values; value_types.py has those of scenarios.

    ``read`` returns what a field gets for a value, or adds a problem and returns None. ``schema`` is a JSON Schema.
    ``metavar`` stands for a value in the help of a command line. ``from_text`` returns the JSON value that a text of
    the command line means; other text it returns unchanged, so that ``read`` reports it.
    """

    read: Callable[[Any, Path, Problems], Any]
    schema: Mapping[str, Any]
    metavar: str = "VALUE"
    from_text: Callable[[str], Any] = str


@dataclass(frozen=True)
class Key:
    """A key of a mapping."""

    name: str
    field: str
    type: Type
    meaning: str
    default: Any
    required: bool


def key(
    type_: Type,
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    required: bool = False,
    name: str = "",
    at: Callable[[Path], Any] | None = None,
) -> Any:
    """Declare a field of a dataclass that is a key; without ``default`` the key is required.

    The default of a ``required`` key stands in for a wrong or missing value while the other problems are found.
    ``at`` returns the default for a value that is read at a path.
    """
    required = required or default is dataclasses.MISSING
    declared = Key(name, "", type_, meaning, default, required)
    metadata = {"key": declared, "at": at}
    # pylint: disable=invalid-field-call
    if isinstance(default, Mapping):
        # dataclasses refuse defaults without a hash, also immutable ones
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def from_path(at: Callable[[Path], Any], default: Any, *, compare: bool = True) -> Any:
    """Declare a field that is not a key: its value follows from the path of the mapping, such as a name.

    ``default`` is its value where there is no path.
    """
    return dataclasses.field(default=default, metadata={"at": at}, compare=compare)  # pylint: disable=invalid-field-call


@cache
def keys_of(cls: Any) -> Mapping[str, Key]:
    """Return name -> key of the class, in the order of its fields."""
    declared = [(each.name, each.metadata["key"]) for each in dataclasses.fields(cls) if "key" in each.metadata]
    keys = [dataclasses.replace(each, field=field, name=each.name or field) for field, each in declared]
    return {each.name: each for each in keys}


def read(cls: type[_T], data: Any, path: Path, problems: Problems) -> _T | None:
    """Return the value of ``cls`` that the mapping ``data`` at ``path`` describes; nothing is an empty mapping.

    All problems of ``data`` are added to ``problems``. A wrong value gets the default of its key; None is returned
    only if there is none.
    """
    kind: Any = cls
    values = read_values(kind, data, path, problems)
    if values is None or any(
        each.default is dataclasses.MISSING and each.field not in values for each in keys_of(kind).values()
    ):
        return None
    for each in dataclasses.fields(kind):
        at = each.metadata.get("at")
        if at is not None and path and each.name not in values:
            values[each.name] = at(path)
    value = cls(**values)
    if hasattr(value, "check"):
        problems.check(value.check(), path)
    return value


def read_values(cls: Any, data: Any, path: Path, problems: Problems) -> dict[str, Any] | None:
    """Return field -> value for the keys that ``data`` has; None if it is not a mapping."""
    if data is not None and not isinstance(data, Mapping):
        problems.add(path, f"{data!r} is not a mapping")
        return None
    keys, given = keys_of(cls), data or {}
    for name in given:
        if name not in keys:
            problems.add((*path, name), _unknown_key(cls, name, keys))
    values = {}
    for name, each in keys.items():
        if name in given:
            value = each.type.read(given[name], (*path, name), problems)
            if value is not None:
                values[each.field] = value
        elif each.required:
            problems.add(path, f"the key {name} is missing", name)
    return values


def _unknown_key(cls: type, name: str, keys: Iterable[str]) -> str:
    removed: Mapping[str, str] = getattr(cls, "REMOVED_KEYS", {})
    if name in removed:
        return removed[name]
    known = getattr(cls, "KEYS_ARE_LISTED", "known keys: " + ", ".join(keys))
    return f"unknown key{suggestion(name, keys) or '; ' + known}"


def json_schema(cls: type) -> dict[str, Any]:
    """Return the JSON Schema of the mappings that ``read`` accepts for ``cls``, except for its checks."""
    keys = keys_of(cls)
    properties = {name: {"description": each.meaning, **each.type.schema} for name, each in keys.items()}
    required = [name for name, each in keys.items() if each.required]
    schema = {"type": "object" if required else ["object", "null"], "additionalProperties": False}
    return {**schema, "properties": properties, **({"required": required} if required else {})}


def scalar(
    what: str,
    parse: Callable[[Any], Any],
    schema: Mapping[str, Any],
    metavar: str = "VALUE",
    from_text: Callable[[str], Any] = str,
) -> Type:
    """Return a type without parts.

    ``parse`` raises ValueError for a wrong value; an error without text means "VALUE is not ``what``".
    """

    def read_scalar(value: Any, path: Path, problems: Problems) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            problems.add(path, str(error) or f"{value!r} is not {what}")
            return None

    return Type(read_scalar, schema, metavar, from_text)


def nested(cls: type) -> Type:
    """Return the type of mappings that are values of the dataclass ``cls``."""
    return Type(lambda value, path, problems: read(cls, value, path, problems), json_schema(cls))


def list_of(item: Type, *, least: int = 0, unique: bool = False, what: str = "a list") -> Type:
    """Return the type of lists of at least ``least`` items, which differ if ``unique``; the value is a tuple."""

    def read_list(value: Any, path: Path, problems: Problems) -> tuple[Any, ...] | None:
        if not isinstance(value, (list, tuple)):
            problems.add(path, f"{value!r} is not {what}")
            return None
        if len(value) < least:
            problems.add(path, "the list is empty")
        items = [item.read(each, (*path, index), problems) for index, each in enumerate(value)]
        seen = set()
        for index, each in enumerate(items if unique else ()):
            if each is not None and each in seen:
                problems.add((*path, index), f"{each} is in the list twice")
            seen.add(each)
        return tuple(each for each in items if each is not None)

    schema = {"type": "array", "minItems": least, "uniqueItems": unique, "items": item.schema}
    return Type(read_list, schema, "VALUE,VALUE", lambda text: [each.strip() for each in text.split(",")])


def mapping_of(cls: type, names: Type | None = None) -> Type:
    """Return the type of mappings of at least one name to a value of ``cls``; the result is a tuple of the values.

    With ``names``, the type of a list of names, such a list serves as well: each value has its defaults.
    """
    what = "a mapping" if names is None else "a mapping or a list of names"

    def read_mapping(value: Any, path: Path, problems: Problems) -> tuple[Any, ...] | None:
        if names is not None and isinstance(value, list):
            value = dict.fromkeys(names.read(value, path, problems))
        elif not isinstance(value, Mapping) or not value:
            problems.add(path, "the mapping is empty" if value == {} else f"{value!r} is not {what}")
            return None
        values = [read(cls, each, (*path, name), problems) for name, each in value.items()]
        return tuple(each for each in values if each is not None)

    schema = {"type": "object", "minProperties": 1, "additionalProperties": json_schema(cls)}
    if names is not None:
        schema = {**names.schema, **schema, "type": ["object", "array"]}
    return Type(read_mapping, schema)
