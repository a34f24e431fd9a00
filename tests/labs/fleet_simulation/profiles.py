# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Configurations of the hook runner that the hosts of a fleet have, read from real files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hook_runner.config.settings import Settings, load_settings
from hook_runner.hooks.discovery import Hook, discover_hooks
from support.daemon.hook_scripts import write_hook

# seconds
HOOK_TIMEOUT = 90.0
POLICY = {"rules": [{"name": "own", "when": {"concerns_me": True}, "approve": "after_prepare"}]}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "pairs": {},
    "persistent": {"hooks": {"prepare/10-drain": {"persists": True}}, "margin": "10s"},
    "selective": {
        "hooks": {
            "prepare/10-drain": {"types": ["Reboot", "Redeploy", "Preempt", "Terminate"], "on_failure": "stop"},
            "prepare/20-flush": {"needs": "20s"},
        }
    },
    "unpaired": {"when_started": "finish"},
}
HOOKS = ("prepare/10-drain", "prepare/20-flush", "recover/10-drain", "recover/20-flush")
MORE_HOOKS = {"unpaired": ("recover/50-report", "started/10-note"), "persistent": ("emergency/10-alarm",)}


class Profile(NamedTuple):
    """Settings and hooks, without what differs between hosts."""

    settings: Settings
    hooks: Mapping[str, Sequence[Hook]]


def make_profiles(folder: Path, configurations: Mapping[str, Mapping[str, Any]] = CONFIGURATIONS) -> dict[str, Profile]:
    """Write the configurations and hooks below a folder, and read them as the daemon does."""
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)
    profiles = {}
    for name, configuration in configurations.items():
        hooks_directory = folder / name / "hooks.d"
        for hook in (*HOOKS, *MORE_HOOKS.get(name, ())):
            write_hook(hooks_directory, hook)
        path = folder / name / "config.yml"
        of_hooks = {hook: {"timeout": HOOK_TIMEOUT} for hook in (*HOOKS, *MORE_HOOKS.get(name, ()))}
        for hook, settings_of_hook in configuration.get("hooks", {}).items():
            of_hooks[hook] = {**of_hooks[hook], **settings_of_hook}
        fixed = {"policy": POLICY, "hooks_directory": str(hooks_directory)}
        path.write_text(json.dumps({**fixed, **configuration, "hooks": of_hooks}))
        path.chmod(0o600)
        settings = load_settings(str(path), is_checked=True)
        profiles[name] = Profile(settings, discover_hooks(settings.hooks_directory, settings)[0])
    return profiles
