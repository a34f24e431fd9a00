# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The way into a running host: from the process that keeps it to its PID 1, and to a command beside that."""

from __future__ import annotations

from pathlib import Path

BARE_ENVIRONMENT = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LANG=C.UTF-8",
    "TERM=dumb",
)


class HostIsDown(Exception):
    """There is no PID 1 to go to."""


def first_process(keeper: Path) -> int | None:
    """The PID 1 of a host, as it is numbered here.

    Args:
        keeper: file with the number of the systemd-nspawn that runs the host. That has other
            children while it prepares the host; a command sent to one of those could reach this
            machine instead.
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
    """What to put before a command so that it runs in the host; raises HostIsDown."""
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
