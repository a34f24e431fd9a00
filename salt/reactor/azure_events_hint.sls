# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Hands the hint of a beacon over to the engine of another master of the same minions, by a web hook of its salt-api. Copy this file, and set
# the address. The other master's rest_cherrypy needs webhook_disable_auth: true, as no credentials are sent, and a webhook_url of /hook (the
# default). Where no public authority has signed its certificate, ca_bundle of this master names a file with it. Configuration of this master:
#
#   reactor:
#     - 'salt/beacon/*/azure_events/*':
#       - salt://reactor/azure_events_hint.sls
#
# The other engine asks the minion itself; a hint that is lost, late or forged does nothing else.
{%- set url = 'https://127.0.0.1:8000/hook/azure_events' %}
{%- if data.get('event_id') %}

hand the hint over:
  runner.http.query:
    - args:
        - url: {{ url | json }}
        - method: POST
        - header_dict: {Content-Type: application/json}
        - data: {{ {'minion': data['id']} | json | json }}
{%- endif %}
