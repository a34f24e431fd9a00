# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Explains why there is no namespace, and names the alternatives."""

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


def _content(file: str) -> str | None:
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def refused_namespace(failure: Failure, read: Callable[[str], str | None] = _content) -> CannotEnter:
    """Return the error for a ``failure`` before the command was executed.

    ``read`` returns the content of a file, or None.
    """
    if failure.step == Step.BIND.value:
        return CannotEnter(
            f"{IMDS_ADDRESS}: cannot listen in the namespace: {failure.text}; change --listen or --control"
        )
    causes = [f"{file} is {value}" for file, value in _SETTINGS.items() if read(file) == value]
    cause = " and ".join(causes) or "the kernel, or the seccomp filter of a container, forbids it"
    change = "change that setting, " if causes else ""
    return CannotEnter(
        f"{IMDS_ADDRESS}: cannot create a user and network namespace ({failure.step}: {failure.text}): {cause}; "
        f"{change}{_ALTERNATIVES}"
    )
