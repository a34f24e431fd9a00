# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Sends each step of the engine to a web hook. Copy this file, and set the address. Configuration of
# the master:
#
#   reactor:
#     - 'salt/azure_events/*/*':
#       - salt://reactor/azure_events_notify.sls
{%- set url = 'http://127.0.0.1:9000/azure-events' %}
{%- if data.get('event_id') %}

send the step to the web hook:
  runner.http.query:
    - args:
        - url: {{ url | json }}
        - method: POST
        - header_dict: {Content-Type: application/json}
        - data: {{ {'step': tag.split('/')[-1], 'event_id': data['event_id'], 'minions': data.get('minions', []), 'reason': data.get('reason', '')} | json | json }}
{%- endif %}
