# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for the host: folders, groups, libraries."""

from __future__ import annotations

import grp
import importlib.util
import os
import sys

from hook_runner.config.directories import metrics_obstacle
from hook_runner.config.settings import Settings
from hook_runner.gates import gate_problem
from hook_runner.permissions import location_problem, nearest_existing, permission_problem
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report

# free bytes for records and runs: an error below the first, a warning below the second
MIN_FREE_BYTES, LOW_FREE_BYTES = 1 << 20, 16 << 20


def check_host(settings: Settings, owners: frozenset[int], report: Report) -> None:
    """Check folders, groups and libraries that the settings need."""
    _check_folder("state_directory", settings.state_directory, owners, report)
    _check_folder("run_directory", settings.run_directory, owners, report)
    reason = location_problem(settings.hooks_directory, owners)
    if reason is not None:
        report.add(ERROR, "hooks", settings.hooks_directory, reason)
    for key, group in (("control_group", settings.control_group), ("status_group", settings.status_group)):
        try:
            if group:
                grp.getgrnam(group)
        except KeyError:
            report.add(ERROR, key, group, f"there is no group {group}")
    for name, path in settings.gates.items():
        reason = gate_problem(path, owners)
        if reason is not None:
            report.add(
                ERROR, "gates", path, f"the gate {name} stays closed, because other users could open it: {reason}"
            )
    if settings.metrics_file:
        _check_metrics_file(settings.metrics_file, owners, report)
    _check_metrics_library(settings, report)
    versions = ["Python " + sys.version.split()[0], _version("requests", "requests"), _version("PyYAML", "yaml")]
    report.add(INFO, "libraries", sys.executable, ", ".join(versions))


def _check_folder(what: str, folder: str, owners: frozenset[int], report: Report) -> None:
    there = nearest_existing(folder)
    reason = location_problem(folder, owners)
    if reason is not None:
        report.add(ERROR, what, folder, reason)
    if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
        root = os.geteuid() == 0
        report.add(ERROR if root else WARNING, what, there, f"it cannot be written{'' if root else ' by this user'}")
        return
    room = os.statvfs(there)
    free = room.f_bavail * room.f_frsize
    if free < LOW_FREE_BYTES:
        text = f"only {free / 1048576:.1f} MiB are free on its file system"
        report.add(ERROR if free < MIN_FREE_BYTES else WARNING, what, there, text)
    if room.f_files and not room.f_favail:
        report.add(ERROR, what, there, "its file system has no room for another file (no inodes)")


def _check_metrics_file(path: str, owners: frozenset[int], report: Report) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        report.add(ERROR, "metrics", folder, "the folder of metrics_file does not exist; create it")
    elif not os.access(folder, os.W_OK | os.X_OK):
        report.add(ERROR if os.geteuid() == 0 else WARNING, "metrics", folder, "it cannot be written")
    else:
        obstacle = metrics_obstacle(path, owners)
        reason = permission_problem(folder, folder, owners)
        if obstacle:
            report.add(ERROR, "metrics", folder, f"nothing is written: {obstacle}")
        elif reason is not None:
            report.add(WARNING, "metrics", folder, f"other users can write or replace the metrics: {reason}")


def _check_metrics_library(settings: Settings, report: Report) -> None:
    for key in ("metrics_file", "metrics_address"):
        value = getattr(settings, key)
        if value and importlib.util.find_spec("prometheus_client") is None:
            text = f"{key} is set, but the Python library prometheus_client is not installed"
            report.add(ERROR, "metrics", value, text)


def _version(library: str, module: str) -> str:
    try:
        return f"{library} {getattr(__import__(module), '__version__', 'of unknown version')}"
    except ImportError:
        return f"{library} is not installed"
