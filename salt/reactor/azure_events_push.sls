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
# The master needs the runner azure_events: salt-run saltutil.sync_all.
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

push the change:
  runner.azure_events.push:
    - args:
        - url: {{ url | json }}
        - header_file: {{ header_file | json }}
        - report: {{ data | json | json }}
