# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Every key of the configuration with its value, its default and where it is set."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Sequence

from azure_scheduled_events.policy import Policy
from azure_scheduled_events.printable import printable
from hook_runner.config.settings import DEFAULTS, ConfigFile, HookSettings, Settings


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


def entries(config: ConfigFile) -> list[Entry]:
    """Return all keys in the order of `Settings`; of the hooks those that are set."""
    settings, defaults = config.settings, HookSettings()
    found = [
        Entry(key, _plain(getattr(settings, key)), _plain(getattr(DEFAULTS, key)), config.source(key))
        for key in Settings._fields
        if key != "hooks" or not settings.hooks
    ]
    for name, keys in settings.hooks.items():
        for key, value in keys.items():
            source = config.source("hooks", name, key)
            found.append(Entry(f"hooks.{name}.{key}", _plain(value), _plain(getattr(defaults, key)), source))
    return found


def as_text(listed: Sequence[Entry]) -> str:
    """Return the keys as a table; no final line break."""
    lines = [("KEY", "VALUE", "DEFAULT", "SOURCE")]
    lines += [(key, json.dumps(value), json.dumps(default), source) for key, value, default, source in listed]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        printable("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths)), line[3]])) for line in lines
    )


def changed_keys(settings: Settings) -> str:
    """Return the keys that differ from their defaults, on one line; of variables for hooks only the names."""
    shown = settings._replace(environment=dict.fromkeys(settings.environment, "..."))
    changed = (each for each in entries(ConfigFile(shown, "")) if each.value != each.default)
    return ", ".join(f"{each.key} {json.dumps(each.value)}" for each in changed)


def _plain(value: Any) -> Any:
    return value.name if isinstance(value, Policy) else list(value) if isinstance(value, tuple) else value
