# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draw the time line of a maintenance from each recorded run."""

from __future__ import annotations


def pictures() -> dict[str, str]:
    """Return name of the file -> SVG."""
    return {}
