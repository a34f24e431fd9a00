# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the settings and the hooks, and finds out which of their files have changed since they came into force."""

from __future__ import annotations

import logging
import os
from datetime import datetime, timezone
from typing import Any, Callable, Sequence

from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.config.settings import DEFAULTS, Settings, load_settings
from hook_runner.hooks.discovery import Hooks, discover_hooks

log = logging.getLogger(__name__)


class Configuration:
    """The configuration and the hooks of the disk, and the state of those that are in force.

    Args:
        path: the file.
        owners: uids that may own the file and the hooks.
        dry_run: approve nothing, whatever the settings say.
    """

    def __init__(self, path: str, owners: frozenset[int], dry_run: bool = False) -> None:
        self._path, self._owners, self._dry_run = path, owners, dry_run
        self._settings = DEFAULTS
        self._stamp: tuple[object, ...] = ()
        self._hooks: dict[str, tuple[object, ...]] = {}
        self._loaded_at: datetime | None = None
        self._restart_needed: Sequence[str] = ()
        self._refusal = ""

    def load(self, accept: Callable[[Settings], None] = lambda settings: None) -> Settings:
        """Return the settings of the disk.

        Raises ConfigError, also from `accept`, which may refuse them; then the earlier settings stay in force.
        """
        stamp = _stamp(self._path)  # before it is read: a change while it is read counts as a later one
        try:
            settings = load_settings(self._path, self._owners)
            accept(settings)
        except ValueError as error:
            self._refusal = str(error)
            raise
        self._stamp, self._refusal = stamp, ""
        return settings._replace(dry_run=True) if self._dry_run else settings

    def hooks(self, settings: Settings, restart_needed: Sequence[str] = ()) -> Hooks:
        """Return the hooks of the disk, which are in force from now on, as the settings are.

        The log gets a line for each file that is not a hook, or is refused. `restart_needed` has the keys whose new
        values take effect with the next restart.
        """
        found, skipped = discover_hooks(settings.hooks_directory, settings, self._owners)
        for file in skipped:
            log.info(file.text)
        for hook in (hook for of_stage in found.values() for hook in of_stage if hook.problem is not None):
            log.error("hook %s/%s will not be run, and counts as failed: %s", hook.stage, hook.name, hook.problem)
        self._settings, self._hooks, self._restart_needed = settings, _stamps(found), restart_needed
        self._loaded_at = datetime.now(timezone.utc)
        return found

    def as_data(self) -> dict[str, Any]:
        """Return for `status` what is in force, and how the disk differs from it.

        Keys: path, loaded_at, hooks_directory, differs, and

        - changed: the configuration and the hooks that were written, added, removed or refused since
        - restart_needed: keys whose new value needs a restart
        - refusal: the reason why the latest reload was refused, or null
        """
        settings = self._settings
        hooks = _stamps(discover_hooks(settings.hooks_directory, settings, self._owners)[0])
        changed = [self._path] if _stamp(self._path) != self._stamp else []
        changed += [path for path in sorted({*hooks, *self._hooks}) if hooks.get(path) != self._hooks.get(path)]
        differs = bool(changed or self._restart_needed)
        return {
            "path": self._path,
            "loaded_at": None if self._loaded_at is None else as_utc_text(self._loaded_at),
            "hooks_directory": settings.hooks_directory,
            "differs": differs,
            "changed": changed,
            "restart_needed": list(self._restart_needed),
            "refusal": self._refusal or None if differs else None,
        }


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
