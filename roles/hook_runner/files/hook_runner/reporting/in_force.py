# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hashes of the configuration and the hooks in force, and whether the disk still has the same."""

from __future__ import annotations

import hashlib
import os
import stat
from datetime import datetime, timezone
from typing import Any, Callable, Sequence

from azure_scheduled_events.timestamps import as_utc_text
from azure_scheduled_events.yaml_lines import YamlLoader, YamlSource
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import discover_hooks
from hook_runner.lifecycle.stage_plan import Hooks

# bytes: a larger hook is recognized by its size and time of change, because `status` must be fast
MAX_HASHED = 1 << 20


class InForce:
    """Reads the configuration, and records which one is in force.

    Args:
        path: the configuration.
        load: takes a parser of YAML and returns the settings; raises ConfigError.
        read: the parser, as `load_with_lines`.
    """

    def __init__(self, path: str, load: Callable[[YamlLoader], Settings], read: YamlLoader) -> None:
        self._path, self._load, self._read = path, load, read
        self._files: dict[str, str | None] = {}
        self._loaded_at: datetime | None = None
        self._restart_needed: tuple[str, ...] = ()
        self._refusal = ""
        self._hooks_sha256 = ""
        self._hooks_loaded_at: datetime | None = None
        self._hooks_directory = ""
        self._find_hooks: Callable[[], Hooks] = dict

    def load(self, accept: Callable[[Settings], None] = lambda settings: None) -> Settings:
        """Read the settings from the disk.

        Raises ConfigError, also from `accept`; then the earlier settings stay in force.
        """
        texts: dict[str, str] = {}

        def read(text: str, name: str, kind: str) -> YamlSource | None:
            texts[name] = text
            return self._read(text, name, kind)

        try:
            settings = self._load(read)
            accept(settings)
        except ValueError as error:
            self._refusal = str(error)
            raise
        self._files = {self._path: None, **{name: _sha256_of_text(name, text) for name, text in texts.items()}}
        self._loaded_at, self._refusal = _now(), ""
        return settings

    def use(self, settings: Settings, owners: frozenset[int], hooks: Hooks, restart_needed: Sequence[str]) -> None:
        """Record the hooks that are in force now, and the keys that need a restart to be in force."""
        self._restart_needed = tuple(restart_needed)
        self._hooks_loaded_at, self._hooks_sha256 = _now(), hooks_sha256(hooks)
        self._find_hooks = lambda: discover_hooks(settings.hooks_directory, settings, owners)[0]
        self._hooks_directory = settings.hooks_directory

    def as_data(self) -> dict[str, Any]:
        """Return for `status` what is in force, and how the disk differs from it.

        Keys: path, loaded_at, hooks_directory, hooks_sha256, hooks_loaded_at, differs, and

        - sha256: null if there is no such file
        - changed: the paths that differ
        - restart_needed: keys whose new value needs a restart
        - refusal: the reason why the latest reload was refused, or null

        Hashes are hexadecimal SHA-256; those of files are equal to the output of sha256sum.
        """
        changed = [path for path, sha256 in self._files.items() if _sha256_of_file(path) != sha256]
        if hooks_sha256(self._find_hooks()) != self._hooks_sha256:
            changed.append(self._hooks_directory)
        differs = bool(changed or self._restart_needed)
        return {
            "path": self._path,
            "sha256": self._files.get(self._path),
            "loaded_at": None if self._loaded_at is None else as_utc_text(self._loaded_at),
            "hooks_directory": self._hooks_directory,
            "hooks_sha256": self._hooks_sha256,
            "hooks_loaded_at": None if self._hooks_loaded_at is None else as_utc_text(self._hooks_loaded_at),
            "differs": differs,
            "changed": changed,
            "restart_needed": list(self._restart_needed),
            "refusal": self._refusal or None if differs else None,
        }


def as_lines(data: dict[str, Any]) -> list[str]:
    """Return the result of `as_data` as lines of text."""
    lines = [
        "config     {}, sha256 {}, read {}".format(
            data["path"], (data["sha256"] or "none: no such file")[:19], data["loaded_at"]
        ),
        f"hooks      {data['hooks_directory']}, sha256 {data['hooks_sha256'][:19]}, read {data['hooks_loaded_at']}",
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


def hooks_sha256(hooks: Hooks) -> str:
    """Return a hash of all hooks: of stage, name, problem and content."""
    whole = hashlib.sha256()
    for stage, of_stage in hooks.items():
        for hook in of_stage:
            whole.update(
                repr((stage, hook.name, hook.problem, _content(hook.path))).encode("utf-8", "backslashreplace")
            )
    return whole.hexdigest()


def _content(path: str) -> str:
    """Return a text that changes with the content of a hook's file."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_HASHED:
            return f"{found.st_size} bytes, changed at {found.st_mtime_ns} ns"
    except OSError as error:
        return f"error {error.errno}"
    return _sha256_of_file(path) or "unreadable"


def _sha256_of_file(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _sha256_of_text(path: str, text: str) -> str:
    """Return the hash of the file that this text was read from; of the text if the file has changed since."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        data = b""
    same = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n") == text
    return hashlib.sha256(data if same else text.encode("utf-8")).hexdigest()


def _now() -> datetime:
    return datetime.now(timezone.utc)
