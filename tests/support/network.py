# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The address of IMDS, and the command ip."""

from __future__ import annotations

import subprocess

IMDS = "169.254.169.254"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
