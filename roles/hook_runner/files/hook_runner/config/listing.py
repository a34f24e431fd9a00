# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Every key of the configuration with its value, its default and where it is set."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Sequence

from azure_scheduled_events.policy import Policy
from azure_scheduled_events.printable import printable
from hook_runner.config.settings import DEFAULTS, KEYS, HookSettings, Settings


class Entry(NamedTuple):
    """One key, such as "interval" or "hooks.10-drain.timeout".

    Attributes:
        value, default: JSON values; a policy is its name.
        source: "default", or FILE:LINE.
    """

    key: str
    value: Any
    default: Any
    source: str


def entries(settings: Settings) -> list[Entry]:
    """Return all keys in the order of `Settings`; of the hooks those that are set."""
    found = [
        Entry(key, _plain(getattr(settings, key)), _plain(getattr(DEFAULTS, key)), settings.source(key))
        for key in KEYS
        if key != "hooks" or not settings.hooks
    ]
    for name, keys in settings.hooks.items():
        for key, value in keys.items():
            default = _plain(getattr(HookSettings(), key))
            found.append(Entry(f"hooks.{name}.{key}", _plain(value), default, settings.source("hooks", name, key)))
    return found


def as_text(listed: Sequence[Entry]) -> str:
    """Return the keys as a table; no final line break."""
    lines = [("KEY", "VALUE", "DEFAULT", "SOURCE")]
    lines += [(key, json.dumps(value), json.dumps(default), source) for key, value, default, source in listed]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        printable("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()) for line in lines
    )


def changed_keys(settings: Settings) -> str:
    """Return the keys that differ from their defaults, on one line; of variables for hooks only the names."""
    shown = settings._replace(environment=dict.fromkeys(settings.environment, "..."))
    return ", ".join(f"{each.key} {json.dumps(each.value)}" for each in entries(shown) if each.value != each.default)


def _plain(value: Any) -> Any:
    return value.name if isinstance(value, Policy) else list(value) if isinstance(value, tuple) else value
