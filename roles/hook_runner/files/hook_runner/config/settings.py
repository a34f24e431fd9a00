# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The configuration: the keys of config.yml and their defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from azure_scheduled_events.document import API_VERSION
from azure_scheduled_events.endpoint import DEFAULT_ENDPOINT, parse_api_versions, parse_endpoint
from azure_scheduled_events.hook_input import MARGIN
from azure_scheduled_events.options import (
    parse_boolean,
    parse_choice,
    parse_event_types,
    parse_integer,
    parse_seconds,
    warning_about,
)
from azure_scheduled_events.policy import Policy, SourceLocations
from azure_scheduled_events.yaml_lines import load_with_lines, read_text
from hook_runner.config import values
from hook_runner.config.removed_keys import REMOVED_KEYS
from hook_runner.config.schema import Keys, Named, read
from hook_runner.permissions import permission_problem
from hook_runner.records import PREPARE

# the consequence of a policy that approves nothing
NO_APPROVAL_WARNING = (
    "Nothing will be approved by the policy %r. While this service watches, each restart or redeploy"
    " that a user asks for waits up to 15 minutes for an approval. `policy: documented` approves those"
    " and short freezes of this VM as soon as its prepare hooks have succeeded."
)
DEFAULT_PATH = "/etc/azure-scheduled-events/config.yml"


class ConfigError(ValueError):
    """An unusable configuration; the text has file, line and key, and a suggestion if there is one."""


class HookSettings(NamedTuple):
    """The settings of one hook.

    Attributes:
        timeout: most seconds of a run.
        types: event types for which it is run; empty for all.
        on_failure: "continue" (run the later hooks), "stop" (do not run them) or "ignore" (the hook
            counts as succeeded).
        needs: skip the hook if fewer seconds are left before the deadline; in stage prepare only.
        rerun: whether it may run again after a reboot interrupted it.
        persists: whether its effect outlives a reboot of the host; if not, it runs again after a
            reboot. In stage prepare only.
        unit: limits of its transient unit, as texts with the names that unit files have.
    """

    timeout: float = 600.0
    types: tuple[str, ...] = ()
    on_failure: str = "continue"
    needs: float = 0.0
    rerun: bool = True
    persists: bool = False
    unit: Mapping[str, str] = {}


class Settings(NamedTuple):
    """The content of config.yml; see docs/configuration.md for the meaning of each key. Times are seconds.

    `hooks` has the keys that are set for each "NAME" and "STAGE/NAME"; `hook` merges them.
    """

    endpoint: str = DEFAULT_ENDPOINT
    api_version: tuple[str, ...] = (API_VERSION,)
    resource_name: str = ""
    interval: float = 1.0
    timeout: float = 10.0
    first_timeout: float = 130.0
    policy: Policy = Policy.preset("observe")
    leader: str = "self-only"
    takeover_after: float = 60.0
    margin: float = MARGIN
    kill_after: float = 5.0
    when_started: str = "stop"
    dry_run: bool = False
    hooks_directory: str = "/etc/azure-scheduled-events/hooks.d"
    state_directory: str = "/var/lib/azure-scheduled-events/hook-runner"
    run_directory: str = "/run/azure-scheduled-events"
    control_group: str = ""
    status_group: str = ""
    history_events: int = 200
    metrics_file: str = ""
    metrics_address: str = ""
    environment: Mapping[str, str] = {}
    gates: Mapping[str, str] = {}
    log_level: str = "info"
    hooks: Mapping[str, Mapping[str, Any]] = {}

    def hook(self, stage: str, name: str) -> HookSettings:
        """Return the settings of one hook: those of "STAGE/NAME" override those of "NAME"."""
        found = HookSettings()
        for key in (name, f"{stage}/{name}"):
            found = found._replace(**self.hooks.get(key, {}))
        return found if stage == PREPARE else found._replace(needs=0.0)

    def warnings(self) -> list[str]:
        """Return a sentence for each event type of the policy and the hooks that is unknown."""
        texts = (
            f"hooks.{name}.types: {text}"
            for name, keys in self.hooks.items()
            for text in map(warning_about, keys.get("types", ()))
            if text is not None
        )
        return [*self.policy.warnings, *texts]


# the result of `load_settings` for a file that does not exist or sets nothing
DEFAULTS = Settings()

# a reload does not change these settings; the daemon uses their new values after its next start
RESTART_ONLY_SETTINGS = (
    "endpoint",
    "api_version",
    "resource_name",
    "interval",
    "timeout",
    "first_timeout",
    "state_directory",
    "run_directory",
    "control_group",
    "status_group",
    "metrics_file",
    "metrics_address",
)

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
HOOK_SCHEMA = Keys(
    {
        "timeout": partial(parse_seconds, least=0.1, most=30 * 86400),
        "types": parse_event_types,
        "on_failure": partial(parse_choice, known=("continue", "stop", "ignore")),
        "needs": partial(parse_seconds, most=30 * 86400),
        "rerun": parse_boolean,
        "persists": parse_boolean,
        "unit": Keys(dict.fromkeys(LIMITS, values.limit)),
    }
)
SCHEMA = Keys(
    {
        "endpoint": parse_endpoint,
        "api_version": parse_api_versions,
        "resource_name": values.text,
        "interval": partial(parse_seconds, least=0.2, most=60),
        "timeout": partial(parse_seconds, least=0.5, most=600),
        "first_timeout": partial(parse_seconds, least=0.5, most=3600),
        "policy": Policy,
        "leader": partial(parse_choice, known=("self-only", "first", "external")),
        "takeover_after": partial(parse_seconds, most=86400),
        "margin": partial(parse_seconds, most=3600),
        "kill_after": partial(parse_seconds, most=600),
        "when_started": partial(parse_choice, known=("stop", "finish")),
        "dry_run": parse_boolean,
        "hooks_directory": values.path,
        "state_directory": values.path,
        "run_directory": values.path,
        "control_group": values.text,
        "status_group": values.text,
        "history_events": partial(parse_integer, least=1, most=100000),
        "metrics_file": values.optional_path,
        "metrics_address": values.loopback_address,
        "environment": Named(values.variable, values.text),
        "gates": Named(values.text, values.path),
        "log_level": partial(parse_choice, known=("debug", "info", "warning", "error")),
        "hooks": Named(values.hook_key, HOOK_SCHEMA),
    }
)


class ConfigFile(NamedTuple):
    """The settings of a file, and the line of each key and item that it has, by the keys that lead to it."""

    settings: Settings
    path: str
    lines: Mapping[tuple[object, ...], int] = {}

    def source(self, *keys: object) -> str:
        """Return FILE:LINE of a key, or "default" for a key that the file does not have."""
        return f"{self.path}:{self.lines[keys]}" if keys in self.lines else "default"


def load_settings(path: str, owners: frozenset[int] | None = None) -> Settings:
    """Return the settings of a file; arguments and errors are those of `read_config`."""
    return read_config(path, owners).settings


def read_config(path: str, owners: frozenset[int] | None = None) -> ConfigFile:
    """Read the configuration. If the default file does not exist, the defaults hold.

    With `owners`, a file that other users than these could write is refused.

    Raises:
        ConfigError: the configuration is not usable.
    """
    if not os.path.lexists(path):
        if path != DEFAULT_PATH:
            raise ConfigError(f"there is no configuration {path}")
        return ConfigFile(DEFAULTS, path)
    problem = None if owners is None else config_problem(path, owners)
    if problem is not None:
        raise ConfigError(problem)
    try:
        located = load_with_lines(read_text(path, "configuration"), path, "configuration")
        if located is None:
            return ConfigFile(DEFAULTS, path)
        places = SourceLocations(path, located.lines)
        removed = [key for key in located.data if key in REMOVED_KEYS] if isinstance(located.data, dict) else []
        if removed:
            texts = (f"{places.describe((key,))}: no longer a key; {REMOVED_KEYS[key]}" for key in removed)
            raise ValueError("; ".join(texts))
        settings = Settings(**read(SCHEMA, located.data, places))
        for name, keys in settings.hooks.items():
            if "needs" in keys and "/" in name and not name.startswith(PREPARE + "/"):
                text = "only hooks of stage prepare have a deadline; remove needs"
                raise ValueError(f"{places.describe(('hooks', name, 'needs'))}: {text}")
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return ConfigFile(settings, path, located.lines)


def config_problem(path: str, owners: frozenset[int]) -> str | None:
    """Return why a configuration is refused, because other users than `owners` could change it, or None."""
    reason = permission_problem(path, os.path.dirname(os.path.abspath(path)), owners)
    return None if reason is None else f"configuration {path} is refused: {reason}"
