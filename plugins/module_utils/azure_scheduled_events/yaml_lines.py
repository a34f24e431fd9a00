# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""YAML files whose errors name file and line, also those that are found later in the data."""

from __future__ import annotations

from typing import Any, Callable, Optional

from .named_tuple import NamedTuple


class YamlError(ValueError):
    """A file that cannot be read, or is no YAML of plain data; the text names the file, and the line where there is one."""


class YamlSource(NamedTuple):
    """What a file says.

    Attributes:
        data: plain data.
        lines: the line of every key and item, counted from 1, by its path of keys and indexes.
    """

    data: Any
    lines: dict[tuple[object, ...], int]


YamlLoader = Callable[[str, str, str], Optional[YamlSource]]


def read_text(path: str, kind: str) -> str:
    """The text of a file; ``kind`` says in the error what file it is. Raises YamlError."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise YamlError(f"{kind} {path} cannot be read: {error}") from error


def load_with_lines(text: str, name: str, kind: str) -> YamlSource | None:
    """The data of YAML text, None where it is empty; ``name`` and ``kind`` say in errors what file it is. Raises YamlError."""
    try:
        import yaml  # only who reads a file needs PyYAML
    except ImportError as error:
        raise YamlError(f"{kind} {name}: the Python library PyYAML is not installed on this host") from error
    lines: dict[tuple[object, ...], int] = {}
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if node is None else YamlSource(_to_data(node, (), lines, yaml.SafeLoader(""), name), lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise YamlError(f"{name}{line}: not YAML: {problem}") from None
    except RecursionError:
        raise YamlError(f"{name}: nested too deeply, or an anchor that refers to itself") from None


def _to_data(node: Any, path: tuple[object, ...], lines: dict[tuple[object, ...], int], loader: Any, name: str) -> Any:
    """The node as plain data; the line of every part goes into ``lines``. A key that stands twice is an error."""
    lines.setdefault(path, node.start_mark.line + 1)
    if node.id == "sequence":
        return [_to_data(child, (*path, index), lines, loader, name) for index, child in enumerate(node.value)]
    if node.id != "mapping":
        return _scalar(node, loader, name)
    data: dict[object, Any] = {}
    for key_node, child in node.value:
        line = key_node.start_mark.line + 1
        if key_node.id != "scalar":
            raise YamlError(f"{name}:{line}: a key has to be a plain word")
        key = _scalar(key_node, loader, name)
        if key in data:
            raise YamlError(f"{name}:{line}: the key {key!r} stands twice")
        lines[(*path, key)] = line
        data[key] = _to_data(child, (*path, key), lines, loader, name)
    return data


def _scalar(node: Any, loader: Any, name: str) -> Any:
    try:
        return loader.construct_object(node)
    except ValueError as error:
        raise YamlError(
            f"{name}:{node.start_mark.line + 1}: {node.value!r} is not what it looks like: {error}"
        ) from None
