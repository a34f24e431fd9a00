# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of a maintenance run: how many hosts at a time, which fault domain, and by when they are prepared."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.azure_scheduled_events.options import parse_option, parse_seconds

# options of the role, in seconds
_DURATIONS = ("deadline", "yield", "patience", "within", "removed_after", "note_expires")


class Limits(t.NamedTuple):
    """The limits of one run.

    Attributes:
        group: the hosts that the limits count.
        at_most: hosts of the group that may be out of service at the same time, or None.
        one_fault_domain: whether these have to be in one fault domain.
        deadline: seconds before NotBefore by which the preparation has to have ended, 0 for no deadline.
        yield_within: an event that starts within these seconds, counted to the deadline, does not wait.
    """

    group: frozenset[str]
    at_most: int | None = None
    one_fault_domain: bool = False
    deadline: float = 0
    yield_within: float = 300

    @property
    def restrict(self) -> bool:
        """True if an event may have to wait for another one."""
        return self.at_most is not None or self.one_fault_domain


def parse_limits(options: t.Mapping[str, t.Any], play_hosts: t.Sequence[str], groups: t.Mapping[str, t.Any]) -> Limits:
    """Return the limits that the options of the role describe.

    Args:
        options: ``at_most``, ``group``, ``one_fault_domain``, ``deadline`` and ``yield``; a missing one has
            its default. Other durations of the role are only checked.
        play_hosts: the hosts of the play, also those that are lost.
        groups: the hosts of each group of the inventory.

    Raises:
        ValueError: an option cannot be used.
    """
    group = str(options.get("group") or "")
    if group and group not in groups:
        raise ValueError(f"maintenance_group: the inventory has no group {group}; name one of its groups")
    hosts = list(groups[group]) if group else list(play_hosts)
    at_most = options.get("at_most")
    seconds = {
        name: parse_option(f"maintenance_{name}", options[name], parse_seconds)
        for name in _DURATIONS
        if options.get(name) is not None
    }
    limits = Limits(
        frozenset(hosts),
        None if at_most in (None, "") else _number(at_most, len(hosts)),
        bool(options.get("one_fault_domain")),
        seconds.get("deadline", 0),
        seconds.get("yield", 300),
    )
    unseen = sorted(set(hosts) - set(play_hosts))
    if limits.restrict and unseen:
        raise ValueError(
            f"maintenance_group: {', '.join(unseen[:5])}{', …' if len(unseen) > 5 else ''} of {group} are not hosts of"
            " this play, which therefore cannot count them; run the play for the whole group"
        )
    return limits


def _number(at_most: t.Any, hosts: int) -> int:
    """Return the number of hosts of an option such as 2, "2" or "25%", rounded down, but at least one."""
    match = re.fullmatch(r"(\d{1,6})(%?)", str(at_most).strip())
    number = int(match[1]) if match else 0
    if match is None or number == 0 or (match[2] and number > 100):
        raise ValueError(
            f"maintenance_at_most: {at_most!r} is neither a number of hosts from 1 nor a share from 1% to 100%;"
            ' set it to a value such as 2 or "25%"'
        )
    return max(1, hosts * number // 100) if match[2] else number
