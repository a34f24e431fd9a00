# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Parses steps that are ready hooks, and returns their command lines. Pure."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.options import parse_choice, parse_option

USE = "use"
# the hooks below salt://azure_events/hooks
NAMES = (
    "command",
    "connections",
    "haproxy",
    "health-file",
    "kubernetes",
    "log",
    "notify",
    "pacemaker",
    "postgresql",
    "redis",
    "slurm",
    "systemd-units",
)

# the kernel allows 128 KiB for one argument
_MAX_OPTION_BYTES = 8 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class ReadyHook(NamedTuple):
    """One ready hook of the configuration.

    Attributes:
        name: of the hook among those of the minion; it is also the name of its record.
        use: one of NAMES.
        options: of the hook, with its name.
        timeout: of the step as the settings give it; None if they do not.
    """

    name: str
    use: str
    options: dict[str, Any]
    timeout: Any


def parse_ready_hook(item: Mapping[Any, Any]) -> ReadyHook:
    """Return the ready hook of an item with the key ``use``.

    The ValueError for an invalid item names the key. The hook itself checks its options:
    ``azure_events.check`` has the result.
    """
    use = parse_option(USE, item[USE], partial(parse_choice, known=NAMES, kind="ready hook"))
    name = use if item.get("name") is None else item["name"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"name: expected at most 80 letters, digits, dots, dashes and underscores for a ready hook, not {name!r}"
        )
    if "timeout" in item:
        raise ValueError(
            f"timeout: it is no option of a ready hook; write settings: {{timeout: {item['timeout']}}}, as in the roles"
        )
    options = {key: value for key, value in item.items() if key not in (USE, "name", "settings")}
    for key, value in options.items():
        _check_option(key, value)
    return ReadyHook(name, use, {**options, "name": name}, _settings(item).get("timeout"))


def arguments(python: str, folder: str, use: str, verb: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command line of a ready hook.

    The interpreter ignores variables and packages of the user, and writes no bytecode. ``folder`` is the
    folder ``ready_hooks``, ``use`` one of NAMES, and ``verb`` prepare, recover or check.
    """
    return (python, "-sEB", folder, use, verb, "--json", json.dumps(options, sort_keys=True))


def _check_option(key: Any, value: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(f"expected a text as name of an option, not {key!r}")
    try:
        size = len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{key}: expected numbers, texts, lists or mappings: {error}") from None
    if size > _MAX_OPTION_BYTES:
        raise ValueError(f"{key}: expected at most {_MAX_OPTION_BYTES} bytes, not {size}")


def _settings(item: Mapping[Any, Any]) -> Mapping[Any, Any]:
    given = item.get("settings") or {}
    if not isinstance(given, Mapping):
        raise ValueError(f"settings: expected a mapping, not {given!r}")
    for key in given:
        if key != "timeout":
            raise ValueError(f"settings.{key}: in Salt a ready hook has only the setting timeout; remove {key}")
    return given
