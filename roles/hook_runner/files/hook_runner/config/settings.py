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
    Parser,
    check_key,
    parse_boolean,
    parse_choice,
    parse_event_types,
    parse_integer,
    parse_seconds,
    warning_about,
)
from azure_scheduled_events.policy import Policy, PolicyError, SourceLocations
from azure_scheduled_events.yaml_lines import YamlError, load_with_lines, read_text
from hook_runner.config import values
from hook_runner.config.hook_limits import read_limits
from hook_runner.config.removed_keys import REMOVED_KEYS
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


class ConfigPermissionError(ConfigError):
    """A configuration that users other than the trusted ones can change."""


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
        unit: limits of its transient unit, as `hook_limits.read_limits` returns them.
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


_PARSERS: dict[str, Parser] = {
    "endpoint": parse_endpoint,
    "api_version": parse_api_versions,
    "resource_name": values.text,
    "interval": partial(parse_seconds, least=0.2, most=60),
    "timeout": partial(parse_seconds, least=0.5, most=600),
    "first_timeout": partial(parse_seconds, least=0.5, most=3600),
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
    "environment": values.environment,
    "gates": values.paths_by_name,
    "log_level": partial(parse_choice, known=("debug", "info", "warning", "error")),
}
_HOOK_PARSERS: dict[str, Parser] = {
    "timeout": partial(parse_seconds, least=0.1, most=30 * 86400),
    "types": parse_event_types,
    "on_failure": partial(parse_choice, known=("continue", "stop", "ignore")),
    "needs": partial(parse_seconds, most=30 * 86400),
    "rerun": parse_boolean,
    "persists": parse_boolean,
    "unit": read_limits,
}


def load_settings(path: str, owners: frozenset[int] | None = None) -> Settings:
    """Read the configuration. A file that does not exist has the defaults.

    With `owners`, a file that other users than these could write is refused.

    Raises:
        ConfigError: the configuration is not usable.
        ConfigPermissionError: other users than `owners` could change it.
    """
    if not os.path.lexists(path):
        return DEFAULTS
    _check_permissions(path, owners)
    try:
        located = load_with_lines(read_text(path, "configuration"), path, "configuration")
    except YamlError as error:
        raise ConfigError(str(error)) from None
    if located is None:
        return DEFAULTS
    places = SourceLocations(path, located.lines)
    _refuse_removed_keys(located.data, places)
    _check_keys(located.data, Settings._fields, (), places)
    return _settings(located.data, places)


def _settings(data: dict[str, Any], places: SourceLocations) -> Settings:
    read = {key: _read(_PARSERS[key], value, (key,), places) for key, value in data.items() if key in _PARSERS}
    if "hooks" in data:
        read["hooks"] = _hooks(data["hooks"], ("hooks",), places)
    if "policy" in data:
        read["policy"] = _policy(data["policy"], ("policy",), places)
    return Settings(**read)


def _policy(data: Any, path: tuple[object, ...], places: SourceLocations) -> Policy:
    """Read the key policy: the name of a preset, or a mapping with rules."""
    below = _Below(places, path)
    try:
        if isinstance(data, str):
            return prepared_first(Policy.from_mapping({"preset": data}, _Below(places, path, leaf=True)))
        if isinstance(data, list):
            raise PolicyError(f"{below.describe(())}: expected a preset's name or a mapping with rules, not a list")
        return prepared_first(Policy.from_mapping(data, below))
    except PolicyError as error:
        raise ConfigError(str(error)) from None


def prepared_first(policy: Policy) -> Policy:
    """Return the policy as the daemon applies it: a preset approves after the prepare hooks have succeeded."""
    return policy.approving_after_preparation() if policy.is_preset else policy


def _hooks(data: Any, path: tuple[object, ...], places: SourceLocations) -> dict[str, dict[str, Any]]:
    if not isinstance(data, dict):
        raise ConfigError(f"{places.describe(path)}: expected a mapping of hooks' names, not {data!r}")
    found: dict[str, dict[str, Any]] = {}
    for key, settings in data.items():
        here = (*path, key)
        name = _read(values.hook_key, key, here, places)
        _check_keys(settings, tuple(_HOOK_PARSERS), here, places)
        if "needs" in settings and "/" in name and not name.startswith(PREPARE + "/"):
            raise ConfigError(
                "{}: only hooks of stage prepare have a deadline; remove needs".format(
                    places.describe((*here, "needs"))
                )
            )
        found[name] = {
            each: _read(_HOOK_PARSERS[each], value, (*here, each), places) for each, value in settings.items()
        }
    return found


def _read(parse: Parser, value: Any, path: tuple[object, ...], places: SourceLocations) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise ConfigError(f"{places.describe(path)}: {error}") from None


def _check_keys(data: Any, known: tuple[str, ...], path: tuple[object, ...], places: SourceLocations) -> None:
    if not isinstance(data, dict):
        raise ConfigError(f"{places.describe(path)}: expected a mapping of keys, not {data!r}")
    for key in data:
        _read(lambda given: check_key(given, known), key, (*path, key), places)


def _refuse_removed_keys(data: Any, places: SourceLocations) -> None:
    keys = [key for key in data if key in REMOVED_KEYS] if isinstance(data, dict) else []
    if keys:
        texts = (f"{places.describe((key,))}: no longer a key; {REMOVED_KEYS[key]}" for key in keys)
        raise ConfigError("; ".join(texts))


def _check_permissions(path: str, owners: frozenset[int] | None) -> None:
    reason = (
        None
        if owners is None or not os.path.lexists(path)
        else permission_problem(path, os.path.dirname(os.path.abspath(path)), owners)
    )
    if reason is not None:
        raise ConfigPermissionError(f"configuration {path} is refused: {reason}")


class _Below(SourceLocations):
    """Source locations of a part of a file that is read like a separate file."""

    def __init__(self, places: SourceLocations, root: tuple[object, ...], leaf: bool = False) -> None:
        super().__init__()
        self._whole = places
        self._root = root
        self._leaf = leaf

    def describe(self, path: tuple[object, ...]) -> str:
        return self._whole.describe(self._root if self._leaf else self._root + path)
