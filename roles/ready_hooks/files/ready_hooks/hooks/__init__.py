# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The ready hooks, one per file."""

from __future__ import annotations

import importlib

from ready_hooks.core.hook import ReadyHook

# the names that users write; a dash in a name is an underscore in the name of the file
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


def load(name: str) -> type[ReadyHook]:
    """Return the class of the hook with this name, which is one of NAMES."""
    hook: type[ReadyHook] = importlib.import_module("ready_hooks.hooks." + name.replace("-", "_")).HOOK
    return hook
