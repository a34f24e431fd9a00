# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Without the engine: a minion whose VM is alone in its event prepares, approves and recovers.
# Configuration of the master:
#
#   reactor:
#     - 'salt/beacon/*/azure_events/*':
#       - salt://reactor/azure_events_one_vm.sls
#
# The event of the beacon is a hint only: the minion reads IMDS before it acts, and does not approve
# an event that affects another VM. The state runs concurrently with others, because an eviction does
# not wait for them.
{%- if data.get('event_id') and data.get('change') in ('scheduled', 'changed') and data.get('resources', []) | length == 1 %}

prepare and approve:
  local.state.apply:
    - tgt: {{ data['id'] | json }}
    - tgt_type: list
    - kwarg:
        mods: azure_events.prepare_and_approve
        concurrent: true
        test: false
        pillar: {azure_events_event: {{ data['event_id'] | json }}}
{%- elif data.get('event_id') and data.get('change') == 'gone' %}

recover:
  local.azure_events.recover:
    - tgt: {{ data['id'] | json }}
    - tgt_type: list
    - kwarg:
        event_id: {{ data['event_id'] | json }}
{%- endif %}
