# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Names of the network that the tests make."""

from __future__ import annotations

import subprocess

IMDS = "169.254.169.254"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
