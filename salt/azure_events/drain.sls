# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Takes the load off this minion with the commands of the pillar azure_events:drain, for the event whose id is in the pillar azure_events_event, or else for
# those that are listed now. A file says how far it got, in which boot, and for which events: what is done is not done again for the same event, and what was
# begun will be undone. The commands may run more than once: for another event, and after a reboot.
{%- import 'azure_events/marker.jinja' as marker with context %}
{%- set commands = salt['pillar.get']('azure_events:drain', none) %}
{%- if marker.state == 'drained' and marker.of_this_boot and marker.event_id and marker.event_id | lower in marker.known %}

drained already:
  test.nop

{%- elif marker.no_commands(commands) | trim %}

no pillar says how this minion is drained:
  test.fail_without_changes:
    - comment: the pillar azure_events:drain has to be a list of commands; it may be empty

{%- else %}
{%- set ids = marker.events + [] %}
{%- set wanted = [marker.event_id] if marker.event_id else salt['azure_events.pending']()['events'] | map(attribute='event_id') | list %}
{%- for one in wanted if one | lower not in marker.known %}
{%- do ids.append(one) %}
{%- endfor %}

draining:
  file.managed:
    - name: {{ marker.path | json }}
    - contents: {{ marker.lines_for('draining', ids) }}
    - makedirs: true
{%- for command in commands %}

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
    - name: {{ marker.path | json }}
    - contents: {{ marker.lines_for('drained', ids) }}
    - require:
        - file: draining
{%- endif %}
