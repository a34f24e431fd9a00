# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The configuration: the table of all keys of config.yml, and how the file is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, get_type_hints

from azure_scheduled_events.document import API_VERSION
from azure_scheduled_events.endpoint import DEFAULT_ENDPOINT, parse_api_versions, parse_endpoint
from azure_scheduled_events.hook_input import MARGIN
from azure_scheduled_events.options import (
    parse_boolean,
    parse_choice,
    parse_event_types,
    parse_integer,
    parse_seconds,
    type_warnings,
)
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.yaml_lines import load_with_lines, read_text
from hook_runner.config import values
from hook_runner.config.removed_keys import REMOVED_KEYS
from hook_runner.config.schema import Names, Schema, read
from hook_runner.permissions import permission_problem
from hook_runner.records import PREPARE

DEFAULT_PATH = "/etc/azure-scheduled-events/config.yml"
# the limits of a hook's unit; systemd reads the values, and `check` asks it whether it accepts them
LIMITS = (
    "CPUQuota",
    "CPUWeight",
    "IOWeight",
    "MemoryHigh",
    "MemoryMax",
    "MemorySwapMax",
    "Nice",
    "OOMScoreAdjust",
    "TasksMax",
)
# marks a key in the table below that is in RESTART_ONLY_SETTINGS
RESTART = "restart"
_MONTH = 30 * 86400


class ConfigError(ValueError):
    """An unusable configuration. Each of `problems` has file, line and key, and a suggestion if there is one."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _declared(table: type[tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return for each key that a class of settings declares its schema, and RESTART if it has that."""
    hints = get_type_hints(table, include_extras=True)
    return {key: hint.__metadata__ for key, hint in hints.items() if hasattr(hint, "__metadata__")}


def _schemas(table: type[tuple[Any, ...]]) -> dict[str, Schema]:
    return {key: declared[0] for key, declared in _declared(table).items()}


class HookSettings(NamedTuple):
    """The settings of one hook; see docs/configuration.md for the meaning of each key. Times are seconds."""

    timeout: Annotated[float, partial(parse_seconds, least=0.1, most=_MONTH)] = 600.0
    types: Annotated[tuple[str, ...], parse_event_types] = ()
    on_failure: Annotated[str, partial(parse_choice, known=("continue", "stop", "ignore"))] = "continue"
    needs: Annotated[float, partial(parse_seconds, most=_MONTH)] = 0.0
    rerun: Annotated[bool, parse_boolean] = True
    persists: Annotated[bool, parse_boolean] = False
    unit: Annotated[Mapping[str, str], dict.fromkeys(LIMITS, values.limit)] = {}


def _hook_schema(name: str) -> Schema:
    """Return the schema of the settings of a "NAME" or "STAGE/NAME"."""
    has_deadline = "/" not in name or name.startswith(PREPARE + "/")
    refused = {} if has_deadline else {"needs": "only hooks of stage prepare have a deadline; remove needs"}
    return {**_schemas(HookSettings), **refused}


class Settings(NamedTuple):
    """The keys of config.yml; see docs/configuration.md for the meaning of each. Times are seconds.

    `hooks` has the keys that are set for each "NAME" and "STAGE/NAME"; `hook` merges them. `sources` is not a key: it
    has FILE:LINE of each key and item of the file, by the keys that lead to it.
    """

    endpoint: Annotated[str, parse_endpoint, RESTART] = DEFAULT_ENDPOINT
    api_version: Annotated[tuple[str, ...], parse_api_versions, RESTART] = (API_VERSION,)
    resource_name: Annotated[str, values.text, RESTART] = ""
    interval: Annotated[float, partial(parse_seconds, least=0.2, most=60), RESTART] = 1.0
    timeout: Annotated[float, partial(parse_seconds, least=0.5, most=600), RESTART] = 10.0
    first_timeout: Annotated[float, partial(parse_seconds, least=0.5, most=3600), RESTART] = 130.0
    policy: Annotated[Policy, Policy] = Policy.preset("observe")
    leader: Annotated[str, partial(parse_choice, known=values.LEADERS)] = values.SELF_ONLY
    takeover_after: Annotated[float, partial(parse_seconds, most=86400)] = 60.0
    margin: Annotated[float, partial(parse_seconds, most=3600)] = MARGIN
    kill_after: Annotated[float, partial(parse_seconds, most=600)] = 5.0
    when_started: Annotated[str, partial(parse_choice, known=("stop", "finish"))] = "stop"
    dry_run: Annotated[bool, parse_boolean] = False
    hooks_directory: Annotated[str, values.path] = "/etc/azure-scheduled-events/hooks.d"
    state_directory: Annotated[str, values.path, RESTART] = "/var/lib/azure-scheduled-events/hook-runner"
    run_directory: Annotated[str, values.run_path, RESTART] = "/run/azure-scheduled-events"
    control_group: Annotated[str, values.text, RESTART] = ""
    status_group: Annotated[str, values.text, RESTART] = ""
    history_events: Annotated[int, partial(parse_integer, least=1, most=100000)] = 200
    metrics_file: Annotated[str, values.optional_path, RESTART] = ""
    metrics_address: Annotated[str, values.loopback_address, RESTART] = ""
    environment: Annotated[Mapping[str, str], Names.of(values.variable, values.text)] = {}
    gates: Annotated[Mapping[str, str], Names.of(values.text, values.path)] = {}
    log_level: Annotated[str, partial(parse_choice, known=("debug", "info", "warning", "error"))] = "info"
    hooks: Annotated[Mapping[str, Mapping[str, Any]], Names(values.hook_key, _hook_schema)] = {}
    sources: Mapping[tuple[object, ...], str] = {}

    def hook(self, stage: str, name: str) -> HookSettings:
        """Return the settings of one hook: those of "STAGE/NAME" override those of "NAME"."""
        found = HookSettings()
        for key in (name, f"{stage}/{name}"):
            found = found._replace(**self.hooks.get(key, {}))
        return found if stage == PREPARE else found._replace(needs=0.0)

    def source(self, *keys: object) -> str:
        """Return FILE:LINE of a key, or "default" for a key that the file does not have."""
        return self.sources.get(keys, "default")

    def warnings(self) -> list[str]:
        """Return a sentence for what is permitted and probably a mistake; for an unknown event type with FILE:LINE."""
        found = list(self.policy.warnings)
        for name, keys in self.hooks.items():
            place = f"{self.source('hooks', name, 'types')}: hooks.{name}.types"
            found += type_warnings(place, keys.get("types", ()))
        if not self.policy.may_approve():
            found.append(
                f"Nothing will be approved by the policy {self.policy.name!r}. While this service watches, each restart"
                " or redeploy that a user asks for waits up to 15 minutes for an approval. `policy: documented`"
                " approves those and short freezes of this VM as soon as its prepare hooks have succeeded."
            )
        if self.dry_run:
            found.append("dry run: hooks run, but nothing is approved")
        return found


KEYS = tuple(_declared(Settings))
# a reload does not change these settings; the daemon uses their new values after its next start
RESTART_ONLY_SETTINGS = tuple(key for key, declared in _declared(Settings).items() if RESTART in declared)
# the result of `load_settings` for a file that does not exist or sets nothing
DEFAULTS = Settings()


def load_settings(path: str, is_checked: bool = False) -> Settings:
    """Return the settings of a file. If the default file does not exist, the defaults hold.

    With `is_checked`, a file that users who are not trusted could write is refused.

    Raises:
        ConfigError: the configuration is not usable.
    """
    if not os.path.lexists(path):
        if path != DEFAULT_PATH:
            raise ConfigError(f"there is no configuration {path}")
        return DEFAULTS
    problem = config_problem(path) if is_checked else None
    if problem is not None:
        raise ConfigError(problem)
    try:
        data, place = load_with_lines(read_text(path, "configuration"), path, "configuration")
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not place.lines or data == {}:
        return DEFAULTS
    problems: list[str] = []
    found = read({**_schemas(Settings), **REMOVED_KEYS}, data, place, problems)
    if problems:
        raise ConfigError(*problems)
    return Settings(**found, sources={keys: f"{path}:{line}" for keys, line in place.lines.items()})


def config_problem(path: str) -> str | None:
    """Return why a configuration is refused, because users who are not trusted could change it, or None."""
    reason = permission_problem(path, os.path.dirname(os.path.abspath(path)))
    return None if reason is None else f"configuration {path} is refused: {reason}"
