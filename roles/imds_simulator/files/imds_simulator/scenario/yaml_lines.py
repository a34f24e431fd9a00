# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses YAML with the line of every key and item, and reports duplicate keys.

The helper has its own ``yaml_lines.py``: see docs/decisions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from ..keys import Path, problem_text


@dataclass(frozen=True)
class Problem:
    """A problem at a line of the file; ``line`` counts from 1."""

    line: int
    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.line}: {problem_text(self.path, self.message)}"


class _Loader(yaml.SafeLoader):
    """The safe loader without dates: an api-version such as 2020-07-01 stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# also with the tag !!timestamp
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _loader, node: str(node.value))


@dataclass
class YamlSource:
    """The data of a file, the line of each part of it, and the problems of its YAML."""

    data: Any
    lines: dict[Path, int]
    problems: list[Problem]
    parsed: bool = False

    def line(self, path: Path) -> int:
        """Return the line of ``path``, or of its nearest parent in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> YamlSource:
    """Parse ``text``. The result lists syntax errors and duplicate keys in ``problems``."""
    result = YamlSource(None, {(): 1}, [])
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            result.data = _build(loader, node, (), result, ())
        result.parsed = True
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        result.problems.append(Problem(mark.line + 1 if mark else 1, (), f"not YAML: {error.problem or error.context}"))
    except yaml.YAMLError as error:
        result.problems.append(Problem(1, (), f"not YAML: {str(error).splitlines()[0]}"))
    except RecursionError:
        result.problems.append(Problem(1, (), "not YAML: lists or mappings are nested too deeply"))
    finally:
        if loader is not None:
            loader.dispose()
    return result


def _build(loader: Any, node: Any, path: Path, result: YamlSource, above: tuple[int, ...]) -> Any:
    if id(node) in above:
        result.problems.append(Problem(node.start_mark.line + 1, path, "the alias contains itself"))
        return None
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
        result.problems.append(Problem(node.start_mark.line + 1, path, f"not YAML: {error}"))
        return None


def _mapping(loader: Any, node: Any, path: Path, result: YamlSource, above: tuple[int, ...]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, child in node.value:
        line = key_node.start_mark.line + 1
        # the text as written, because a VM may have the name "1" or "on"
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            result.problems.append(Problem(line, path, "the key is not plain text"))
        elif key in mapping:
            result.problems.append(
                Problem(
                    line,
                    (*path, key),
                    f"duplicate key; it is on line {result.lines[(*path, key)]} already",
                )
            )
        else:
            result.lines[(*path, key)] = line
            mapping[key] = _build(loader, child, (*path, key), result, above)
    return mapping
