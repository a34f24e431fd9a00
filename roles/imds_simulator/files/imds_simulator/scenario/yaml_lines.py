# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""YAML with the line of every key and item, and with duplicate keys as errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

import yaml

Path = tuple[Union[str, int], ...]


@dataclass(frozen=True)
class Problem:
    """Something wrong at a place of the file; ``line`` counts from 1."""

    line: int
    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.line}: {dotted(self.path) + ': ' if self.path else ''}{self.message}"


class _Loader(yaml.SafeLoader):
    """The safe loader, except that 2020-07-01 stays the text that an api-version is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass
class Located:
    """The data of a file, where each part of it stands, and what is wrong with it as YAML."""

    data: Any
    lines: dict[Path, int]
    problems: list[Problem]
    parsed: bool = False

    def line(self, path: Path) -> int:
        """The line of ``path``, or of the nearest part of it that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> Located:
    """Parse ``text``; syntax errors and duplicate keys are in ``problems``."""
    result = Located(None, {(): 1}, [])
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            result.data = _build(loader, node, (), result, ())
        result.parsed = True
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        result.problems.append(
            Problem(mark.line + 1 if mark else 1, (), "not YAML: %s" % (error.problem or error.context))
        )
    except yaml.YAMLError as error:
        result.problems.append(Problem(1, (), f"not YAML: {str(error).splitlines()[0]}"))
    finally:
        if loader is not None:
            loader.dispose()
    return result


def dotted(path: Path) -> str:
    """``events[2].type``"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else ("." if text else "") + part
    return text


def _build(loader: Any, node: Any, path: Path, result: Located, above: tuple[int, ...]) -> Any:
    if id(node) in above:
        result.problems.append(Problem(node.start_mark.line + 1, path, "an alias that contains itself"))
        return None
    above += (id(node),)
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, result, above)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, child in enumerate(node.value):
            result.lines[(*path, index)] = child.start_mark.line + 1
            items.append(_build(loader, child, (*path, index), result, above))
        return items
    try:
        return loader.construct_object(node)
    except ValueError as error:
        result.problems.append(Problem(node.start_mark.line + 1, path, f"not YAML: {error}"))
        return None


def _mapping(loader: Any, node: Any, path: Path, result: Located, above: tuple[int, ...]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, child in node.value:
        line = key_node.start_mark.line + 1
        # as written: a VM may be called "1" or "on"
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            result.problems.append(Problem(line, path, "a key must be plain text"))
        elif key in mapping:
            result.problems.append(
                Problem(
                    line,
                    (*path, key),
                    f"the same key stands here twice (first on line {result.lines[(*path, key)]})",
                )
            )
        else:
            result.lines[(*path, key)] = line
            mapping[key] = _build(loader, child, (*path, key), result, above)
    return mapping
