# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Replies to ``/metadata/instance`` and its subtrees (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..http_reply import Reply
from ..instance_metadata.values import text
from .request import Target
from .responses import JSON_TYPE, TEXT_TYPE, compact, error


def element(document: Mapping[str, Any], target: Target) -> Reply:
    """Return one element as JSON or text, or an error; names match in any letter case (reference 1.1.3)."""
    output_format = target.query.get("format", "json").lower()
    if output_format not in ("json", "text"):
        return error(400, "Bad request. format is invalid")
    found: Any = document
    for name in target.below:
        found = _child(found, name)
        if found is None:
            return error(404, "Not found. The requested element does not exist")
    if output_format == "text":
        content = text(found) if _is_leaf(found) else "\n".join(_listing(found))
        # YAML and JSON may have half of a pair, which UTF-8 has not
        return Reply(200, content.encode(errors="backslashreplace"), TEXT_TYPE)
    if _is_leaf(found):
        return error(400, "Bad request. Parameter format=text is required for a leaf element")
    return Reply(200, compact(found), JSON_TYPE)


def _is_leaf(node: Any) -> bool:
    """Return True for a value; in the recording of another program it may be a number or a boolean."""
    return not isinstance(node, (Mapping, list))


def _child(node: Any, name: str) -> Any | None:
    if isinstance(node, Mapping):
        return next((value for key, value in node.items() if key.lower() == name.lower()), None)
    if isinstance(node, list) and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(node):
        return node[int(name)]
    return None


def _listing(node: Any) -> list[str]:
    """Return the names in a subtree; a name with elements below it ends in a slash."""
    items = node.items() if isinstance(node, Mapping) else enumerate(node)
    return [f"{name}{'' if _is_leaf(value) else '/'}" for name, value in items]
