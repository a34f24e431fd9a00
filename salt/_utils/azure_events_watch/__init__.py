# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What the Salt modules named azure_events have in common. Knows the helper azure_scheduled_events, and nothing of Salt.

It is imported once in the life of a minion and stays where refreshes of modules, pillar and beacons
do not reach it.
"""
