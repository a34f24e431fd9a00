# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The engine on the master, without Salt.

``reducer.reduce`` (state, input -> state, actions) decides; it is pure. ``engine`` turns the events
of the master's bus into inputs, stores the state and executes the actions.
``salt/_engines/azure_events.py`` connects it with Salt.
"""
