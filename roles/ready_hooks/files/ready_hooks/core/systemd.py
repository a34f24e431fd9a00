# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""What systemd knows of a unit."""

from __future__ import annotations

from collections.abc import Iterable

from ready_hooks.core import commands
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError

# properties with the units that systemd stops with this one
STOPPED_WITH = ("RequiredBy", "BoundBy", "ConsistsOf", "PropagatesStopTo")


def show(name: str, properties: Iterable[str], deadline: Deadline) -> dict[str, str]:
    """Return the properties of a unit, without those that this systemd does not know. Raises HookError."""
    result = commands.run(["systemctl", "show", "--property=" + ",".join(properties), "--", name], deadline)
    if result.status != 0:
        raise HookError(name, result.reason)
    return dict(line.split("=", 1) for line in result.output.splitlines() if "=" in line)
