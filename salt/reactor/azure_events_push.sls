# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Pushes each change that a beacon reports to Event-Driven Ansible: to eda.builtin.webhook of
# ansible-rulebook, or to another endpoint with a bearer token. Copy this file, and set the address.
# The file with the headers is for root (or the user of the master) only:
#
#   Authorization: Bearer TOKEN
#   Content-Type: application/json
#
# Its path is an argument of the runner, the token is not: arguments are on the master's event bus.
# If no public authority has signed the certificate of the endpoint, set ca_bundle of the master to a
# file with it. Configuration of the master:
#
#   reactor:
#     - 'salt/beacon/*/azure_events/*':
#       - salt://reactor/azure_events_push.sls
#
# The runner tries once. The beacon repeats a listed event every 60 seconds, and the repetition has
# the same id; the end of an event is sent once.
{%- set url = 'https://127.0.0.1:5000/endpoint' %}
{%- set header_file = '/etc/salt/azure_events_push.headers' %}
{%- set words = {'scheduled': 'appeared', 'changed': 'changed', 'started': 'started', 'gone': 'gone'} %}
{%- if data.get('event_id') and data.get('change') in words %}
{%- set event = {
  'event_id': data['event_id'],
  'event_type': data.get('event_type'),
  'status': data.get('status'),
  'resources': data.get('resources', []),
  'resource_type': data.get('resource_type'),
  'not_before': data.get('not_before'),
  'description': data.get('description'),
  'source': data.get('source'),
  'duration_seconds': data.get('duration_seconds'),
} %}
{%- set change = {
  'schema': 'azure_imds.scheduled_events/change/1',
  'id': [data['id'], data['event_id'], data.get('sequence', 0), data['change']] | join('/'),
  'change': words[data['change']],
  'outcome': data.get('outcome'),
  'event': event,
  'observed_at': data.get('changed_at'),
  'reporter': data.get('resource_name') or data['id'],
  'reported_by': 'salt',
  'resource_id': none,
} %}

push the change:
  runner.http.query:
    - args:
        - url: {{ url | json }}
        - method: POST
        - header_file: {{ header_file | json }}
        - data: {{ change | json | json }}
{%- endif %}
