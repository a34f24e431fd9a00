# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Recovers this minion with the steps of azure_events:recover: from the event whose ID is in the
# pillar azure_events_event, or by hand without one.
{%- set event_id = salt['pillar.get']('azure_events_event') %}

recover this minion:
  azure_events.recovered:
    - name: {{ (event_id or 'by hand') | tojson }}
    - by_hand: {{ (not event_id) | tojson }}
