# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The address of IMDS, and why the process in the namespace could not start the command."""

from __future__ import annotations

IMDS_ADDRESS = "169.254.169.254"
IMDS_PORT = 80
# the first step in the namespace, when it has the address
BIND = "bind"


class Failure(Exception):
    """A ``step`` failed by an error of the kernel; the arguments are the last message of the process, as JSON."""

    def __init__(self, step: str, code: int, text: str) -> None:
        super().__init__(step, code, text)
        self.step = step
        self.code = code
        self.text = text
