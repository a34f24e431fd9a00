# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Sends the hint of a beacon to the engine of another master of the same minions, through a web hook
# of its salt-api. Copy this file, and set the address. The other master's rest_cherrypy needs
# webhook_disable_auth: true, because no credentials are sent, and the default webhook_url /hook. If
# no public authority has signed its certificate, set ca_bundle of this master to a file with it.
# Configuration of this master:
#
#   reactor:
#     - 'salt/beacon/*/azure_events/*':
#       - salt://reactor/azure_events_hint.sls
#
# The other engine polls the minion itself; a lost, late or forged hint has no other effect.
{%- set url = 'https://127.0.0.1:8000/hook/azure_events' %}
{%- if data.get('event_id') %}

send the hint:
  runner.http.query:
    - args:
        - url: {{ url | json }}
        - method: POST
        - header_dict: {Content-Type: application/json}
        - data: {{ {'minion': data['id']} | json | json }}
{%- endif %}
