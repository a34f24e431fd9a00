# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Brings this minion back with the commands of the pillar azure_events:undrain, if azure_events.drain was here, and if no other event concerns it.
{%- set marker = opts['cachedir'] ~ '/azure_events/drained' %}
{%- set coming = salt['azure_events.pending']() if salt['file.file_exists'](marker) else none %}
{%- if coming is none %}

not drained:
  test.nop

{%- elif not coming['available'] %}

nobody knows whether another event concerns this minion:
  test.fail_without_changes:
    - comment: {{ coming['reason'] | json }}

{%- elif coming['pending'] %}

another event concerns this minion, and its end will bring it back:
  test.nop

{%- else %}
{%- for command in salt['pillar.get']('azure_events:undrain', []) %}

undrain {{ loop.index }}:
  cmd.run:
    - name: {{ command | json }}
{%- if not loop.first %}
    - require:
        - cmd: undrain {{ loop.index - 1 }}
{%- endif %}
{%- if loop.last %}
    - require_in:
        - file: undrained
{%- endif %}
{%- endfor %}

undrained:
  file.absent:
    - name: {{ marker | json }}
{%- endif %}
