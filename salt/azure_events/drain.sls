# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Takes the load off this minion with the commands of the pillar azure_events:drain. A file says how far it got: what is done is not done again,
# and what was begun will be undone.
{%- set marker = opts['cachedir'] ~ '/azure_events/drained' %}
{%- if salt['file.file_exists'](marker) and salt['file.read'](marker).strip() == 'drained' %}

drained already:
  test.nop

{%- elif salt['pillar.get']('azure_events:drain', none) is none %}

no pillar says how this minion is drained:
  test.fail_without_changes:
    - comment: the pillar azure_events:drain has to be a list of commands; it may be empty

{%- else %}

draining:
  file.managed:
    - name: {{ marker | json }}
    - contents: draining
    - makedirs: true
{%- for command in salt['pillar.get']('azure_events:drain', []) %}

drain {{ loop.index }}:
  cmd.run:
    - name: {{ command | json }}
    - require:
        - {{ 'file: draining' if loop.first else 'cmd: drain ' ~ (loop.index - 1) }}
{%- if loop.last %}
    - require_in:
        - file: drained
{%- endif %}
{%- endfor %}

drained:
  file.managed:
    - name: {{ marker | json }}
    - contents: drained
    - require:
        - file: draining
{%- endif %}
