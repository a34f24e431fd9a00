# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""YAML files with the line of every key, so that errors can name file and line."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple


class SourceLocation(NamedTuple):
    """The location of a part of a file, for error texts.

    As text it is such as ``policy.yml:12: rules[0].when.type``, with the line of the nearest part that has one.

    Attributes:
        name: of the file, or of what stands for it.
        lines: the line of every key and item, counted from 1, by its path; empty without a file.
        path: the keys and indexes that lead to the part.
    """

    name: str
    lines: Mapping[tuple[object, ...], int] = {}
    path: tuple[object, ...] = ()

    def at(self, *path: object) -> SourceLocation:
        """Return the location of a part of this part."""
        return self._replace(path=(*self.path, *path))

    def __str__(self) -> str:
        above = (self.path[:size] for size in range(len(self.path), -1, -1))
        known = next((path for path in above if path in self.lines), None)
        line = f":{self.lines[known]}" if known is not None else ""
        dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).lstrip(".")
        return f"{self.name}{line}{': ' + dotted if dotted else ''}"


def read_text(path: str, kind: str) -> str:
    """Return the text of a file, else raise ValueError; ``kind`` names the kind of file in the error."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{kind} {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def load_with_lines(text: str, name: str, kind: str) -> tuple[Any, SourceLocation]:
    """Return the plain data of YAML text, and its location, which has no lines if the text is empty.

    ``name`` and ``kind`` are those of the file, for error texts.

    Raises:
        ValueError: the text is not YAML of plain data without aliases, or PyYAML is missing.
    """
    try:
        import yaml  # only readers of a file need PyYAML
    except ImportError as error:
        raise ValueError(f"{kind} {name}: the Python library PyYAML is not installed on this host") from error
    try:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except (ValueError, OverflowError):  # of chr(), which PyYAML calls for an escape
            raise ValueError(f"{name}: not YAML: an escape such as \\UFFFFFFFF is not a character") from None
        reader = _NodeReader(name, yaml.SafeLoader(""))
        data = None if node is None else reader.read(node, ())
        return data, SourceLocation(name, reader.lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise ValueError(f"{name}{line}: not YAML: {problem}") from None
    except RecursionError:
        raise ValueError(f"{name}: nested too deeply") from None


# Python does not print integers of more than 4,300 digits
_INTEGERS = 1 << 63


class _NodeReader:
    """Turns the nodes of one file into plain data; ``lines`` gets the line of every part."""

    def __init__(self, name: str, loader: Any) -> None:
        self._name = name
        self._loader = loader
        self._read: set[int] = set()
        self.lines: dict[tuple[object, ...], int] = {}

    def read(self, node: Any, path: tuple[object, ...]) -> Any:
        """Return the data of a node; raise ValueError for an alias, a repeated key, or other than plain data."""
        self._refuse_alias(node)
        self.lines.setdefault(path, _line(node))
        if node.id == "sequence":
            return [self.read(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._mapping(node, path) if node.id == "mapping" else self._scalar(node)

    def _mapping(self, node: Any, path: tuple[object, ...]) -> dict[object, Any]:
        data: dict[object, Any] = {}
        for key_node, child in node.value:
            if key_node.id != "scalar":
                raise self._error(key_node, "a key has to be a scalar")
            self._refuse_alias(key_node)
            key = self._scalar(key_node)
            if key in data:
                raise self._error(key_node, f"the key {key!r} is repeated")
            self.lines[(*path, key)] = _line(key_node)
            data[key] = self.read(child, (*path, key))
        return data

    def _scalar(self, node: Any) -> Any:
        try:
            value = self._loader.construct_object(node)
            if isinstance(value, int) and abs(value) >= _INTEGERS:
                raise ValueError("an integer has at most 64 bits")
            return value
        except (ValueError, ArithmeticError, LookupError, AttributeError) as error:
            # PyYAML raises the last two for a value that does not fit its tag
            raise self._error(node, f"{node.value!r} is not a valid value: {error}") from None

    def _refuse_alias(self, node: Any) -> None:
        if id(node) in self._read:
            # a few lines of nested aliases have millions of values
            raise self._error(node, "an alias refers to this value; write the value out in each place")
        self._read.add(id(node))

    def _error(self, node: Any, problem: str) -> ValueError:
        return ValueError(f"{self._name}:{_line(node)}: {problem}")


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
