# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The error that ends a hook with a message for the operator."""

from __future__ import annotations


class HookError(Exception):
    """A hook cannot do its work.

    The subject is the thing that has the problem: a socket, a unit, an option. The remedy is what the operator
    can do; it is "" if the problem says it.
    """

    def __init__(self, subject: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{subject}: {problem}" + (f"; {remedy}" if remedy else ""))


class OutOfTime(HookError):
    """The time limit of the hook has ended before its work."""


class UsageError(HookError):
    """An option is missing, unknown or invalid."""
