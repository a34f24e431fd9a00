# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
#
# Brings this minion back with the commands of the pillar azure_events:undrain, if azure_events.drain was here for the event whose id is in the pillar
# azure_events_event (or, without one, for any), and if Azure lists none of the events any more for which it was drained.
{%- import 'azure_events/marker.jinja' as marker with context %}
{%- set concerned = marker.state and (not marker.event_id or not marker.events or marker.event_id | lower in marker.known) %}
{%- set coming = salt['azure_events.pending'](event_ids=marker.events, affects='any') if concerned else none %}
{%- set commands = salt['pillar.get']('azure_events:undrain', none) %}
{%- if coming is none %}

not drained:
  test.nop

{%- elif not coming['available'] %}

nobody knows whether another event concerns this minion:
  test.fail_without_changes:
    - comment: {{ coming['reason'] | json }}

{%- elif coming['pending'] %}

it was drained for an event that lasts, the end of which will bring it back:
  test.nop

{%- elif marker.no_commands(commands) | trim %}

no pillar says how this minion is brought back:
  test.fail_without_changes:
    - comment: the pillar azure_events:undrain has to be a list of commands; it may be empty

{%- else %}
{%- for command in commands %}

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
    - name: {{ marker.path | json }}
{%- endif %}
