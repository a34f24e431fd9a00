# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Prepares this minion for the event whose ID is in the pillar azure_events_event, and approves the
# event if it affects no other VM, if its type, source and resource type are known, and if its type is
# that of the preparation.
{%- set event_id = salt['pillar.get']('azure_events_event') %}

prepare this minion:
  azure_events.prepared:
    - name: {{ event_id | tojson }}

approve the event:
  azure_events.approved:
    - of: {{ event_id | tojson }}
    - event_ids: [{{ event_id | tojson }}]
    - policy: {rules: [{name: this minion has prepared, approve: now}]}
    - require:
        - azure_events: prepare this minion
