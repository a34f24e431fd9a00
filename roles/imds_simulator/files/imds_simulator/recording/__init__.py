# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Recordings of IMDS: the recorder, which needs Python and click only, what it may write, and the replay."""
