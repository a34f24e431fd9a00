# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Enters a running host: from its systemd-nspawn to its PID 1, and to a command in the same namespaces."""

from __future__ import annotations

from pathlib import Path

BARE_ENVIRONMENT = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LANG=C.UTF-8",
    "TERM=dumb",
)


class HostIsDown(Exception):
    """The host has no PID 1."""


def first_process(keeper: Path) -> int | None:
    """Return the PID on this machine of the host's PID 1, or None.

    ``keeper`` is the file with the PID of the systemd-nspawn that runs the host. While that prepares the host it
    has other children; a command in their namespaces could run on this machine.
    """
    try:
        number = keeper.read_text(encoding="utf-8").strip()
        for child in Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8").split():
            if Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip() in ("systemd", "init"):
                return int(child)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


def way_in(keeper: Path) -> list[str]:
    """Return the arguments before a command that run it in the host. Raises HostIsDown."""
    leader = first_process(keeper)
    if leader is None:
        raise HostIsDown(f"the host of {keeper} does not run")
    enter = [
        "nsenter",
        f"--target={leader}",
        "--mount",
        "--uts",
        "--ipc",
        "--net",
        "--pid",
        "--cgroup",
        "--wdns=/root",
        "--",
    ]
    return [*enter, "env", "-i", *BARE_ENVIRONMENT]
