# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the settings and the hooks, and finds out which of their files have changed since they came into force."""

from __future__ import annotations

import logging
import os
from datetime import datetime, timezone
from typing import Any, Sequence

from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.config.settings import DEFAULTS, RESTART_ONLY_SETTINGS, ConfigError, config_problem, load_settings
from hook_runner.hooks.discovery import Hooks, Skipped, discover_hooks
from hook_runner.log import set_level

log = logging.getLogger(__name__)


class Configuration:
    """The configuration and the hooks of the disk, and those that are in force.

    Args:
        path: the file.
        dry_run: approve nothing, whatever the file says.

    Attributes:
        settings: those in force.
    """

    def __init__(self, path: str, dry_run: bool = False) -> None:
        self.settings = DEFAULTS
        self._path, self._dry_run = path, dry_run
        self._stamp: tuple[object, ...] = ()
        self._hooks: dict[str, tuple[object, ...]] = {}
        self._loaded_at: datetime | None = None
        self._restart_needed: list[str] = []
        self._refusal = ""

    def load(self, may_be_empty: bool = True) -> Hooks:
        """Bring the settings and hooks of the disk into force, and return the hooks.

        1. A configuration that is not usable changes nothing, nor does a missing or an empty one unless `may_be_empty`.
        2. RESTART_ONLY_SETTINGS keep the values of the first call; the log names those that differ.
        3. The log gets a line for each file that is not a hook, or is refused.

        Raises:
            ConfigError: the configuration is not usable.
        """
        stamp = _config_stamp(self._path)  # before it is read: a change while it is read counts as a later one
        try:
            settings = load_settings(self._path, is_checked=True)
            if settings is DEFAULTS and not may_be_empty:
                raise ConfigError(
                    "it is empty or missing, and an event is in progress; write it again, or restart the service to use"
                    " the defaults"
                )
        except ConfigError as error:
            self._refusal = str(error)
            raise
        if self._loaded_at is not None:
            kept = {name: getattr(self.settings, name) for name in RESTART_ONLY_SETTINGS}
            self._restart_needed = [name for name, value in kept.items() if getattr(settings, name) != value]
            settings = settings._replace(**kept)
        self.settings = settings._replace(dry_run=True) if self._dry_run else settings
        set_level(settings.log_level)
        if self._restart_needed:
            log.warning("these settings take effect with the next restart only: %s", ", ".join(self._restart_needed))
        found, skipped = self._discover()
        for file in skipped:
            log.info(file.text)
        for hook in (hook for of_stage in found.values() for hook in of_stage if hook.problem is not None):
            log.error("hook %s/%s will not be run, and counts as failed: %s", hook.stage, hook.name, hook.problem)
        self._stamp, self._hooks, self._refusal = stamp, _stamps(found), ""
        self._loaded_at = datetime.now(timezone.utc)
        return found

    def _discover(self) -> tuple[Hooks, Sequence[Skipped]]:
        return discover_hooks(self.settings.hooks_directory, self.settings)

    def as_data(self) -> dict[str, Any]:
        """Return for `status` what is in force, and how the disk differs from it.

        Keys: path, loaded_at, hooks_directory, differs, and

        - changed: the configuration and the hooks that were written, added, removed or refused since
        - restart_needed: keys whose new value needs a restart
        - refusal: the reason why the latest reload was refused, or null
        """
        hooks = _stamps(self._discover()[0])
        changed = [self._path] if _config_stamp(self._path) != self._stamp else []
        changed += [path for path in sorted({*hooks, *self._hooks}) if hooks.get(path) != self._hooks.get(path)]
        differs = bool(changed or self._restart_needed)
        return {
            "path": self._path,
            "loaded_at": None if self._loaded_at is None else as_utc_text(self._loaded_at),
            "hooks_directory": self.settings.hooks_directory,
            "differs": differs,
            "changed": changed,
            "restart_needed": self._restart_needed,
            "refusal": self._refusal or None if differs else None,
        }


def _config_stamp(path: str) -> tuple[object, ...]:
    """Return a value that changes with the configuration, and with whether it may be used."""
    return (config_problem(path), *_stamp(path))


def _stamps(hooks: Hooks) -> dict[str, tuple[object, ...]]:
    """Return for the path of each hook a value that changes with its file, and with whether it may be run."""
    return {hook.path: (hook.problem, *_stamp(hook.path)) for of_stage in hooks.values() for hook in of_stage}


def _stamp(path: str) -> tuple[object, ...]:
    """Return a value that changes when a file is written or replaced."""
    try:
        found = os.stat(path)
    except OSError as error:
        return (error.errno,)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
