# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses YAML with the line of every key and item, and reports duplicate keys.

The helper has its own ``yaml_lines.py``: see docs/decisions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from ..keys import Path, Problems

# keys and items with aliases expanded; a few lines of aliases of aliases can mean billions
_MOST_VALUES = 500_000


class _Loader(yaml.SafeLoader):
    """The safe loader without dates: an api-version such as 2020-07-01 stays text."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _loader, node: str(node.value))


@dataclass
class YamlSource:
    """The data of a file, the line of each part of it, from 1, and the problems of its YAML."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=lambda: {(): 1})
    problems: Problems = field(default_factory=Problems)

    def line(self, path: Path) -> int:
        """Return the line of ``path``, or of its nearest parent in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def add_problem(self, line: int, path: Path, text: str) -> None:
        """Add a problem of the value at ``path``, which is on ``line``."""
        self.lines[path] = line
        self.problems.add(path, text)


def read_yaml(text: str) -> YamlSource:
    """Parse ``text``. Syntax errors and duplicate keys are ``problems`` of the result."""
    result = YamlSource()
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            result.data = _build(loader, node, (), result, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        result.add_problem(mark.line + 1 if mark else 1, (), f"not YAML: {error.problem or error.context}")
    except yaml.YAMLError as error:
        result.add_problem(1, (), f"not YAML: {str(error).splitlines()[0]}")
    except RecursionError:
        result.add_problem(1, (), "not YAML: lists or mappings are nested too deeply")
    except (ValueError, OverflowError):  # of chr(), which PyYAML calls for an escape
        result.add_problem(loader.line + 1, (), "not YAML: an escape such as \\UFFFFFFFF is not a character")
    return result


def _build(loader: Any, node: Any, path: Path, result: YamlSource, above: tuple[int, ...]) -> Any:
    if id(node) in above:
        result.add_problem(node.start_mark.line + 1, path, "the alias contains itself")
        return None
    if len(result.lines) > _MOST_VALUES:
        raise yaml.YAMLError(f"it has more than {_MOST_VALUES} values; use fewer aliases")
    above += (id(node),)
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, result, above)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, child in enumerate(node.value):
            result.lines[(*path, index)] = child.start_mark.line + 1
            if isinstance(child, yaml.ScalarNode):
                # a list of names can stand for a mapping
                result.lines.setdefault((*path, child.value), child.start_mark.line + 1)
            items.append(_build(loader, child, (*path, index), result, above))
        return items
    try:
        value = loader.construct_object(node)
        # an error for a number that Python refuses to show in a message, such as a long hexadecimal one
        str(value)
        return value
    except ValueError as error:
        result.add_problem(node.start_mark.line + 1, path, f"not YAML: {error}")
        return None


def _mapping(loader: Any, node: Any, path: Path, result: YamlSource, above: tuple[int, ...]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, child in node.value:
        line = key_node.start_mark.line + 1
        # the text as written, because a VM may have the name "1" or "on"
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            result.add_problem(line, (*path, "?"), "the key is not plain text")
        elif key in mapping:
            first = result.lines[(*path, key)]
            result.add_problem(line, (*path, key), f"duplicate key; it is on line {first} already")
        else:
            result.lines[(*path, key)] = line
            mapping[key] = _build(loader, child, (*path, key), result, above)
    return mapping
