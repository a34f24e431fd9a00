# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The HTTP API that controls a running simulator."""

from __future__ import annotations

# each answer of the control address has this header; its value is the version of the simulator
MARK = "X-IMDS-Simulator"
