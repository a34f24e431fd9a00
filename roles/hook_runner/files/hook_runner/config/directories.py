# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The folders that the daemon works in: only the daemon's own users may write them, and decide where they are made."""

from __future__ import annotations

import os

from hook_runner.config.settings import ConfigError, Settings
from hook_runner.permissions import location_problem, permission_problem


def check_directory_permissions(settings: Settings, owners: frozenset[int]) -> None:
    """Refuse folders in which others than `owners` could put files, or which others could put elsewhere. Raises ConfigError."""
    for key, folder in (("run_directory", settings.run_directory), ("journal", os.path.dirname(settings.journal))):
        reason = location_problem(folder, owners)
        if reason is not None:
            raise ConfigError(f"{key}: the service does not work in the folder {folder}: {reason}")


def metrics_obstacle(path: str, owners: frozenset[int]) -> str:
    """Why the metrics are not written to this path; "" where they are.

    The folder itself may be another user's, such as node_exporter's, but only trusted users may put
    another one in its place.
    """
    folder = os.path.dirname(path)
    above = os.path.dirname(folder)
    if os.path.islink(folder):
        return permission_problem(folder, "/", owners) or ""
    reason = location_problem(above, owners)
    return "" if reason is None else f"others could put another folder in the place of {folder}: {reason}"
