# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `run`, which is the daemon."""

from __future__ import annotations

import argparse
import os

from hook_runner.cli.output import OK
from hook_runner.config.settings import DEFAULT_PATH, ConfigError, Settings, load_settings
from hook_runner.log import LogHandler, log_to
from hook_runner.permissions import trusted_owners
from hook_runner.reporting.in_force import InForce
from hook_runner.service.assembly import assemble
from hook_runner.service.configuration_source import Configuration
from hook_runner.service.daemon import Service


def load_settings_for(path: str, owners: frozenset[int] | None = None) -> Settings:
    """Return the settings of a file. Only the default file may be missing.

    Arguments and errors are those of `load_settings`.
    """
    if path != DEFAULT_PATH and not os.path.lexists(path):
        raise ConfigError(f"there is no configuration {path}")
    return load_settings(path, owners)


def run_service(options: argparse.Namespace) -> int:
    """Run the daemon until a signal ends it; returns the exit status."""
    owners = trusted_owners()
    log_to(LogHandler())
    in_force = InForce(options.config, lambda: load_settings_for(options.config, owners))
    configuration = Configuration(in_force, owners, options.dry_run)
    Service(assemble(configuration, owners)).run()
    return OK
