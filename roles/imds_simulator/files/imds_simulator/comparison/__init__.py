# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Compares a recording with the statements of docs/reference/scheduled-events.md. Needs only Python."""
