# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` for the host: folders, groups, libraries."""

from __future__ import annotations

import grp
import importlib.util
import os
import sys
from typing import Iterator

from hook_runner.config.settings import Settings
from hook_runner.permissions import (
    gate_problem,
    location_problem,
    nearest_existing,
    permission_problem,
    replacement_problem,
)
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding

# free bytes for records and runs: an error below the first, a warning below the second
MIN_FREE_BYTES, LOW_FREE_BYTES = 1 << 20, 16 << 20


def check_host(settings: Settings) -> Iterator[Finding]:
    """Check folders, groups and libraries that the settings need."""
    yield from _check_folder("state_directory", settings.state_directory)
    yield from _check_folder("run_directory", settings.run_directory)
    reason = location_problem(settings.hooks_directory)
    if reason is not None:
        yield Finding(ERROR, "hooks", settings.hooks_directory, reason)
    for key, group in (("control_group", settings.control_group), ("status_group", settings.status_group)):
        try:
            if group:
                grp.getgrnam(group)
        except KeyError:
            yield Finding(ERROR, key, group, f"there is no group {group}")
    for name, path in settings.gates.items():
        reason = gate_problem(path)
        if reason is not None:
            text = f"the gate {name} stays closed, because other users could open it: {reason}"
            yield Finding(ERROR, "gates", path, text)
    yield from _check_metrics(settings)
    versions = ["Python " + sys.version.split()[0], _version("requests", "requests"), _version("PyYAML", "yaml")]
    yield Finding(INFO, "libraries", sys.executable, ", ".join(versions))


def _check_folder(key: str, folder: str) -> Iterator[Finding]:
    there = nearest_existing(folder)
    reason = location_problem(folder)
    if reason is not None:
        yield Finding(ERROR, key, folder, reason)
    if not os.path.isdir(there):
        return  # this is the reason
    if not os.access(there, os.W_OK | os.X_OK):
        yield _not_writable(key, there)
        return
    room = os.statvfs(there)
    free = room.f_bavail * room.f_frsize
    if free < LOW_FREE_BYTES:
        text = f"only {free / 1048576:.1f} MiB are free on its file system"
        yield Finding(ERROR if free < MIN_FREE_BYTES else WARNING, key, there, text)
    if room.f_files and not room.f_favail:
        yield Finding(ERROR, key, there, "its file system has no room for another file (no inodes)")


def _check_metrics(settings: Settings) -> Iterator[Finding]:
    for key, value in (("metrics_file", settings.metrics_file), ("metrics_address", settings.metrics_address)):
        if value and importlib.util.find_spec("prometheus_client") is None:
            text = f"{key} is set, but the Python library prometheus_client is not installed"
            yield Finding(ERROR, "metrics", value, text)
    if not settings.metrics_file:
        return
    folder = os.path.dirname(settings.metrics_file)
    obstacle = replacement_problem(folder)
    reason = permission_problem(folder, folder)
    if not os.path.isdir(folder):
        yield Finding(ERROR, "metrics", folder, "the folder of metrics_file does not exist; create it")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield _not_writable("metrics", folder)
    elif obstacle is not None:
        yield Finding(ERROR, "metrics", folder, f"nothing is written: {obstacle}")
    elif reason is not None:
        yield Finding(WARNING, "metrics", folder, f"other users can write or replace the metrics: {reason}")


def _not_writable(key: str, folder: str) -> Finding:
    if os.geteuid() == 0:
        return Finding(ERROR, key, folder, "it cannot be written")
    return Finding(WARNING, key, folder, "it cannot be written by this user")


def _version(library: str, module: str) -> str:
    try:
        return f"{library} {getattr(__import__(module), '__version__', 'of unknown version')}"
    except ImportError:
        return f"{library} is not installed"
