# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The logic of the engine on the master, without Salt.

A pure reducer (``reducer.reduce``: state, input -> state, actions) decides.
``salt/_engines/azure_events.py`` turns the events of the master's bus into inputs, and carries the
actions out.
"""
