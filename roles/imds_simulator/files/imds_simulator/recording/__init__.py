# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Recordings of IMDS: the recorder, and what it may write. Needs Python and click only."""
