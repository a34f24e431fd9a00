# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A simulator of Azure Scheduled Events and the related parts of instance metadata.

Docstrings and messages cite statements of docs/reference/scheduled-events.md as "reference NUMBER".
"""

from __future__ import annotations

__version__ = "0.1.0"
