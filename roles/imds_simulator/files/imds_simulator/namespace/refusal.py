# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Explains why there is no namespace, or no address, and names the alternatives."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from .messages import IMDS_ADDRESS, Failure, Step

# file: value that forbids user namespaces
_SETTINGS = {
    "/proc/sys/user/max_user_namespaces": "0",
    "/proc/sys/user/max_net_namespaces": "0",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}
_ALTERNATIVES = (
    "run the command as root, give a container the capabilities SYS_ADMIN and NET_ADMIN, or run it by exec without "
    "--imds-address, and give the client the URL in $IMDS_SIMULATOR_ENDPOINT"
)


class CannotEnter(Exception):
    """No network has the address of IMDS; the text is one line."""


def refused_namespace(failure: Failure, read: Callable[[str], str | None] | None = None) -> CannotEnter:
    """Return the error for a ``failure`` before the command was executed.

    ``read`` returns the content of a file, or None.
    """
    if failure.step == Step.BIND.value:
        return CannotEnter(
            f"{IMDS_ADDRESS}: cannot listen in the namespace: {failure.text}; change --listen or --control"
        )
    read = read or _content
    causes = [f"{file} is {value}" for file, value in _SETTINGS.items() if read(file) == value]
    cause = " and ".join(causes) or "the kernel, or the seccomp filter of a container, forbids it"
    change = "change that setting, " if causes else ""
    return CannotEnter(
        f"{IMDS_ADDRESS}: cannot create a user and network namespace ({failure.step}: {failure.text}): {cause}; "
        f"{change}{_ALTERNATIVES}"
    )


def refused_address(error: OSError) -> CannotEnter:
    """Return the error for an address that cannot be added to lo."""
    return CannotEnter(
        f"--keep-network: cannot add {IMDS_ADDRESS} to lo: {error.strerror or error}; this needs the capability "
        "NET_ADMIN: run as root or below 'pasta --config-net', or leave out --keep-network"
    )


def _content(file: str) -> str | None:
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
