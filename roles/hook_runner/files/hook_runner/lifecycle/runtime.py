# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The values that a reload or an answer of IMDS replaces while the daemon runs."""

from __future__ import annotations

from hook_runner.config.settings import Settings
from hook_runner.lifecycle.stage_plan import Hooks


class Runtime:
    """The values in force. The engine and its parts share one, and read it each time they need a value.

    `own_name` is this VM's resource name; None while it is unknown.
    """

    __slots__ = ("hooks", "own_name", "settings")

    def __init__(self, settings: Settings, hooks: Hooks) -> None:
        self.settings = settings
        self.hooks = hooks
        self.own_name: str | None = settings.resource_name or None
