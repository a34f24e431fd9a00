# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Faults: their kinds and effects, their windows, and the faults of a running simulator; no HTTP server."""
