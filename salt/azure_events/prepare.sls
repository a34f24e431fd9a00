# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Prepares this minion with the steps of azure_events:prepare: for the event whose ID is in the pillar
# azure_events_event, or by hand without one.
{%- set event_id = salt['pillar.get']('azure_events_event') %}

prepare this minion:
  azure_events.prepared:
    - name: {{ (event_id or 'by hand') | tojson }}
    - by_hand: {{ (not event_id) | tojson }}
