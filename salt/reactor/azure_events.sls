# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Configuration of the master:
#
#   reactor:
#     - 'salt/beacon/*/azure_events/*':
#       - salt://reactor/azure_events.sls
#
# The event came from a minion, perhaps late, and is a hint only: the orchestration asks again. The error events that Salt fires for
# beacons have no event_id.
{%- if data.get('event_id') and data.get('change') in ('scheduled', 'changed', 'started', 'gone') %}

azure_events_maintenance:
  runner.azure_events.react:
    - args:
        - event_id: {{ data['event_id'] | json }}
        - minion: {{ data['id'] | json }}
        - change: {{ data['change'] | json }}
{%- endif %}
