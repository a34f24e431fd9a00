# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""How a minion prepares for an event and recovers from it: configuration, record on disk, decisions, steps. Imports nothing of Salt."""
