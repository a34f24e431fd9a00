# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads events in the form of the module event_info, for filters and tests."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils.azure_scheduled_events.document import ScheduledEvent


def event_of(value: t.Any, plugin: str) -> ScheduledEvent:
    """Return the event that a value of a template describes; ``plugin`` is the name of the plugin, for messages.

    Raises:
        AnsibleFilterError: the value is not an event in the form of event_info.
    """
    try:
        return ScheduledEvent.from_json(value, plugin)
    except ValueError as error:
        raise AnsibleFilterError(f"{error}; give an event of azure_imds.scheduled_events.event_info") from None
