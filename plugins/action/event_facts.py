# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs module event_facts, or its work on the controller for a Windows host."""

from __future__ import annotations

from ..plugin_utils._event_action import EventAction


class ActionModule(EventAction):
    """The action plugin event_facts."""

    module = "event_facts"
