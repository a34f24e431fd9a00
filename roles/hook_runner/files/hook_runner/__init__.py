# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hook runner: prepares this VM for scheduled events, approves them by policy, and recovers from them."""

__version__ = "0.1.0"
