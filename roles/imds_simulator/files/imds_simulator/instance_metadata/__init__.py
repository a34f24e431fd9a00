# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Instance metadata of the simulated VMs (docs/reference/scheduled-events.md 3.3)."""
