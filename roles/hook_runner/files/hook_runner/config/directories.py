# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Checks the folders of the daemon: only trusted users may write or replace them."""

from __future__ import annotations

import os

from hook_runner.config.settings import ConfigError, Settings
from hook_runner.permissions import location_problem, permission_problem


def check_directory_permissions(settings: Settings, owners: frozenset[int]) -> None:
    """Raise ConfigError if other users than `owners` could write or replace a folder of the daemon."""
    for key, folder in (("run_directory", settings.run_directory), ("state_directory", settings.state_directory)):
        reason = location_problem(folder, owners)
        if reason is not None:
            raise ConfigError(f"{key}: the folder {folder} is not safe: {reason}")


def metrics_obstacle(path: str, owners: frozenset[int]) -> str:
    """Return why the metrics are not written to this path, or "".

    The folder itself may belong to another user, such as node_exporter's, but only trusted users
    may be able to replace it.
    """
    folder = os.path.dirname(path)
    above = os.path.dirname(folder)
    if os.path.islink(folder):
        return permission_problem(folder, "/", owners) or ""
    reason = location_problem(above, owners)
    return "" if reason is None else f"other users could replace the folder {folder}: {reason}"
