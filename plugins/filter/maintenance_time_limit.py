# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_time_limit
short_description: Shorten the time limit of a task so that it ends by a time
version_added: 0.1.0
author: Contributors to the azure_imds.scheduled_events collection (@azure-imds)
description:
  - Part of the role P(azure_imds.scheduled_events.maintenance#role).
options:
  _input:
    description: Seconds, V(0) for no limit.
    type: int
    required: true
  ends_at:
    description: The time by which the task has to end, in ISO 8601 UTC, or null.
    type: str
positional: ends_at
"""

EXAMPLES = r"""
- name: Drain the host by the deadline
  ansible.builtin.command: drain
  timeout: "{{ 900 | azure_imds.scheduled_events.maintenance_time_limit(ends_at) }}"
"""

RETURN = r"""
_value:
  description: Seconds, at least 1, or V(0) for no limit.
  type: int
"""

import math
import typing as t
from datetime import datetime, timezone

_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def maintenance_time_limit(seconds: t.Any, ends_at: str | None = None) -> int:
    """Return the seconds that a task may take."""
    limit = int(seconds)
    if ends_at is None:
        return limit
    end = datetime.strptime(ends_at, _FORMAT).replace(tzinfo=timezone.utc)
    left = max(1, math.ceil((end - datetime.now(timezone.utc)).total_seconds()))
    return min(limit, left) if limit > 0 else left


class FilterModule:
    """The filter plugin maintenance_time_limit."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"maintenance_time_limit": maintenance_time_limit}
