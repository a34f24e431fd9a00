# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pure state machine: one maintenance of the host at a time, and the approvals of events."""
