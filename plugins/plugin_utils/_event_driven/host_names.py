# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host of the inventory a VM in Resources is, by a stated rule."""

from __future__ import annotations

import re
import typing as t

from ...module_utils.azure_scheduled_events.identity import own_name_in, vm_key

# A name becomes a part of --limit, where other characters select groups, exclude hosts or read files.
_SAFE_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_NAMES_OF_ALL = ("all", "ungrouped")


class HostRule(t.NamedTuple):
    r"""Maps names of VMs to hosts: by the table, then by the pattern; without both a host has the name of the VM.

    Attributes:
        table: own name of the VM, in lower case -> host. Empty if there is none.
        pattern: the regular expression that the whole name matches, or None.
        template: the host, with \1 or \g<name> for the groups of the pattern.
    """

    table: t.Mapping[str, str] = {}
    pattern: re.Pattern[str] | None = None
    template: str = r"\g<0>"

    def host_of(self, name: str) -> str | None:
        """Return the host of a VM, or None if the rule has none or its name is unusable as a limit."""
        host: str | None
        own = own_name_in(name)
        if vm_key(name) in self.table:
            host = self.table[vm_key(name)]
        elif not own.strip():
            host = None
        elif self.pattern is not None:
            match = self.pattern.fullmatch(own)
            host = None if match is None else match.expand(self.template)
        else:
            host = None if self.table else own
        if host is None or not _SAFE_NAME.fullmatch(host) or host.casefold() in _NAMES_OF_ALL:
            return None
        return host

    def apply(self, resources: t.Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the hosts of these VMs, each once, and the VMs without a host."""
        hosts: dict[str, None] = {}
        unknown = []
        for name in resources:
            host = self.host_of(name)
            if host is None:
                unknown.append(name)
            else:
                hosts[host] = None
        return list(hosts), unknown


def host_rule(table: t.Any, pattern: t.Any, template: t.Any) -> HostRule:
    """Return the rule of these options; raise ValueError with the name of the option, the problem and the remedy.

    Args:
        table: an object of texts, or None.
        pattern: a regular expression, or None.
        template: a text with references to the groups of the pattern, or None.
    """
    if table is not None and not (
        isinstance(table, dict) and all(isinstance(item, str) for pair in table.items() for item in pair)
    ):
        raise ValueError("host_table: not an object of texts; give names of VMs with their hosts")
    try:
        compiled = None if pattern is None else re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(f"host_pattern: {error}; give a regular expression") from None
    rule = HostRule({vm_key(name): host for name, host in (table or {}).items()}, compiled)
    if template is None:
        return rule
    if compiled is None:
        raise ValueError("host_template: without a pattern; give host_pattern, too")
    if not isinstance(template, str):
        raise ValueError("host_template: not a text; give a text such as \\g<0>.example.com")
    try:
        # reads the template also if nothing matches
        compiled.sub(template, "")
    except (re.error, IndexError) as error:
        raise ValueError(f"host_template: {error}; refer to groups of host_pattern") from None
    return rule._replace(template=template)
