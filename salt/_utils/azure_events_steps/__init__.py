# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Prepares a minion for an event, approves the event and recovers the minion. Does not import Salt."""
