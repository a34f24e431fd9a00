# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Random runs of the real daemon against the simulator, by seed, and the invariants of each run."""
