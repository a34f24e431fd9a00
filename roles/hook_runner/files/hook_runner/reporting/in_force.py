# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When the configuration and the hooks in force were read, and which of their files have changed since."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any, Callable, Sequence

from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import discover_hooks
from hook_runner.lifecycle.stage_plan import Hooks


class InForce:
    """Reads the configuration, and remembers the state of the files that are in force.

    `load` returns the settings of `path`, and raises ConfigError.
    """

    def __init__(self, path: str, load: Callable[[], Settings]) -> None:
        self._path, self._load = path, load
        self._stamp: tuple[object, ...] = ()
        self._loaded_at: datetime | None = None
        self._restart_needed: tuple[str, ...] = ()
        self._refusal = ""
        self._hooks: dict[str, tuple[object, ...]] = {}
        self._hooks_directory = ""
        self._find_hooks: Callable[[], Hooks] = dict

    def load(self, accept: Callable[[Settings], None] = lambda settings: None) -> Settings:
        """Read the settings from the disk.

        Raises ConfigError, also from `accept`; then the earlier settings stay in force.
        """
        stamp = _stamp(self._path)  # before it is read: a change while it is read counts as a later one
        try:
            settings = self._load()
            accept(settings)
        except ValueError as error:
            self._refusal = str(error)
            raise
        self._stamp, self._refusal = stamp, ""
        return settings

    def use(self, settings: Settings, owners: frozenset[int], hooks: Hooks, restart_needed: Sequence[str]) -> None:
        """Record the hooks that are in force now, and the keys that need a restart to be in force."""
        self._restart_needed = tuple(restart_needed)
        self._loaded_at, self._hooks = datetime.now(timezone.utc), _stamps(hooks)
        self._find_hooks = lambda: discover_hooks(settings.hooks_directory, settings, owners)[0]
        self._hooks_directory = settings.hooks_directory

    def as_data(self) -> dict[str, Any]:
        """Return for `status` what is in force, and how the disk differs from it.

        Keys: path, loaded_at, hooks_directory, differs, and

        - changed: the configuration and the hooks that were written, added, removed or refused since
        - restart_needed: keys whose new value needs a restart
        - refusal: the reason why the latest reload was refused, or null
        """
        hooks = _stamps(self._find_hooks())
        changed = [self._path] if _stamp(self._path) != self._stamp else []
        changed += [path for path in sorted({*hooks, *self._hooks}) if hooks.get(path) != self._hooks.get(path)]
        differs = bool(changed or self._restart_needed)
        return {
            "path": self._path,
            "loaded_at": None if self._loaded_at is None else as_utc_text(self._loaded_at),
            "hooks_directory": self._hooks_directory,
            "differs": differs,
            "changed": changed,
            "restart_needed": list(self._restart_needed),
            "refusal": self._refusal or None if differs else None,
        }


def as_lines(data: dict[str, Any]) -> list[str]:
    """Return the result of `as_data` as lines of text."""
    lines = [
        f"config     {data['path']}, read {data['loaded_at']}",
        f"hooks      {data['hooks_directory']}, read {data['loaded_at']}",
    ]
    if data["changed"]:
        lines.append(
            f"           the disk differs from what is in force: {', '.join(data['changed'])}; reload the service"
        )
    if data["refusal"]:
        lines.append(f"           the latest reload was refused: {data['refusal']}")
    if data["restart_needed"]:
        lines.append(f"           the new values of these keys need a restart: {', '.join(data['restart_needed'])}")
    return lines


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
