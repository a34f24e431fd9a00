# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Recordings of IMDS: their format, reading, writing, and the recorder. Needs Python and requests only."""
