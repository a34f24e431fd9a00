# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A policy from a YAML file, with errors that name file, line and key."""

from __future__ import annotations

from typing import Any

from .policy import Places, Policy, PolicyError


def load_policy(path: str) -> Policy:
    """Read a policy file. Raises PolicyError for a file that cannot be read, is no YAML, or is no policy."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError("policy file %s cannot be read: %s" % (path, error)) from error
    return parse_policy(text, path)


def parse_policy(text: str, name: str) -> Policy:
    """Read a policy from YAML text; ``name`` stands for the file in errors."""
    try:
        import yaml  # only policy files need PyYAML
    except ImportError as error:
        raise PolicyError("policy file %s: the Python library PyYAML is not installed on this host" % name) from error
    lines: dict[tuple[object, ...], int] = {}
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise PolicyError("%s:1: the policy is empty" % name)
        data = _plain(node, (), lines, yaml.SafeLoader(""), name)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = ":%d" % (mark.line + 1) if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise PolicyError("%s%s: not YAML: %s" % (name, line, problem)) from None
    except RecursionError:
        raise PolicyError("%s: nested too deeply, or an anchor that refers to itself" % name) from None
    return Policy.from_mapping(data, Places(name, lines))


def _plain(node: Any, path: tuple[object, ...], lines: dict[tuple[object, ...], int], loader: Any, name: str) -> Any:
    """The node as plain data; the line of every part goes into ``lines``. A key that stands twice is an error."""
    lines.setdefault(path, node.start_mark.line + 1)
    if node.id == "sequence":
        return [_plain(child, path + (index,), lines, loader, name) for index, child in enumerate(node.value)]
    if node.id != "mapping":
        return _scalar(node, loader, name)
    data: dict[object, Any] = {}
    for key_node, child in node.value:
        line = key_node.start_mark.line + 1
        if key_node.id != "scalar":
            raise PolicyError("%s:%d: a key has to be a plain word" % (name, line))
        key = _scalar(key_node, loader, name)
        if key in data:
            raise PolicyError("%s:%d: the key %r stands twice" % (name, line, key))
        lines[path + (key,)] = line
        data[key] = _plain(child, path + (key,), lines, loader, name)
    return data


def _scalar(node: Any, loader: Any, name: str) -> Any:
    try:
        return loader.construct_object(node)
    except ValueError as error:
        raise PolicyError("%s:%d: %r is not what it looks like: %s" % (name, node.start_mark.line + 1, node.value, error)) from None
