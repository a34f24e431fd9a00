# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `run`, which is the daemon. It imports only modules that the daemon needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from azure_scheduled_events.named_tuple import NamedTuple
from azure_scheduled_events.yaml_lines import YamlLoader, load_with_lines
from hook_runner.cli.output import OK
from hook_runner.config.settings import DEFAULT_PATH, ConfigError, Settings, load_settings

if TYPE_CHECKING:
    import argparse


class RunOptions(NamedTuple):
    """The options of `run`."""

    config: str = DEFAULT_PATH
    dry_run: bool = False


def load_settings_for(path: str, owners: frozenset[int] | None = None, read: YamlLoader = load_with_lines) -> Settings:
    """Return the settings of a file. Only the default file may be missing.

    Arguments and errors are those of `load_settings`.
    """
    if path != DEFAULT_PATH and not os.path.lexists(path):
        raise ConfigError(f"there is no configuration {path}")
    return load_settings(path, owners, read)


def run_service(options: RunOptions | argparse.Namespace) -> int:
    """Run the daemon until a signal ends it; returns the exit status."""
    from hook_runner.config.yaml_subprocess import load_in_subprocess
    from hook_runner.log import Log
    from hook_runner.permissions import trusted_owners
    from hook_runner.reporting.in_force import InForce
    from hook_runner.service.assembly import assemble
    from hook_runner.service.configuration_source import Configuration
    from hook_runner.service.daemon import Service

    owners, log = trusted_owners(), Log()
    in_force = InForce(options.config, lambda: load_settings_for(options.config, owners, load_in_subprocess))
    configuration = Configuration(in_force, owners, log, options.dry_run)
    Service(assemble(configuration, owners, log)).run()
    return OK
