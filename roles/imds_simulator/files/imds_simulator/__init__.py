# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A local stand-in for Azure Scheduled Events and the parts of instance metadata that go with it.

"spec" in docstrings means docs/simulator.md, whose statement numbers are those of the behaviour
reference that this simulator follows.
"""
from __future__ import annotations

__version__ = "0.1.0"
