# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads the settings and the hooks, when the daemon starts and for each reload."""

from __future__ import annotations

import logging
from typing import Callable, Sequence

from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import discover_hooks
from hook_runner.lifecycle.stage_plan import Hooks
from hook_runner.reporting.in_force import InForce

log = logging.getLogger(__name__)


class Configuration:
    """The configuration on the disk, as the daemon reads it.

    `owners` are the uids that may own hooks. The log gets a line for each file that is not used as a hook. With
    `dry_run` nothing is approved, whatever the settings say.
    """

    def __init__(self, in_force: InForce, owners: frozenset[int], dry_run: bool = False) -> None:
        self.in_force = in_force
        self._owners, self._dry_run = owners, dry_run

    def load(self, accept: Callable[[Settings], None] = lambda settings: None) -> Settings:
        """Return the settings of the disk. Raises ConfigError, also from `accept`, which may refuse them."""
        settings = self.in_force.load(accept)
        return settings._replace(dry_run=True) if self._dry_run else settings

    def hooks(self, settings: Settings, restart_needed: Sequence[str] = ()) -> Hooks:
        """Return the hooks of the disk, which are in force from now on.

        `restart_needed` has the keys whose new values take effect with the next restart.
        """
        found, skipped = discover_hooks(settings.hooks_directory, settings, self._owners)
        for file in skipped:
            log.info(file.text)
        for hooks in found.values():
            for hook in hooks:
                if hook.problem is not None:
                    log.error(
                        "hook %s/%s will not be run, and counts as failed: %s",
                        hook.stage,
                        hook.name,
                        hook.problem,
                    )
        self.in_force.use(settings, self._owners, found, restart_needed)
        return found
