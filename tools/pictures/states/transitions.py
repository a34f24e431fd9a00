# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Transitions between states, with their causes, as a run of the code shows them."""

from __future__ import annotations


class Transitions:
    """The transitions that were observed.

    Attributes:
        causes: (state before, state after) -> names of the causes.
    """

    def __init__(self) -> None:
        self.causes: dict[tuple[str, str], set[str]] = {}

    def add(self, before: str, after: str, cause: str) -> None:
        """Note a transition; a cause may be "" where the code names none."""
        found = self.causes.setdefault((before, after), set())
        if cause:
            found.add(cause)

    def states(self) -> set[str]:
        """Return all states."""
        return {state for pair in self.causes for state in pair}
