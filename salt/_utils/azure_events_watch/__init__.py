# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Watches IMDS for the beacon, and parses the options that the Salt modules share.

It uses the helper azure_scheduled_events and does not import Salt. A minion process imports the
package once: refreshes of modules, pillar and beacons do not reload it.
"""
