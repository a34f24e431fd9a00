# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the configurations that the pages of docs/ready-hooks print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from support.repository import REPOSITORY

PAGES = REPOSITORY / "docs" / "ready-hooks"
_LIST = "hook_runner_ready_hooks"
_YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def entries(page: str) -> list[dict[str, Any]]:
    """Return the entries of all lists `hook_runner_ready_hooks` that the page prints, in their order."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return [entry for block in _YAML_BLOCK.findall(text) for entry in _found(yaml.safe_load(block))]


def options(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the hook: all keys but those of the role."""
    return {name: value for name, value in entry.items() if name not in ("use", "settings")}


def _found(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield from value.get(_LIST, ())
        for each in value.values():
            yield from _found(each)
    elif isinstance(value, list):
        for each in value:
            yield from _found(each)
