# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""What an effect can do with a request; the server implements it (server/exchange.py)."""

from __future__ import annotations

from typing import Protocol

from ..http_reply import Reply


class Exchange(Protocol):
    """One request to which a fault applies. An effect calls ``send`` once, or takes over the connection."""

    def now(self) -> float:
        """Return the time of the simulator's clock."""

    async def wait(self, simulated: float) -> None:
        """Return after ``simulated`` seconds."""

    def is_fault_active(self) -> bool:
        """Return False when the window of the fault is over, or the fault was cleared."""

    async def normal_answer(self, *, arrives: bool = False, conditional: bool = True) -> Reply:
        """Let the service act, and return its answer.

        ``arrives``: the client gets the whole document. Not ``conditional``: an answer with a body, never 304.
        """

    def error(self, status: int) -> Reply:
        """Return the error of this status in the shape of the service."""

    def send(self, answer: Reply, skew: float = 0.0) -> object:
        """Answer with a Date that is ``skew`` seconds off, and keep the connection open."""

    def close_after(self, simulated: float) -> None:
        """Close the connection in ``simulated`` seconds."""

    def head(self, answer: Reply, framing: tuple[str, str]) -> bytes:
        """Return status line and headers; ``framing`` is the header with the length of the body."""

    def take_over(self) -> None:
        """Take the connection from the server, which sends nothing; the log shows no complete answer."""

    def is_open(self) -> bool:
        """Return False when the client or the simulator has closed the connection."""

    def write(self, data: bytes) -> None:
        """Send bytes as they are, unless the connection is closed."""

    def close(self) -> None:
        """Close the connection with FIN."""

    def reset(self) -> None:
        """Take the connection from the server, and close it with RST."""
